// tensor_reduce: the trailing free axes of a tile to one value each (hw.md §2.3; nki.md §5.2-15).
#pragma once

#include <cstdint>
#include <vector>

#include "trena/isa/rules.h"
#include "trena/number/vector_math.h"

namespace trena {

struct TensorReduce {
  // `axes` are numbered as the dimensions of `data`, 0 being the partitions. `keepdims` says only
  // how dst is written down: it changes nothing here.
  Tensor dst;
  AluOp op;
  Tensor data;
  std::vector<std::int64_t> axes;
  bool negate;
};
std::unique_ptr<Instruction> make_instruction(TensorReduce args);

}  // namespace trena
