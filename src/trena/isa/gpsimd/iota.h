// iota: an affine pattern of integers, cast to the tile's type (hw.md §2.3).
#pragma once

#include "trena/isa/gpsimd/affine_pattern.h"

namespace trena {

struct Iota {
  Tensor dst;
  AffinePattern pattern;
};
std::unique_ptr<Instruction> make_instruction(Iota args);

}  // namespace trena
