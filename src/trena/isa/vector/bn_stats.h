// bn_stats and bn_aggr: mean and variance of a row in two steps (hw.md §2.3, §3.7).
#pragma once

#include "trena/isa/rules.h"

namespace trena {

// Count, mean and variance * count of the even elements, then of the odd ones.
struct BnStats {
  Tensor dst;
  Tensor data;
};
std::unique_ptr<Instruction> make_instruction(BnStats args);

// Mean and variance of everything that (count, mean, variance * count) triples describe.
struct BnAggregate {
  Tensor dst;
  Tensor data;
};
std::unique_ptr<Instruction> make_instruction(BnAggregate args);

}  // namespace trena
