#include "trena/core/placement/memories.h"

namespace trena {

Memories::Memories(const ManualAddresses& manual, const Machine& machine)
    : sbuf_(machine.core.sbuf.usable_bytes(), manual.sbuf()),
      psum_(machine.core.psum.partition_bytes(), manual.psum_banks()),
      lent_banks_(machine.core.psum.partition_bytes(), machine.core.psum.bank_bytes,
                  manual.psum_banks()) {
  for (const Life& owner : manual.owners_of_banks()) {
    lent_banks_.add_owner(owner.buffer->address->offset_bytes, owner.buffer->row_bytes, owner.first,
                          owner.last);
  }
}

std::optional<Memories::Place> Memories::find(const Tile& tile, std::size_t step, int worker,
                                              Search search) const {
  const Ranges& ranges = tile.psum() ? psum_ : sbuf_;
  std::optional<std::int64_t> start;
  if (search == Search::kTightest) {
    start = ranges.find_tightest(tile.bytes);
  } else {
    start = tile.psum() ? psum_.find_oldest(tile.bytes) : find_in_sbuf(tile.bytes, worker);
  }
  if (start) {
    return Place{*start, false};
  }
  if (tile.psum()) {
    start = lent_banks_.find(tile.bytes, step, tile.uses.back());
  }
  return start ? std::optional(Place{*start, true}) : std::nullopt;
}

std::optional<std::int64_t> Memories::find_in_sbuf(std::int64_t bytes, int worker) const {
  std::optional<std::int64_t> start;
  if (worker >= 0) {
    start = sbuf_.find_oldest(bytes, worker);
  }
  return start ? start : sbuf_.find_oldest(bytes);
}

std::vector<Stay> Memories::take(const Tenant& tenant, std::int64_t start) {
  return of(tenant).take(start, tenant.tile->bytes, *tenant.stay);
}

void Memories::release(const Tenant& tenant, std::size_t step, int worker) {
  of(tenant).release(*tenant.stay, static_cast<std::int64_t>(step), worker);
}

}  // namespace trena
