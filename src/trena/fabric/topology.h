// Chips and the links between them (fleet.md §1): torus, ring and chain.
#pragma once

#include <cstdint>
#include <vector>

#include "trena/machine/machine.h"

namespace trena {

// One direction of one connection.
struct Link {
  int from = 0;
  int to = 0;
};

class Topology {
 public:
  // Throws `not-modelled` for a switched fabric, `fabric-topology` for dimensions that are none.
  explicit Topology(const Fabric& fabric);

  int chips() const { return chips_; }
  const std::vector<Link>& links() const { return links_; }

  // Indices into links(), in order of travel. Dimension by dimension from the last (columns) to the
  // first, the shorter way round; of two equal ways the ascending one. The vendor's order is not
  // published. Empty when from == to.
  std::vector<int> route(int from, int to) const;

  // Chips in an order in which neighbours are joined where the shape allows it: a boustrophedon (in
  // an even torus it closes, so that each step of a ring crosses one link).
  std::vector<int> ring_order() const;

 private:
  int neighbour(int chip, std::size_t axis, int step) const;
  int coordinate(int chip, std::size_t axis) const;
  int link_between(int from, int to) const;

  std::vector<int> sizes_;  // outermost first; chip = row-major index
  std::vector<int> strides_;
  bool wraps_ = true;
  int chips_ = 1;
  std::vector<Link> links_;
  std::vector<std::vector<int>> outgoing_;  // link indices by chip
};

}  // namespace trena
