// The product of the tensor engine: out[m][n] (+)= Σ_k stationary[k][m] · moving[k][n], summed in
// float32.
//
// The order of the sum is fixed, and is what `vdpbf16ps` does: k = 1, 0, 3, 2, 5, 4, … with one
// fused multiply-add per step, starting from the old value (accumulate) or +0; an odd contraction
// is padded with zero. Denormals are zero: operands, partial sums and results. A NaN result is
// 0x7FC00000. So the bytes are the same on every machine, SIMD target and thread count (host.md
// §2). The order of the sum on hardware is not documented (hw.md §7 row 21).
#pragma once

#include <cstddef>

#include "trena/number/dtype.h"

namespace trena {

struct TileOperand {
  DType dtype;
  const std::byte* data;
  std::ptrdiff_t row_stride_bytes;     // between contraction rows k
  std::ptrdiff_t column_stride_bytes;  // between free elements
};

// dtypes: bfloat16, fp8, int8 and uint8 take the bfloat16 path (exact in it), the others float32;
// tfloat32 operands are rounded to tfloat32 first. `out` has stationary_columns rows of
// moving_columns floats, `out_row_stride_floats` apart. Which pairs of types a machine accepts is
// isa/'s business (hw.md §3.2).
void tile_product(const TileOperand& stationary, const TileOperand& moving, std::size_t contraction,
                  std::size_t stationary_columns, std::size_t moving_columns, float* out,
                  std::ptrdiff_t out_row_stride_floats, bool accumulate);

// Test hook: while set, element [0][0] of every product gets the wrong sign, so that a test can
// prove that a result really came through here. Costs one relaxed load per product.
void set_product_fault(bool on);

}  // namespace trena
