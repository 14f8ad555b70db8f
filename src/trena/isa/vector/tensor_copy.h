// tensor_copy: moves a tile within the core; same types bit by bit, others through float32 (hw.md
// §2.3, §3.3).
#pragma once

#include "trena/isa/rules.h"

namespace trena {

struct TensorCopy {
  Tensor dst;
  Tensor src;
  EngineRequest engine;
};
std::unique_ptr<Instruction> make_instruction(TensorCopy args);

}  // namespace trena
