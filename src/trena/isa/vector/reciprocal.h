// reciprocal: 1 / x in float32 (hw.md §2.3, §2.4).
#pragma once

#include "trena/isa/rules.h"

namespace trena {

class Reciprocal final : public Instruction {
 public:
  Reciprocal(Tensor dst, Tensor data) : dst_(std::move(dst)), data_(std::move(data)) {}

  std::string_view name() const override { return "reciprocal"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  Tensor dst_;
  Tensor data_;
};

}  // namespace trena
