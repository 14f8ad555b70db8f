// Matrix products (hw.md §2.2): tiles of 128 × 128 × 512, summed over K in PSUM.
#pragma once

#include <optional>

#include "trena/graph/lowering.h"

namespace trena {

// out = beta · bias + alpha · (a @ b). out [M, N], a [M, K], b [K, N] with any strides; bias
// broadcasts to [M, N]. float32, bfloat16 or float16, a and b of one dtype.
struct MatmulScale {
  float alpha = 1.0F;
  float beta = 1.0F;
};
void lower_matmul(Lowering& lowering, const HbmView& out, const HbmView& a, const HbmView& b,
                  const std::optional<HbmView>& bias, MatmulScale scale);

}  // namespace trena
