// The vdpbf16ps kernel. Its functions alone are compiled for AVX512-BF16; whoever calls them asked
// the CPU first.
#include <bit>

#include "trena/number/simd.h"
#include "trena/number/tile_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define TRENA_BFLOAT16_DOT \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,prefer-vector-width=512")))
#endif

namespace trena::tile {

#if defined(__x86_64__)

namespace {

constexpr std::size_t kLanes = 16;
constexpr std::size_t kRowsPerBlock = 6;  // 6 x 4 accumulators of 32 registers

template <std::size_t kRows, std::size_t kVectors>
TRENA_BFLOAT16_DOT void block(const PackedProduct& product, std::size_t row, std::size_t column,
                              __mmask16 last_mask) {
  const auto* stationary = reinterpret_cast<const int*>(product.stationary) + row;
  const auto* moving = reinterpret_cast<const int*>(product.moving) + column;
  float* out = product.out + static_cast<std::ptrdiff_t>(row) * product.out_pitch + column;
  const auto mask = [&](std::size_t v) -> __mmask16 {
    return v + 1 == kVectors ? last_mask : __mmask16{0xFFFF};
  };
  __m512 sums[kRows][kVectors];
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      sums[r][v] =
          product.accumulate
              ? _mm512_maskz_loadu_ps(
                    mask(v), out + static_cast<std::ptrdiff_t>(r) * product.out_pitch + v * kLanes)
              : _mm512_setzero_ps();
    }
  }
  for (std::size_t pair = 0; pair < product.pairs; ++pair) {
    __m512i columns[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) {
      columns[v] = _mm512_loadu_si512(moving + pair * kPanelColumns + v * kLanes);
    }
    for (std::size_t r = 0; r < kRows; ++r) {
      const __m512i weight = _mm512_set1_epi32(stationary[pair * product.stationary_pitch + r]);
      for (std::size_t v = 0; v < kVectors; ++v) {
        sums[r][v] = _mm512_dpbf16_ps(sums[r][v], reinterpret_cast<__m512bh>(weight),
                                      reinterpret_cast<__m512bh>(columns[v]));
      }
    }
  }
  const __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7FC00000));
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      const __mmask16 is_nan = _mm512_cmp_ps_mask(sums[r][v], sums[r][v], _CMP_UNORD_Q);
      _mm512_mask_storeu_ps(out + static_cast<std::ptrdiff_t>(r) * product.out_pitch + v * kLanes,
                            mask(v), _mm512_mask_mov_ps(sums[r][v], is_nan, nan));
    }
  }
}

template <std::size_t kRows>
TRENA_BFLOAT16_DOT void row_block(const PackedProduct& product, std::size_t row) {
  std::size_t column = 0;
  if (product.columns == kPanelColumns) {
    return block<kRows, 4>(product, row, 0, 0xFFFF);
  }
  for (; column + 2 * kLanes <= product.columns; column += 2 * kLanes) {
    block<kRows, 2>(product, row, column, 0xFFFF);
  }
  for (; column < product.columns; column += kLanes) {
    const std::size_t left = product.columns - column;
    block<kRows, 1>(product, row, column,
                    left >= kLanes ? __mmask16{0xFFFF} : static_cast<__mmask16>((1U << left) - 1U));
  }
}

}  // namespace

TRENA_BFLOAT16_DOT void multiply_bfloat16_dot(const PackedProduct& product) {
  for_each_row_block<kRowsPerBlock>(
      product.rows, [&](auto count, std::size_t row) { row_block<count()>(product, row); });
}

TRENA_BFLOAT16_DOT void pack_pairs_bfloat16(const std::uint16_t* even, const std::uint16_t* odd,
                                            std::size_t count, std::uint32_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = std::uint32_t{even[i]} | std::uint32_t{odd[i]} << 16U;
  }
}

TRENA_BFLOAT16_DOT void pack_pairs_float32(const float* even, const float* odd, std::size_t count,
                                           std::uint32_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = std::bit_cast<std::uint32_t>(even[i]) >> 16U |
             (std::bit_cast<std::uint32_t>(odd[i]) & 0xFFFF0000U);
  }
}

#else

void multiply_bfloat16_dot(const PackedProduct&) {}
void pack_pairs_bfloat16(const std::uint16_t*, const std::uint16_t*, std::size_t, std::uint32_t*) {}
void pack_pairs_float32(const float*, const float*, std::size_t, std::uint32_t*) {}

#endif

}  // namespace trena::tile

namespace trena {

bool cpu_has_bfloat16_dot() {
#if defined(__x86_64__)
  static const bool answer =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
      __builtin_cpu_supports("avx512bf16") != 0;
  return answer;
#else
  return false;
#endif
}

}  // namespace trena
