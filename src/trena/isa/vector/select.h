// range_select and select_reduce: one of two values per element, and the row's maximum on the way
// (hw.md §2.3, §3.7; nki.md §5.3-22).
#pragma once

#include "trena/isa/reduce.h"

namespace trena {

// The element where its index, from `start`, compares with both bounds; else -3.4028235e38.
struct IndexRange {
  AluOp compare0 = AluOp::kGreaterEqual;
  AluOp compare1 = AluOp::kLess;
  Tensor bound0;  // [P, 1] float32
  Tensor bound1;
  std::int64_t start = 0;
};

class RangeSelect final : public Instruction {
 public:
  static constexpr float kFill = -3.4028235e38F;  // the only one that the hardware has

  RangeSelect(Tensor dst, Tensor on_true, IndexRange range, float on_false, Reduction reduction)
      : dst_(std::move(dst)),
        on_true_(std::move(on_true)),
        range_(std::move(range)),
        on_false_(on_false),
        reduction_(std::move(reduction)) {}

  std::string_view name() const override { return "range_select"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  Tensor dst_;
  Tensor on_true_;
  IndexRange range_;
  float on_false_;
  Reduction reduction_;
};

class SelectReduce final : public Instruction {
 public:
  SelectReduce(Tensor dst, Tensor predicate, Tensor on_true, Operand on_false, Reduction reduction,
               bool reverse)
      : dst_(std::move(dst)),
        predicate_(std::move(predicate)),
        on_true_(std::move(on_true)),
        on_false_(std::move(on_false)),
        reduction_(std::move(reduction)),
        reverse_(reverse) {}

  std::string_view name() const override { return "select_reduce"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  Tensor dst_;
  Tensor predicate_;
  Tensor on_true_;
  Operand on_false_;
  Reduction reduction_;
  bool reverse_;
};

}  // namespace trena
