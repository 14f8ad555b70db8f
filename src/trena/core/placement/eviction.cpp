#include "trena/core/placement/eviction.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace trena {

// What emptying a range would cost, and how long it has been, or will be, idle. None: it must stay.
std::optional<Idleness> Eviction::idleness(const Ranges::Range& range, Victims victims,
                                           std::size_t step) const {
  constexpr double kForEver = std::numeric_limits<double>::max();
  const auto now = static_cast<double>(step);
  if (!range.stay) {
    return Idleness{range.freed_at < 0 ? kForEver : now - static_cast<double>(range.freed_at) + 1,
                    0, -1};
  }
  const Tenant& tenant = residents_.tenant(residents_.tile_of(*range.stay));
  if (tenant.pinned || (!tenant.clean && victims == Victims::kClean)) {
    return std::nullopt;
  }
  const auto last_use = static_cast<double>(tenant.last_use);
  if (tenant.clean) {
    return Idleness{now - last_use, 1, last_use};
  }
  return Idleness{static_cast<double>(tenant.tile->uses[tenant.next_use]) - now, 2, last_use};
}

// Of all shortest runs of `bytes`, looked at in one pass.
std::optional<std::int64_t> Eviction::idlest_window(std::int64_t bytes, Victims victims,
                                                    std::size_t step) {
  struct Best {
    double score = 0;
    double last_use = 0;
    std::int64_t start = 0;
  };
  std::optional<Best> best;
  IdleWindow& window = window_;
  window.restart(0);
  for (const auto& [start, range] : residents_.memories().sbuf().by_start()) {
    const std::optional<Idleness> idleness = this->idleness(range, victims, step);
    if (!idleness || start != window.past()) {
      window.restart(start);
    }
    if (!idleness) {
      continue;
    }
    window.push(range, *idleness);
    for (; window.bytes() >= bytes; window.pop()) {
      const double idle = window.idle();
      if (best && idle < best->score) {
        continue;
      }
      const double score = std::max(idle / std::max(window.transfers(), 1.0), 1e-9);
      if (!best || score > best->score ||
          (score == best->score && window.last_use() < best->last_use)) {
        best = Best{score, window.last_use(), window.start()};
      }
    }
  }
  return best ? std::optional(best->start) : std::nullopt;
}

std::optional<std::int64_t> Eviction::empty_window(std::int64_t bytes, Victims victims,
                                                   std::size_t step) {
  const std::optional<std::int64_t> start = idlest_window(bytes, victims, step);
  if (!start) {
    return std::nullopt;
  }
  std::vector<std::int32_t> tiles;
  const auto& ranges = residents_.memories().sbuf().by_start();
  for (auto at = ranges.find(*start); at != ranges.end() && at->first < *start + bytes; ++at) {
    if (at->second.stay) {
      tiles.push_back(residents_.tile_of(*at->second.stay));
    }
  }
  for (const std::int32_t tile : tiles) {
    evict(tile, step);
  }
  return start;
}

void Eviction::empty_sbuf(std::size_t step) {
  std::vector<std::int32_t> tiles;
  for (const auto& [start, range] : residents_.memories().sbuf().by_start()) {
    if (range.stay) {
      tiles.push_back(residents_.tile_of(*range.stay));
    }
  }
  for (const std::int32_t tile : tiles) {
    evict(tile, step);
  }
  residents_.memories().sbuf().forget_stamps();
}

void Eviction::evict(std::int32_t tile, std::size_t step) {
  Tenant& tenant = residents_.tenant(tile);
  if (tenant.clean) {
    residents_.move_out(tenant, tenant.last_use, -1);
    return;
  }
  residents_.spill(tile, step);
  residents_.move_out(tenant, step, -1);
}

}  // namespace trena
