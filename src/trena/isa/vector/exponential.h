// exponential: exp(src - max_value) on the vector engine, with a running sum (hw.md §2.3). v4.
#pragma once

#include "trena/isa/reduce.h"

namespace trena {

struct Exponential {
  Tensor dst;
  Tensor src;
  Operand max_value;
  Reduction reduction;
};
std::unique_ptr<Instruction> make_instruction(Exponential args);

}  // namespace trena
