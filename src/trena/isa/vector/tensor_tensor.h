// tensor_tensor: data1 op data2, element by element (hw.md §2.3, §3.3; nki.md §5.2-9).
#pragma once

#include "trena/isa/rules.h"
#include "trena/number/vector_math.h"

namespace trena {

class TensorTensor final : public Instruction {
 public:
  TensorTensor(Tensor dst, Tensor data1, Tensor data2, AluOp op, EngineRequest engine)
      : dst_(std::move(dst)),
        data1_(std::move(data1)),
        data2_(std::move(data2)),
        op_(op),
        engine_(engine) {}

  std::string_view name() const override { return "tensor_tensor"; }
  // Unless asked otherwise: GpSimd for power, and for tensors that are all int32 or uint32 and none
  // in PSUM, where it is exact; else the vector engine.
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;
  IndirectOperands indirect_operands() const override { return {&dst_, &data1_}; }

 private:
  bool all_int32() const;
  bool any_psum() const;
  void execute_float32() const;
  void execute_bits() const;
  void execute_int32() const;

  Tensor dst_;
  Tensor data1_;
  Tensor data2_;
  AluOp op_;
  EngineRequest engine_;
};

}  // namespace trena
