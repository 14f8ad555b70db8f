// tensor_copy: moves a tile within the core; same types bit by bit, others through float32 (hw.md
// §2.3, §3.3).
#pragma once

#include "trena/isa/rules.h"

namespace trena {

class TensorCopy final : public Instruction {
 public:
  TensorCopy(Tensor dst, Tensor src, EngineRequest engine)
      : dst_(std::move(dst)), src_(std::move(src)), engine_(engine) {}

  std::string_view name() const override { return "tensor_copy"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;
  IndirectOperands indirect_operands() const override { return {&dst_, &src_}; }

 private:
  Tensor dst_;
  Tensor src_;
  EngineRequest engine_;
};

}  // namespace trena
