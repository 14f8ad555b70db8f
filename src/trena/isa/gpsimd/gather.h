// local_gather and nc_n_gather: elements of a row by index, inside SBUF (hw.md §1.6, §2.3).
#pragma once

#include <optional>

#include "trena/isa/rules.h"

namespace trena {

// Each GpSimd core sees 16 partitions. Their indices, column by column, are free offsets: from
// every one of the 16 rows it takes `elements_per_index` contiguous elements at each of them.
struct LocalGather {
  Tensor dst;
  Tensor src;
  Tensor index;
  std::int64_t elements_per_index;
  std::optional<std::int64_t> valid_indices;
};
std::unique_ptr<Instruction> make_instruction(LocalGather args);

// dst[p, i] = data[p, indices[p, i]], the free axes of each operand flattened.
struct NcNGather {
  Tensor dst;
  Tensor data;
  Tensor indices;
};
std::unique_ptr<Instruction> make_instruction(NcNGather args);

}  // namespace trena
