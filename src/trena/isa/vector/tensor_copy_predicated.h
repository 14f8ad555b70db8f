// tensor_copy_predicated: copies where the predicate holds, keeps dst elsewhere (hw.md §2.3; nki.md
// §5.3-18).
#pragma once

#include "trena/isa/rules.h"

namespace trena {

struct TensorCopyPredicated {
  // src is a tile or a number; with `reverse` elements are copied where the predicate is 0.
  Tensor dst;
  Operand src;
  Tensor predicate;
  bool reverse;
};
std::unique_ptr<Instruction> make_instruction(TensorCopyPredicated args);

}  // namespace trena
