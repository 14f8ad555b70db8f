// Time is int64 femtoseconds: exact for every sum, 2.5 hours before it overflows, and fine enough
// that a cycle of any clock is rounded by less than one part in 10^5.
#pragma once

#include <cmath>
#include <cstdint>

namespace trena {

using Ticks = std::int64_t;

inline constexpr Ticks kTicksPerNs = 1'000'000;
inline constexpr Ticks kTicksPerUs = 1'000 * kTicksPerNs;

// Nearest tick of a duration in nanoseconds.
inline Ticks ticks_from_ns(double ns) {
  return static_cast<Ticks>(std::llround(ns * static_cast<double>(kTicksPerNs)));
}

// Nearest tick of a count of cycles. The whole count is converted at once, so that a long
// instruction does not add up the rounding of each of its cycles.
inline Ticks ticks(double cycles, double clock_ghz) { return ticks_from_ns(cycles / clock_ghz); }

inline double ns_from_ticks(Ticks time) {
  return static_cast<double>(time) / static_cast<double>(kTicksPerNs);
}

inline double us_from_ticks(Ticks time) {
  return static_cast<double>(time) / static_cast<double>(kTicksPerUs);
}

}  // namespace trena
