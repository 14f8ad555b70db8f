// activation and activation_reduce: function(data * scale + bias), and the sum of a row on the way
// (hw.md §2.3, §2.4, §3.5; nki.md §5.3-19).
#pragma once

#include "trena/isa/reduce.h"
#include "trena/isa/rules.h"
#include "trena/number/vector_math.h"

namespace trena {

struct ActivationInput {
  Tensor data;
  std::optional<Operand> bias;  // the function `copy` ignores it
  Operand scale = 1.0;
};

// The set of functions that must be resident for this one; `operator-refused` if no set has it.
std::string_view require_activation_table(const Machine& machine, MathFunction function);

// An instruction of the scalar engine that streams `data` through a function and may read its
// accumulators out afterwards.
Cost activation_cost(const Machine& machine, MathFunction function, const Tensor& dst,
                     const Tensor& data, const Reduction& reduction, int operand_reads);

struct Activation {
  Tensor dst;
  MathFunction function;
  ActivationInput input;
  Reduction reduction;
  std::string_view name = "activation";
};
std::unique_ptr<Instruction> make_instruction(Activation args);

// activation with reduce_cmd=reset_reduce.
Activation activation_reduce(Tensor dst, MathFunction function, ActivationInput input, AluOp op,
                             std::optional<Tensor> result);

}  // namespace trena
