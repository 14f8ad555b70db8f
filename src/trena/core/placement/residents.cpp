#include "trena/core/placement/residents.h"

namespace trena {

Residents::Residents(const Lifetimes& lifetimes, const ManualAddresses& manual,
                     const Machine& machine)
    : lifetimes_(lifetimes), memories_(manual, machine), writer_(lifetimes, manual, machine) {
  tenants_.reserve(lifetimes.tiles().size());
  for (const Tile& tile : lifetimes.tiles()) {
    tenants_.emplace_back().tile = &tile;
  }
}

bool Residents::move_in(std::int32_t tile, std::size_t step, int worker, Search search) {
  const auto place = memories_.find(lifetimes_.tile(tile), step, worker, search);
  if (!place) {
    return false;
  }
  tenant(tile).lent = place->lent;
  move_in_at(tile, place->start);
  return true;
}

void Residents::move_in_at(std::int32_t tile, std::int64_t start) {
  Tenant& tenant = this->tenant(tile);
  tenant.stay = writer_.next_stay();
  tile_of_stay_.push_back(tile);
  writer_.begin_stay(tenant, start, memories_.take(tenant, start));
}

void Residents::move_out(Tenant& tenant, std::size_t step, int worker) {
  memories_.release(tenant, step, worker);
  writer_.end_stay(*tenant.stay);
  tenant.stay.reset();
}

void Residents::run(std::size_t step) {
  writer_.write(step, Insertion::kRecorded, tenants_, memories_.lent_banks());
  note_uses(step);
  for (const Use& use : lifetimes_.uses_of(step)) {
    if (use.tile != kNoTile) {
      Tenant& tenant = this->tenant(use.tile);
      if (tenant.dead() && tenant.stay) {
        move_out(tenant, step, lifetimes_.steps()[step].worker());
      }
    }
  }
}

// What the instruction left in its tiles, and when they are wanted next.
void Residents::note_uses(std::size_t step) {
  for (const Use& use : lifetimes_.uses_of(step)) {
    if (use.tile == kNoTile) {
      continue;
    }
    Tenant& tenant = this->tenant(use.tile);
    if (!only_reads(use.kind)) {
      tenant.clean = false;
      tenant.spilled = false;
      tenant.has_contents = true;
    }
    while (!tenant.dead() && tenant.tile->uses[tenant.next_use] <= step) {
      ++tenant.next_use;
    }
    tenant.last_use = step;
  }
}

void Residents::load(std::size_t step, Insertion insertion) {
  writer_.write(step, insertion, tenants_, memories_.lent_banks());
}

void Residents::spill(std::int32_t tile, std::size_t step) {
  writer_.write_move(tile, tenant(tile), SpillMove::Direction::kStore, step);
  tenant(tile).clean = true;
  tenant(tile).spilled = true;
}

void Residents::reload(std::int32_t tile, std::size_t step) {
  writer_.write_move(tile, tenant(tile), SpillMove::Direction::kReload, step);
}

}  // namespace trena
