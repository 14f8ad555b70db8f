// dma_copy: moves a tensor between or within HBM and SBUF. Element counts must agree, shapes need
// not (nki.md §6.4). Equal types move bits, others go through float32 (hw.md §3.3). HBM to HBM
// carries "unwritten" along. Gathers and scatters rows through an index vector (v3+).
#pragma once

#include "trena/isa/dma/trigger.h"

namespace trena {

struct DmaCopy {
  Tensor dst;
  Tensor src;
  DmaRequest request;
};
std::unique_ptr<Instruction> make_instruction(DmaCopy args);

}  // namespace trena
