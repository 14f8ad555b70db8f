// tensor_scalar: (data op0 operand0) op1 operand1, the operands broadcast along the row (hw.md
// §2.3, §2.7; nki.md §5.3-17).
#pragma once

#include <optional>

#include "trena/isa/rules.h"
#include "trena/number/vector_math.h"

namespace trena {

// data op operand, or operand op data.
struct ScalarStep {
  AluOp op = AluOp::kBypass;
  Operand operand = 0.0;
  bool reverse = false;
};

struct TensorScalar {
  Tensor dst;
  Tensor data;
  ScalarStep first;
  std::optional<ScalarStep> second;
  EngineRequest engine;
};
std::unique_ptr<Instruction> make_instruction(TensorScalar args);

}  // namespace trena
