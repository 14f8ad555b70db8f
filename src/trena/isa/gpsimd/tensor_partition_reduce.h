// tensor_partition_reduce: one row out of all partitions (hw.md §2.3).
#pragma once

#include "trena/isa/rules.h"
#include "trena/number/vector_math.h"

namespace trena {

struct TensorPartitionReduce {
  Tensor dst;
  AluOp op;
  Tensor data;
};
std::unique_ptr<Instruction> make_instruction(TensorPartitionReduce args);

}  // namespace trena
