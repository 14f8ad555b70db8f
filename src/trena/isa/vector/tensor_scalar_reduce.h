// tensor_scalar_reduce: data op0 operand0, and its reduction along the row on the way (hw.md §2.3,
// §3.7).
#pragma once

#include "trena/isa/reduce.h"
#include "trena/isa/vector/tensor_scalar.h"

namespace trena {

struct TensorScalarReduce {
  // `negate` changes what is read out, not the accumulator.
  Tensor dst;
  Tensor data;
  ScalarStep step;
  Reduction reduction;
  bool negate;
};
std::unique_ptr<Instruction> make_instruction(TensorScalarReduce args);

}  // namespace trena
