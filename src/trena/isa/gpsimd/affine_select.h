// affine_select: where an affine value compares with 0 the tile's element, elsewhere a constant:
// causal masks (hw.md §2.3, §2.4).
#pragma once

#include "trena/isa/gpsimd/affine_pattern.h"
#include "trena/number/vector_math.h"

namespace trena {

struct AffineSelect {
  Tensor dst;
  AffinePattern pattern;
  Tensor on_true;
  float on_false;
  AluOp compare;
};
std::unique_ptr<Instruction> make_instruction(AffineSelect args);

}  // namespace trena
