#include "trena/fabric/topology.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "trena/error.h"

namespace trena {

Topology::Topology(const Fabric& fabric) {
  if (fabric.topology == "switch") {
    throw_not_modelled(fmt::format("the switched fabric {}", fabric.name));
  }
  const bool known =
      fabric.topology == "torus" || fabric.topology == "ring" || fabric.topology == "chain";
  const bool flat = fabric.topology == "torus" || fabric.dimensions.size() == 1;
  const bool positive = std::all_of(fabric.dimensions.begin(), fabric.dimensions.end(),
                                    [](std::int64_t size) { return size > 0; });
  if (!known || !flat || !positive || fabric.dimensions.empty()) {
    throw Error(ErrorKind::kMachine, "fabric-topology",
                {.rule = "a fabric is a torus of any dimensions, or a ring or chain of one",
                 .here = fmt::format("{}: {} with dimensions [{}]", fabric.name, fabric.topology,
                                     fmt::join(fabric.dimensions, ", "))});
  }
  wraps_ = fabric.topology != "chain";
  for (const std::int64_t size : fabric.dimensions) {
    sizes_.push_back(static_cast<int>(size));
  }
  strides_.resize(sizes_.size());
  for (std::size_t axis = sizes_.size(); axis-- > 0;) {
    strides_[axis] = chips_;
    chips_ *= sizes_[axis];
  }
  outgoing_.resize(static_cast<std::size_t>(chips_));
  for (int chip = 0; chip < chips_; ++chip) {
    for (std::size_t axis = 0; axis < sizes_.size(); ++axis) {
      for (const int step : {1, -1}) {
        const int other = neighbour(chip, axis, step);
        if (other < 0 || link_between(chip, other) >= 0) {  // a ring of two has one connection
          continue;
        }
        outgoing_[static_cast<std::size_t>(chip)].push_back(static_cast<int>(links_.size()));
        links_.push_back({chip, other});
      }
    }
  }
}

int Topology::coordinate(int chip, std::size_t axis) const {
  return chip / strides_[axis] % sizes_[axis];
}

int Topology::neighbour(int chip, std::size_t axis, int step) const {
  const int size = sizes_[axis];
  const int here = coordinate(chip, axis);
  int there = here + step;
  if (size == 1 || (!wraps_ && (there < 0 || there >= size))) {
    return -1;
  }
  there = (there + size) % size;
  return chip + (there - here) * strides_[axis];
}

int Topology::link_between(int from, int to) const {
  for (const int link : outgoing_[static_cast<std::size_t>(from)]) {
    if (links_[static_cast<std::size_t>(link)].to == to) {
      return link;
    }
  }
  return -1;
}

std::vector<int> Topology::route(int from, int to) const {
  std::vector<int> path;
  int here = from;
  for (std::size_t axis = sizes_.size(); axis-- > 0;) {
    const int size = sizes_[axis];
    const int distance = coordinate(to, axis) - coordinate(here, axis);
    const int ascending = (distance + size) % size;
    const bool up = wraps_ ? ascending <= size - ascending : distance > 0;
    const int hops = wraps_ ? std::min(ascending, size - ascending) : std::abs(distance);
    for (int hop = 0; hop < hops; ++hop) {
      const int next = neighbour(here, axis, up ? 1 : -1);
      path.push_back(link_between(here, next));
      here = next;
    }
  }
  return path;
}

std::vector<int> Topology::ring_order() const {
  std::vector<int> order;
  for (int index = 0; index < chips_; ++index) {
    // Reflected digits: an axis runs backwards whenever the digits before it sum to an odd number.
    int chip = 0;
    int turns = 0;
    for (std::size_t axis = 0; axis < sizes_.size(); ++axis) {
      const int digit = coordinate(index, axis);
      chip += (turns % 2 == 0 ? digit : sizes_[axis] - 1 - digit) * strides_[axis];
      turns = turns * sizes_[axis] + digit;
    }
    order.push_back(chip);
  }
  return order;
}

}  // namespace trena
