// scalar_tensor_tensor: (data op0 operand0) op1 operand1, where operand1 is a tile (hw.md §2.3).
#pragma once

#include "trena/isa/rules.h"
#include "trena/isa/vector/tensor_scalar.h"

namespace trena {

struct ScalarTensorTensor {
  Tensor dst;
  Tensor data;
  ScalarStep first;
  AluOp op1;
  Tensor operand1;
  bool reverse1;
};
std::unique_ptr<Instruction> make_instruction(ScalarTensorTensor args);

}  // namespace trena
