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

class TensorTensorScan final : public Instruction {
 public:
  TensorTensorScan(Tensor dst, Tensor data0, Tensor data1, Operand initial, ScanOperators operators)
      : dst_(std::move(dst)),
        data0_(std::move(data0)),
        data1_(std::move(data1)),
        initial_(std::move(initial)),
        operators_(operators) {}

  std::string_view name() const override { return "tensor_tensor_scan"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  Tensor dst_;
  Tensor data0_;
  Tensor data1_;
  Operand initial_;
  ScanOperators operators_;
};

}  // namespace trena
