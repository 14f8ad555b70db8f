// iota: an affine pattern of integers, cast to the tile's type (hw.md §2.3).
#pragma once

#include "trena/isa/gpsimd/affine_pattern.h"

namespace trena {

class Iota final : public Instruction {
 public:
  Iota(Tensor dst, AffinePattern pattern) : dst_(std::move(dst)), pattern_(std::move(pattern)) {}

  std::string_view name() const override { return "iota"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  Tensor dst_;
  AffinePattern pattern_;
};

}  // namespace trena
