// A set of bytes made of regions: does it hold all of another region?
#pragma once

#include <vector>

#include "trena/check/history.h"

namespace trena {

class Coverage {
 public:
  void add(const Region& region);
  // Exact for regions that are; what a region may touch, but need not, counts as held.
  bool holds(const Region& region) const;
  bool meets(const Region& region) const;

 private:
  std::vector<Region> parts_;
};

// Of bytes that several regions hold between them.
bool together_hold(const std::vector<const Region*>& parts, const Region& region);

}  // namespace trena
