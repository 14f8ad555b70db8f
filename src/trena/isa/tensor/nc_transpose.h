// nc_transpose: partitions ↔ free axis of a tile, on the tensor engine (SBUF → PSUM, ≤ 128×128) or
// the vector engine (32×32 blocks) (hw.md §2.2, §2.3; nki.md §5.3-20).
#pragma once

#include "trena/isa/rules.h"

namespace trena {

struct NcTranspose {
  Tensor dst;
  Tensor data;
  EngineRequest engine;
};
std::unique_ptr<Instruction> make_instruction(NcTranspose args);

}  // namespace trena
