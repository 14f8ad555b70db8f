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

class TensorScalar final : public Instruction {
 public:
  TensorScalar(Tensor dst, Tensor data, ScalarStep first, std::optional<ScalarStep> second,
               EngineRequest engine)
      : dst_(std::move(dst)),
        data_(std::move(data)),
        first_(std::move(first)),
        second_(std::move(second)),
        engine_(engine) {}

  std::string_view name() const override { return "tensor_scalar"; }
  // Unless asked otherwise: GpSimd for rsqrt and power, else the vector engine.
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;
  IndirectOperands indirect_operands() const override { return {&dst_, &data_}; }

 private:
  bool uses(AluOp op) const { return first_.op == op || (second_ && second_->op == op); }
  void check_engine(const Machine& machine, EngineKind engine) const;
  void check_step(const Machine& machine, EngineKind engine, std::string_view op_role,
                  std::string_view operand_role, const ScalarStep& step) const;
  void execute_float32() const;
  void execute_bits() const;

  Tensor dst_;
  Tensor data_;
  ScalarStep first_;
  std::optional<ScalarStep> second_;
  EngineRequest engine_;
};

}  // namespace trena
