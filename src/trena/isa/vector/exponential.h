// exponential: exp(src - max_value) on the vector engine, with a running sum (hw.md §2.3). v4.
#pragma once

#include "trena/isa/reduce.h"

namespace trena {

class Exponential final : public Instruction {
 public:
  Exponential(Tensor dst, Tensor src, Operand max_value, Reduction reduction)
      : dst_(std::move(dst)),
        src_(std::move(src)),
        max_value_(std::move(max_value)),
        reduction_(std::move(reduction)) {}

  std::string_view name() const override { return "exponential"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;
  IndirectOperands indirect_operands() const override { return {&dst_, &src_}; }

 private:
  Tensor dst_;
  Tensor src_;
  Operand max_value_;
  Reduction reduction_;
};

}  // namespace trena
