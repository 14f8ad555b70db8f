// Casts between element types: scalars, rows and whole arrays.
//
// float32 is the common language: DVE, ACT and DMA convert to fp32, compute, and cast on the way
// out (hw.md §3.3). Casts round to nearest even; fp -> int rounds half to even and saturates, NaN
// becomes 0 (hw.md §3.3). fp8 overflow is not saturated (hw.md §7 row 22): e4m3 (legacy, IEEE
// style, max 240), e5m2 and e3m4 give Inf, e4m3fn (max 448, no Inf) gives NaN. e8m0 has no zero and
// no sign: such values give NaN (0xFF). A NaN is written as the type's quiet NaN with the sign
// kept. Denormals are exact in both directions. These functions give the same bytes under every
// SIMD target and in every floating-point mode (float64, a host type, follows the mode). The x4
// types have no single value: pack_x4_row and unpack_x4_row handle them; the rest throws
// `dtype-packed`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "trena/number/dtype.h"

namespace trena {

float to_float(DType dtype, const std::byte* source);
void from_float(DType dtype, float value, std::byte* destination);

// Rows of `count` elements, `stride_bytes` apart (any sign; 0 reads one element again and again).
void read_row(DType dtype, const std::byte* source, std::ptrdiff_t stride_bytes, std::size_t count,
              float* out);
void write_row(DType dtype, const float* values, std::byte* destination,
               std::ptrdiff_t stride_bytes, std::size_t count);

// `rows` rows of `columns` elements, into rows `out_pitch` floats apart.
void read_rows(DType dtype, const std::byte* source, std::ptrdiff_t row_stride_bytes,
               std::ptrdiff_t column_stride_bytes, std::size_t rows, std::size_t columns,
               float* out, std::size_t out_pitch);

// Exact integer rows. Reading: integers keep their value (int64 saturates), floats round as fp ->
// int32 does. Writing: saturates to the destination's range; a float destination rounds once.
void read_row_int32(DType dtype, const std::byte* source, std::ptrdiff_t stride_bytes,
                    std::size_t count, std::int32_t* out);
void write_row_int32(DType dtype, const std::int32_t* values, std::byte* destination,
                     std::ptrdiff_t stride_bytes, std::size_t count);
void read_row_uint32(DType dtype, const std::byte* source, std::ptrdiff_t stride_bytes,
                     std::size_t count, std::uint32_t* out);
void write_row_uint32(DType dtype, const std::uint32_t* values, std::byte* destination,
                      std::ptrdiff_t stride_bytes, std::size_t count);

// The raw bits of 1-, 2- and 4-byte elements, zero-extended; writing keeps the low bits. For bitvec
// operators, which act on raw integer bits (hw.md §3.3), and for random integers (§3.7).
void read_row_bits(std::size_t element_bytes, const std::byte* source, std::ptrdiff_t stride_bytes,
                   std::size_t count, std::uint32_t* out);
void write_row_bits(std::size_t element_bytes, const std::uint32_t* values, std::byte* destination,
                    std::ptrdiff_t stride_bytes, std::size_t count);

// Moves elements without touching their bits (hw.md §3.3: same type in and out). Rows must not
// overlap.
void copy_row(std::size_t element_bytes, const std::byte* source,
              std::ptrdiff_t source_stride_bytes, std::byte* destination,
              std::ptrdiff_t destination_stride_bytes, std::size_t count);

// x4 types: `count` packed elements are 4·count floats. fp4 (e2m1) saturates at ±6, as ml_dtypes
// does.
void unpack_x4_row(DType dtype, const std::byte* source, std::ptrdiff_t stride_bytes,
                   std::size_t count, float* out);
void pack_x4_row(DType dtype, const float* values, std::byte* destination,
                 std::ptrdiff_t stride_bytes, std::size_t count);

// Casts a contiguous array of `count` elements through float32, as DMA does; bit-exact when both
// types match. Between integers of which one is a 64-bit host type the value is kept, or saturated.
void cast(DType source_dtype, const std::byte* source, DType destination_dtype,
          std::byte* destination, std::size_t count);

// x rounded to tfloat32: 10 mantissa bits, nearest even, stored in 32 bits (hw.md §3.1).
float round_to_tfloat32(float value);

// Stochastic rounding (hw.md §3.4): rounds away from zero with probability equal to the discarded
// fraction. The generator behind the hardware's is not documented; this one is a counter through
// splitmix64, so the same seed and the same sequence of calls give the same bytes. Integers and
// e8m0 round as write_row does.
class StochasticRounder {
 public:
  explicit StochasticRounder(std::uint64_t seed) : state_(seed) {}
  void write_row(DType dtype, const float* values, std::byte* destination,
                 std::ptrdiff_t stride_bytes, std::size_t count);

 private:
  std::uint64_t next();
  std::uint64_t state_;
};

}  // namespace trena
