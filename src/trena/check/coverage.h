// A set of bytes made of regions: does it hold all of another region?
#pragma once

#include <vector>

#include "trena/check/history.h"

namespace trena {

class Coverage {
 public:
  void add(const Region& region);
  // Does it hold all of `region`, together with `others`? Exact for regions that are; what a region
  // may touch, but need not, counts as held.
  bool holds(const Region& region, std::vector<const Region*> others = {});
  bool meets(const Region& region) const;

 private:
  std::vector<Region> parts_;
};

// What is left of a region as others are taken out of it. Exact while all are boxes of rows ×
// bytes; else it is rather too little.
class Remainder {
 public:
  explicit Remainder(const Region& region);
  bool empty() const { return boxes_.empty(); }
  bool meets(const Region& region) const;
  void remove(const Region& region);

 private:
  // Both ends inclusive.
  struct Box {
    std::int64_t row_first, row_last, byte_first, byte_last;
  };
  static Box box_around(const Region& region);

  Region region_;
  std::vector<Box> boxes_;
};

// Of bytes that several regions hold between them.
bool together_hold(const std::vector<const Region*>& parts, const Region& region);

}  // namespace trena
