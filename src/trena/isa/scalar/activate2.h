// activate2: op((data op0 imm0) op1 imm1), and a reduction of choice on the way (hw.md §2.3). v4.
#pragma once

#include "trena/isa/scalar/activation.h"
#include "trena/isa/vector/tensor_scalar.h"

namespace trena {

class Activate2 final : public Instruction {
 public:
  Activate2(Tensor dst, MathFunction function, Tensor data, ScalarStep first, ScalarStep second,
            Operand relu_param, Reduction reduction)
      : dst_(std::move(dst)),
        function_(function),
        data_(std::move(data)),
        first_(std::move(first)),
        second_(std::move(second)),
        relu_param_(std::move(relu_param)),
        reduction_(std::move(reduction)) {}

  std::string_view name() const override { return "activate2"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;
  IndirectOperands indirect_operands() const override { return {&dst_, &data_}; }

 private:
  void check_steps() const;
  void check_operand(const Machine& machine, std::string_view role, const Operand& operand) const;

  Tensor dst_;
  MathFunction function_;
  Tensor data_;
  ScalarStep first_;
  ScalarStep second_;
  Operand relu_param_;  // the slope of prelu; other functions do not look at it
  Reduction reduction_;
};

}  // namespace trena
