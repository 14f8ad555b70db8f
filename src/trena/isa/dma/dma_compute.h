// dma_compute: dst = the sum of up to 16 tensors, computed in float32 inside the DMA engines (hw.md
// §1.7). With an index vector it reads, adds and writes rows: dst(HBM)[index] += src(SBUF), or
// dst(SBUF) += src(HBM)[index].
#pragma once

#include <optional>
#include <vector>

#include "trena/isa/dma/trigger.h"
#include "trena/number/vector_math.h"

namespace trena {

struct DmaCompute {
  Tensor dst;
  std::vector<Tensor> sources;
  AluOp op;
  std::optional<std::vector<float>> scales;
  bool unique_indices;
  OobMode oob;
};
std::unique_ptr<Instruction> make_instruction(DmaCompute args);

}  // namespace trena
