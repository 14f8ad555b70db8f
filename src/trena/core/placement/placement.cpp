#include "trena/core/placement/placement.h"

#include <fmt/format.h>

#include "trena/core/placement/capacity_errors.h"
#include "trena/core/placement/lifetimes.h"
#include "trena/core/placement/manual_addresses.h"
#include "trena/core/placement/residents.h"
#include "trena/core/placement/spilling.h"

namespace trena {
namespace {

// The first use of a tensor that finds no place.
struct Homeless {
  const Tile* tile;
  std::size_t step;
};

std::optional<Homeless> place_as_written(Residents& residents, Search search) {
  const Lifetimes& lifetimes = residents.lifetimes();
  for (std::size_t step = 0; step < lifetimes.steps().size(); ++step) {
    const int worker = lifetimes.steps()[step].worker();
    for (const Use& use : lifetimes.uses_of(step)) {
      if (use.tile != kNoTile && !residents.tenant(use.tile).stay &&
          !residents.move_in(use.tile, step, worker, search)) {
        return Homeless{&lifetimes.tile(use.tile), step};
      }
    }
    residents.run(step);
  }
  return std::nullopt;
}

}  // namespace

Stream place(const Program& program, int core, const Machine& machine, SpillPolicy spill) {
  const Lifetimes lifetimes(program, core, machine);
  const ManualAddresses manual(lifetimes, machine);
  std::optional<Homeless> homeless;
  for (const Search search : {Search::kOldest, Search::kTightest}) {
    Residents as_written(lifetimes, manual, machine);
    homeless = place_as_written(as_written, search);
    if (!homeless) {
      return as_written.take_stream();
    }
  }
  if (homeless->tile->psum()) {
    throw_psum_capacity(program, lifetimes, machine, *homeless->tile, homeless->step);
  }
  if (spill == SpillPolicy::kError) {
    const Position& position = lifetimes.steps()[homeless->step].instruction->position;
    throw_spill_forbidden(
        machine, fmt::format("{} at line {}", homeless->tile->buffer->name, position.line));
  }
  Residents residents(lifetimes, manual, machine);
  Spilling(program, machine, residents).place();
  return residents.take_stream();
}

}  // namespace trena
