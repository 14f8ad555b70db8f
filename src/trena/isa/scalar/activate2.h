// activate2: op((data op0 imm0) op1 imm1), and a reduction of choice on the way (hw.md §2.3). v4.
#pragma once

#include "trena/isa/scalar/activation.h"
#include "trena/isa/vector/tensor_scalar.h"

namespace trena {

struct Activate2 {
  Tensor dst;
  MathFunction function;
  Tensor data;
  ScalarStep first;
  ScalarStep second;
  Operand relu_param;  // the slope of prelu; other functions do not look at it
  Reduction reduction;
};
std::unique_ptr<Instruction> make_instruction(Activate2 args);

}  // namespace trena
