// dma_transpose: [1,0], [2,1,0] or [3,1,2,0] of a tensor in HBM or SBUF into SBUF; 2- and 4-byte
// types, bit by bit (hw.md §1.7). The rows may be chosen by an index vector (v3+). Rules of
// hardware and software descriptors: AWS nki.isa reference.
#pragma once

#include <optional>
#include <vector>

#include "trena/isa/dma/trigger.h"

namespace trena {

struct DmaTranspose {
  // `axes` empty: the permutation of src's rank.
  Tensor dst;
  Tensor src;
  std::optional<std::vector<int>> axes;
  DmaRequest request;
};
std::unique_ptr<Instruction> make_instruction(DmaTranspose args);

}  // namespace trena
