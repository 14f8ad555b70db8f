// XORWOW (G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8(14), 2003, p. 5): five
// words of xorshift and a Weyl counter. The device names this algorithm, not its constants; the
// published ones stand here (hw.md §3.7), so sequences are Trena's own.
#pragma once

#include <array>
#include <cstdint>

namespace trena {

struct Xorwow {
  static constexpr std::size_t kWords = 6;

  // x, y, z, w, v and the counter d.
  std::array<std::uint32_t, kWords> words{};

  std::uint32_t next() {
    const std::uint32_t t = words[0] ^ (words[0] >> 2);
    words[0] = words[1];
    words[1] = words[2];
    words[2] = words[3];
    words[3] = words[4];
    words[4] = (words[4] ^ (words[4] << 4)) ^ (t ^ (t << 1));
    words[5] += 362437u;
    return words[5] + words[4];
  }

  // A state for each (seed, stream), spread by SplitMix64 so that neighbours have nothing in
  // common.
  static Xorwow seeded(std::uint32_t seed, std::uint32_t stream) {
    Xorwow state;
    std::uint64_t counter = (static_cast<std::uint64_t>(seed) << 32) | stream;
    for (std::uint32_t& word : state.words) {
      counter += 0x9E3779B97F4A7C15u;
      std::uint64_t mixed = counter;
      mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
      mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
      word = static_cast<std::uint32_t>((mixed ^ (mixed >> 31)) >> 32);
    }
    return state;
  }
};

// 24 random bits as a float32 in [0, 1).
inline float unit_interval(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24F; }

}  // namespace trena
