#include "trena/core/placement/spilling.h"

#include "trena/core/placement/capacity_errors.h"
#include "trena/core/placement/repeatable_loads.h"

namespace trena {

void Spilling::place() {
  for (std::size_t tile = 0; tile < lifetimes_.tiles().size(); ++tile) {
    const auto id = static_cast<std::int32_t>(tile);
    residents_.tenant(id).loads = repeatable_loads(lifetimes_, id);
  }
  std::size_t step = 0;
  while (step < lifetimes_.steps().size()) {
    Unit unit = unit_from(step);
    if (!postpone_load(step)) {
      make_room(unit);
      for (; step < unit.past; ++step) {
        residents_.run(step);
      }
      set_pinned(unit, false);
    }
    step = unit.past;
  }
}

// Consecutive products accumulating into one tensor, or any other instruction alone. Evicting
// inside such a run would send every operand through the same few slots.
Spilling::Unit Spilling::unit_from(std::size_t step) const {
  const auto target = [&](std::size_t i) -> const Buffer* {
    for (const Use& use : lifetimes_.uses_of(i)) {
      if (use.kind == AccessKind::kAccumulate) {
        return use.tensor->buffer().get();
      }
    }
    return nullptr;
  };
  const Buffer* buffer = target(step);
  std::size_t past = step + 1;
  while (buffer != nullptr && past < lifetimes_.steps().size() && target(past) == buffer) {
    ++past;
  }
  return {step, past};
}

// Takes a load out that can wait, whole or in part: it comes back in front of the tile's first use.
bool Spilling::postpone_load(std::size_t step) {
  for (const Use& use : lifetimes_.uses_of(step)) {
    if (use.tile != kNoTile) {
      Tenant& tenant = residents_.tenant(use.tile);
      if (tenant.loads > 0 && step <= tenant.tile->uses[tenant.loads - 1]) {
        tenant.next_use = tenant.loads;
        return true;
      }
    }
  }
  return false;
}

// Everything the unit touches onto the chip, pinned there. A unit that asks for too much becomes
// shorter; a single instruction gets an empty SBUF, once.
void Spilling::make_room(Unit& unit) {
  bool repacked = false;
  while (true) {
    set_pinned(unit, true);
    const std::size_t served = bring_in_operands(unit);
    if (served == unit.past) {
      return;
    }
    set_pinned(unit, false);
    if (served > unit.first) {
      unit.past = served;
    } else if (!repacked) {
      eviction_.empty_sbuf(unit.first);
      repacked = true;
    } else {
      throw_sbuf_capacity(program_, lifetimes_, machine_, unit.first);
    }
  }
}

// The first step of the unit whose operands do not fit beside those of the steps before.
std::size_t Spilling::bring_in_operands(const Unit& unit) {
  for (std::size_t step = unit.first; step < unit.past; ++step) {
    for (const Use& use : lifetimes_.uses_of(step)) {
      if (use.tile != kNoTile && !residents_.tenant(use.tile).stay && !bring_in(use.tile, unit)) {
        return step;
      }
    }
  }
  return unit.past;
}

void Spilling::set_pinned(const Unit& unit, bool pinned) {
  for (std::size_t step = unit.first; step < unit.past; ++step) {
    for (const Use& use : lifetimes_.uses_of(step)) {
      if (use.tile != kNoTile) {
        residents_.tenant(use.tile).pinned = pinned;
      }
    }
  }
}

// Gives an absent tile a place and its contents. False: there is no place.
bool Spilling::bring_in(std::int32_t tile, const Unit& unit) {
  const Tenant& tenant = residents_.tenant(tile);
  const int worker = lifetimes_.steps()[unit.first].worker();
  if (tenant.tile->psum()) {
    if (!residents_.move_in(tile, unit.first, worker, Search::kOldest) &&
        !residents_.move_in(tile, unit.first, worker, Search::kTightest)) {
      throw_psum_capacity(program_, lifetimes_, machine_, *tenant.tile, unit.first);
    }
    return true;
  }
  const std::optional<std::int64_t> start = find_or_empty(tenant, unit);
  if (!start) {
    return false;
  }
  residents_.move_in_at(tile, *start);
  refill(tile, unit.first);
  return true;
}

std::optional<std::int64_t> Spilling::find_or_empty(const Tenant& tenant, const Unit& unit) {
  const std::int64_t bytes = tenant.tile->bytes;
  const int worker = lifetimes_.steps()[unit.first].worker();
  std::optional<std::int64_t> start =
      residents_.memories().find_in_sbuf(bytes, tenant.refilled() ? -1 : worker);
  if (start && tenant.refilled()) {
    // A load may take the place of a clean tile that has been idle longer than any free range: its
    // arrival then does not wait for the newest reader.
    const auto rotated = eviction_.empty_window(bytes, Eviction::Victims::kClean, unit.first);
    start = rotated ? rotated : start;
  }
  return start ? start : eviction_.empty_window(bytes, Eviction::Victims::kAll, unit.first);
}

// From its slot in HBM scratch, or from where the kernel loads it.
void Spilling::refill(std::int32_t tile, std::size_t step) {
  Tenant& tenant = residents_.tenant(tile);
  if (!tenant.refilled()) {
    return;
  }
  if (tenant.spilled) {
    residents_.reload(tile, step);
    return;
  }
  for (std::size_t part = 0; part < tenant.loads; ++part) {
    residents_.load(tenant.tile->uses[part],
                    tenant.has_contents ? Insertion::kReload : Insertion::kRecorded);
  }
  tenant.has_contents = true;
  tenant.clean = true;
}

}  // namespace trena
