// Inside the tile product: packed operands and the kernels over them. Included by number/ only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace trena::tile {

// Moving columns of one panel. The unit of work of a thread, and what a kernel keeps in the
// first-level cache.
inline constexpr std::size_t kPanelColumns = 64;
// Contraction rows packed at a time; longer contractions go through `out` between pieces. Even.
inline constexpr std::size_t kContractionChunk = 128;
// Columns are padded to this; a divisor of every kernel's vector step.
inline constexpr std::size_t kColumnStep = 16;

// A column pair block: `pairs` rows of 32-bit words, each holding k (low half) and k+1 (high half)
// as bfloat16, or 2·pairs rows of float32.
struct PackedProduct {
  const std::byte* stationary;  // row pitch `stationary_pitch` 32-bit words
  std::size_t stationary_pitch;
  const std::byte* moving;  // row pitch kPanelColumns words
  std::size_t pairs;
  std::size_t rows;  // stationary columns
  std::size_t
      columns;  // moving columns of this panel, ≤ kPanelColumns; the rest up to kColumnStep is zero
  float* out;
  std::ptrdiff_t out_pitch;
  bool accumulate;
};

// vdpbf16ps; only where cpu_has_bfloat16_dot().
void multiply_bfloat16_dot(const PackedProduct& product);
void pack_pairs_bfloat16(const std::uint16_t* even, const std::uint16_t* odd, std::size_t count,
                         std::uint32_t* out);
// Of floats that bfloat16 holds exactly.
void pack_pairs_float32(const float* even, const float* odd, std::size_t count, std::uint32_t* out);

// Calls fn(count, row) for blocks of kMost rows, then for one of what is left: `count` is an
// std::integral_constant, because a kernel keeps its block in registers.
template <std::size_t kMost, typename Fn>
void for_each_row_block(std::size_t rows, const Fn& fn, std::size_t row = 0) {
  for (; row + kMost <= rows; row += kMost) {
    fn(std::integral_constant<std::size_t, kMost>(), row);
  }
  if constexpr (kMost > 1) {
    for_each_row_block<kMost - 1>(rows, fn, row);
  }
}

}  // namespace trena::tile
