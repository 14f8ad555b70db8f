// tensor_scalar_reduce: data op0 operand0, and its reduction along the row on the way (hw.md §2.3,
// §3.7).
#pragma once

#include "trena/isa/reduce.h"
#include "trena/isa/vector/tensor_scalar.h"

namespace trena {

class TensorScalarReduce final : public Instruction {
 public:
  // `negate` changes what is read out, not the accumulator.
  TensorScalarReduce(Tensor dst, Tensor data, ScalarStep step, Reduction reduction, bool negate)
      : dst_(std::move(dst)),
        data_(std::move(data)),
        step_(std::move(step)),
        reduction_(std::move(reduction)),
        negate_(negate) {}

  std::string_view name() const override { return "tensor_scalar_reduce"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;
  IndirectOperands indirect_operands() const override { return {&dst_, &data_}; }

 private:
  Tensor dst_;
  Tensor data_;
  ScalarStep step_;
  Reduction reduction_;
  bool negate_;
};

}  // namespace trena
