// Free space on one core: SBUF by bytes, PSUM by banks, and the banks that the kernel addresses
// itself. Says where a tile could stay, and remembers who does.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trena/core/placement/lent_banks.h"
#include "trena/core/placement/manual_addresses.h"
#include "trena/core/placement/ranges.h"
#include "trena/core/placement/tenant.h"

namespace trena {

// Of all holes: the one that was left longest ago, or the smallest that is large enough.
enum class Search : std::uint8_t { kOldest, kTightest };

class Memories {
 public:
  Memories(const ManualAddresses& manual, const Machine& machine);

  struct Place {
    std::int64_t start = 0;
    bool lent = false;
  };
  // For a tile whose first access at `step` is by `worker` (Step::worker). None: no hole.
  std::optional<Place> find(const Tile& tile, std::size_t step, int worker, Search search) const;
  // The oldest hole in SBUF, rather one that the same engine left: its next tenant waits for no
  // other engine. A DMA (-1) has no such preference.
  std::optional<std::int64_t> find_in_sbuf(std::int64_t bytes, int worker) const;

  // The former stays of the bytes now taken.
  std::vector<Stay> take(const Tenant& tenant, std::int64_t start);
  void release(const Tenant& tenant, std::size_t step, int worker);

  Ranges& sbuf() { return sbuf_; }
  const Ranges& sbuf() const { return sbuf_; }
  const LentBanks& lent_banks() const { return lent_banks_; }

 private:
  Ranges& of(const Tenant& tenant) {
    return tenant.lent ? lent_banks_.guests() : tenant.tile->psum() ? psum_ : sbuf_;
  }

  Ranges sbuf_;
  Ranges psum_;
  LentBanks lent_banks_;
};

}  // namespace trena
