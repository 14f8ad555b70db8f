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

class Activation final : public Instruction {
 public:
  Activation(Tensor dst, MathFunction function, ActivationInput input, Reduction reduction,
             std::string_view name = "activation")
      : dst_(std::move(dst)),
        function_(function),
        input_(std::move(input)),
        reduction_(std::move(reduction)),
        name_(name) {}

  // The same with reduce_cmd=reset_reduce.
  static std::unique_ptr<Activation> reduce(Tensor dst, MathFunction function,
                                            ActivationInput input, AluOp op,
                                            std::optional<Tensor> result);

  std::string_view name() const override { return name_; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;
  IndirectOperands indirect_operands() const override { return {&dst_, &input_.data}; }

 private:
  const Tensor& data() const { return input_.data; }
  bool has_bias() const { return input_.bias && function_ != MathFunction::kCopy; }
  void check_bias(const Machine& machine) const;
  int operand_reads(const ScalarEngine& scalar) const;

  Tensor dst_;
  MathFunction function_;
  ActivationInput input_;
  Reduction reduction_;
  std::string_view name_;
};

}  // namespace trena
