// affine_select: where an affine value compares with 0 the tile's element, elsewhere a constant:
// causal masks (hw.md §2.3, §2.4).
#pragma once

#include "trena/isa/gpsimd/affine_pattern.h"
#include "trena/number/vector_math.h"

namespace trena {

class AffineSelect final : public Instruction {
 public:
  AffineSelect(Tensor dst, AffinePattern pattern, Tensor on_true, float on_false, AluOp compare)
      : dst_(std::move(dst)),
        pattern_(std::move(pattern)),
        on_true_(std::move(on_true)),
        on_false_(on_false),
        compare_(compare) {}

  std::string_view name() const override { return "affine_select"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  Tensor dst_;
  AffinePattern pattern_;
  Tensor on_true_;
  float on_false_;
  AluOp compare_;
};

}  // namespace trena
