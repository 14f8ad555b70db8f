// scalar_tensor_tensor: (data op0 operand0) op1 operand1, where operand1 is a tile (hw.md §2.3).
#pragma once

#include "trena/isa/rules.h"
#include "trena/isa/vector/tensor_scalar.h"

namespace trena {

class ScalarTensorTensor final : public Instruction {
 public:
  ScalarTensorTensor(Tensor dst, Tensor data, ScalarStep first, AluOp op1, Tensor operand1,
                     bool reverse1)
      : dst_(std::move(dst)),
        data_(std::move(data)),
        first_(std::move(first)),
        op1_(op1),
        operand1_(std::move(operand1)),
        reverse1_(reverse1) {}

  std::string_view name() const override { return "scalar_tensor_tensor"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  Tensor dst_;
  Tensor data_;
  ScalarStep first_;
  AluOp op1_;
  Tensor operand1_;
  bool reverse1_;
};

}  // namespace trena
