// One memory's bytes per partition, cut into ranges: who lives where, and since when the rest is
// free.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "trena/isa/instruction.h"

namespace trena {

// A tensor's stay at one address, from its first write or reload to its last access or eviction.
using Stay = std::uint32_t;

// Bytes per partition, [first, past).
struct ByteSpan {
  std::int64_t first;
  std::int64_t past;
  auto operator<=>(const ByteSpan&) const = default;
};

class Ranges {
 public:
  struct Range {
    std::int64_t start = 0;
    std::int64_t length = 0;
    std::optional<Stay> stay;    // empty: free
    std::int64_t freed_at = -1;  // program index of the last access before it became free
    int freed_by = -1;           // engine of that access; -1: a DMA
  };

  // `barred` ranges belong to manual tensors and are never given out.
  Ranges(std::int64_t size_bytes, const std::vector<ByteSpan>& barred);

  // Of the runs of free ranges that hold `length`: the one whose newest stamp is oldest. Adjacent
  // free ranges join but keep their own stamps, so a run is as new as its newest part (hw.md §2.7,
  // allocator). With `freed_by`, only ranges last used on that engine, whose next tenant needs no
  // wait between engines, or never used, whose first one needs none at all.
  std::optional<std::int64_t> find_oldest(std::int64_t length,
                                          std::optional<int> freed_by = {}) const;
  // The smallest hole that holds `length`: for programs that the first rule fragments.
  std::optional<std::int64_t> find_tightest(std::int64_t length) const;

  // Occupies [start, start + length), which must be free; returns the former stays of these bytes.
  std::vector<Stay> take(std::int64_t start, std::int64_t length, Stay stay);
  void release(Stay stay, std::int64_t index, int engine);
  // All free space becomes one kind: used before repacking.
  void forget_stamps();

  const std::map<std::int64_t, Range>& by_start() const { return ranges_; }
  // Of a stay that lives here now.
  std::int64_t start_of(Stay stay) const { return starts_[stay]; }

 private:
  using ByStart = std::map<std::int64_t, Range>;
  using ByAge = std::map<std::pair<std::int64_t, std::int64_t>, ByStart::iterator>;

  struct Former {
    std::int64_t end;
    Stay stay;
  };

  void note_free(ByStart::iterator range);
  void add(const Range& range);
  ByStart::iterator remove(ByStart::iterator range);
  std::optional<std::int64_t> find_in(const ByAge& ages, std::int64_t length,
                                      std::optional<int> freed_by) const;
  std::vector<Stay> replace_former(std::int64_t start, std::int64_t end, Stay stay);

  ByStart ranges_;  // gapless but for barred ranges
  // Free ranges by age, then start: never used; used before; of these, by the engine that was last
  // (0: a DMA).
  ByAge untouched_;
  ByAge used_;
  std::array<ByAge, kEngineCount + 1> used_by_;
  std::vector<std::int64_t> starts_;       // by stay
  std::map<std::int64_t, Former> former_;  // last tenants by start, not overlapping
};

}  // namespace trena
