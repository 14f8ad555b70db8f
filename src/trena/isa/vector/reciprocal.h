// reciprocal: 1 / x in float32 (hw.md §2.3, §2.4).
#pragma once

#include "trena/isa/rules.h"

namespace trena {

struct Reciprocal {
  Tensor dst;
  Tensor data;
};
std::unique_ptr<Instruction> make_instruction(Reciprocal args);

}  // namespace trena
