// Whom Placement puts out of SBUF when room is missing: the window of neighbouring ranges that has
// been idle longest for the transfers it costs (docs/placement.md).
#pragma once

#include <cstdint>
#include <optional>

#include "trena/core/placement/idle_window.h"
#include "trena/core/placement/residents.h"

namespace trena {

class Eviction {
 public:
  explicit Eviction(Residents& residents) : residents_(residents) {}

  enum class Victims { kClean, kAll };  // that equal their HBM source or slot; computed ones too

  // Empties `bytes` for the instruction at `step`, and says where. None: pinned tiles are in the
  // way everywhere, or computed ones where only clean ones may go.
  std::optional<std::int64_t> empty_window(std::int64_t bytes, Victims victims, std::size_t step);
  void empty_sbuf(std::size_t step);

 private:
  std::optional<Idleness> idleness(const Ranges::Range& range, Victims victims,
                                   std::size_t step) const;
  std::optional<std::int64_t> idlest_window(std::int64_t bytes, Victims victims, std::size_t step);
  void evict(std::int32_t tile, std::size_t step);

  Residents& residents_;
  IdleWindow window_;
};

}  // namespace trena
