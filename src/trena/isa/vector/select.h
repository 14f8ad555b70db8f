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

struct RangeSelect {
  static constexpr float kFill = -3.4028235e38F;  // the only one that the hardware has
  Tensor dst;
  Tensor on_true;
  IndexRange range;
  float on_false;
  Reduction reduction;
};
std::unique_ptr<Instruction> make_instruction(RangeSelect args);

struct SelectReduce {
  Tensor dst;
  Tensor predicate;
  Tensor on_true;
  Operand on_false;
  Reduction reduction;
  bool reverse;
};
std::unique_ptr<Instruction> make_instruction(SelectReduce args);

}  // namespace trena
