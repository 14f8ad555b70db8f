// tensor_tensor_scan: state = (data0 op0 state) op1 data1, along the row (hw.md §2.3).
#pragma once

#include "trena/isa/rules.h"
#include "trena/number/vector_math.h"

namespace trena {

struct ScanOperators {
  AluOp op0 = AluOp::kMultiply;
  AluOp op1 = AluOp::kAdd;
  bool reverse0 = false;  // state op0 data0
  bool reverse1 = false;  // data1 op1 (...)
};

struct TensorTensorScan {
  Tensor dst;
  Tensor data0;
  Tensor data1;
  Operand initial;
  ScanOperators operators;
};
std::unique_ptr<Instruction> make_instruction(TensorTensorScan args);

}  // namespace trena
