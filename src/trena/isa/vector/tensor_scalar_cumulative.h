// tensor_scalar_cumulative: running sums, products or extremes of src op0 imm0 (hw.md §2.3, §3.7).
#pragma once

#include "trena/isa/reduce.h"

namespace trena {

struct TensorScalarCumulative {
  // reduction.op is op1; reduction.initial is imm1.
  Tensor dst;
  Tensor src;
  AluOp op0;
  Operand operand0;
  Reduction reduction;
};
std::unique_ptr<Instruction> make_instruction(TensorScalarCumulative args);

}  // namespace trena
