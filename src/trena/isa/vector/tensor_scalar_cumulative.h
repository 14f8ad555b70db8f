// tensor_scalar_cumulative: running sums, products or extremes of src op0 imm0 (hw.md §2.3, §3.7).
#pragma once

#include "trena/isa/reduce.h"

namespace trena {

class TensorScalarCumulative final : public Instruction {
 public:
  // reduction.op is op1; reduction.initial is imm1.
  TensorScalarCumulative(Tensor dst, Tensor src, AluOp op0, Operand operand0, Reduction reduction)
      : dst_(std::move(dst)),
        src_(std::move(src)),
        op0_(op0),
        operand0_(std::move(operand0)),
        reduction_(std::move(reduction)) {}

  std::string_view name() const override { return "tensor_scalar_cumulative"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;
  IndirectOperands indirect_operands() const override { return {&dst_, &src_}; }

 private:
  Tensor dst_;
  Tensor src_;
  AluOp op0_;
  Operand operand0_;
  Reduction reduction_;
};

}  // namespace trena
