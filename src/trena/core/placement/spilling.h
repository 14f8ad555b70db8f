// Placing a program that does not fit: loads wait for their first use, computed tensors go to HBM
// scratch and come back (docs/placement.md, "With spills").
#pragma once

#include "trena/core/placement/eviction.h"
#include "trena/core/placement/residents.h"

namespace trena {

class Spilling {
 public:
  Spilling(const Program& program, const Machine& machine, Residents& residents)
      : program_(program),
        machine_(machine),
        residents_(residents),
        lifetimes_(residents.lifetimes()),
        eviction_(residents) {}

  // The whole program, from nobody on the chip. Throws `sbuf-capacity` and `psum-capacity`.
  void place();

 private:
  // Steps [first, past) that want all their operands on the chip at once.
  struct Unit {
    std::size_t first;
    std::size_t past;
  };

  Unit unit_from(std::size_t step) const;
  bool postpone_load(std::size_t step);
  void make_room(Unit& unit);
  std::size_t bring_in_operands(const Unit& unit);
  void set_pinned(const Unit& unit, bool pinned);
  bool bring_in(std::int32_t tile, const Unit& unit);
  std::optional<std::int64_t> find_or_empty(const Tenant& tenant, const Unit& unit);
  void refill(std::int32_t tile, std::size_t step);

  const Program& program_;
  const Machine& machine_;
  Residents& residents_;
  const Lifetimes& lifetimes_;
  Eviction eviction_;
};

}  // namespace trena
