// nc_matmul_mx: the product of MX-quantised tiles, dequantised on the way (hw.md §2.2, §3.6).
#pragma once

#include <vector>

#include "trena/isa/mx.h"
#include "trena/isa/tensor/product_rules.h"

namespace trena {

struct MatmulMxOptions {
  std::optional<RowColumn> tile_position;  // rows only
  std::optional<RowColumn> tile_size;
  std::optional<bool> accumulate;  // none: per location, the first overwrites
};

// dst[m][n] (+)= sum over groups g of 2^(sa[g][m] - 127) · 2^(sb[g][n] - 127) · dot, where dot is
// the float32 sum of the 32 products of the group in the order of tile_product. Groups add in
// ascending order, in float32. A scale of 255 is NaN (OCP MX).
struct NcMatmulMx {
  Tensor dst;
  Tensor stationary;
  Tensor moving;
  Tensor stationary_scale;
  Tensor moving_scale;
  MatmulMxOptions options;
};
std::unique_ptr<Instruction> make_instruction(NcMatmulMx args);

}  // namespace trena
