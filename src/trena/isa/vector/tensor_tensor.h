// tensor_tensor: data1 op data2, element by element (hw.md §2.3, §3.3; nki.md §5.2-9).
#pragma once

#include "trena/isa/rules.h"
#include "trena/number/vector_math.h"

namespace trena {

struct TensorTensor {
  Tensor dst;
  Tensor data1;
  Tensor data2;
  AluOp op;
  EngineRequest engine;
};
std::unique_ptr<Instruction> make_instruction(TensorTensor args);

}  // namespace trena
