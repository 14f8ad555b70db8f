// tensor_copy_predicated: copies where the predicate holds, keeps dst elsewhere (hw.md §2.3; nki.md
// §5.3-18).
#pragma once

#include "trena/isa/rules.h"

namespace trena {

class TensorCopyPredicated final : public Instruction {
 public:
  // src is a tile or a number; with `reverse` elements are copied where the predicate is 0.
  TensorCopyPredicated(Tensor dst, Operand src, Tensor predicate, bool reverse)
      : dst_(std::move(dst)),
        src_(std::move(src)),
        predicate_(std::move(predicate)),
        reverse_(reverse) {}

  std::string_view name() const override { return "tensor_copy_predicated"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;
  IndirectOperands indirect_operands() const override { return {&dst_, &predicate_}; }

 private:
  std::uint32_t number_in_dst() const;

  Tensor dst_;
  Operand src_;
  Tensor predicate_;
  bool reverse_;
};

}  // namespace trena
