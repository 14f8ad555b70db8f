// nc_stream_shuffle: moves whole partitions within each quadrant of 32 (hw.md §1.5, §2.3).
#pragma once

#include <cstdint>
#include <vector>

#include "trena/isa/rules.h"

namespace trena {

struct NcStreamShuffle {
  // Partition i of each quadrant of dst takes partition mask[i] of the same quadrant of src.
  static constexpr std::int64_t kKeep = 255;  // mask entry: the output partition stays as it is
  Tensor dst;
  Tensor src;
  std::vector<std::int64_t> mask;
};
std::unique_ptr<Instruction> make_instruction(NcStreamShuffle args);

}  // namespace trena
