#include "trena/isa/gpsimd/tensor_partition_reduce.h"

#include <fmt/format.h>

#include "trena/isa/operators.h"
#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"

namespace trena {

EngineKind TensorPartitionReduce::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

void TensorPartitionReduce::check(const Machine& machine) const {
  require_tile(machine, name(), "dst", dst_);
  require_tile(machine, name(), "data", data_);
  require_engine_reaches(machine, name(), engine(machine), {&dst_, &data_});
  require_same_elements(name(), "dst", dst_, "data", data_);
  if (dst_.partitions() != 1) {
    refuse("partition-mismatch",
           {.rule = "the result of a reduction over partitions is one partition",
            .here = fmt::format("`dst` is {}", dst_.describe()),
            .limit = "1 partition"});
  }
  require_one_of(
      name(), "op", op_,
      {AluOp::kAdd, AluOp::kAverage, AluOp::kMaximum, AluOp::kBitwiseOr, AluOp::kBitwiseAnd});
  if (is_bitvec(op_)) {
    require_integer(name(), "dst", dst_);
    require_integer(name(), "data", data_);
  }
}

void TensorPartitionReduce::access(AccessList& list) const {
  list.read(data_);
  list.write(dst_);
}

void TensorPartitionReduce::execute(CoreState&) const {
  const FlushDenormals flush;
  // 32-bit integers are exact on GpSimd (hw.md §1.6), and addition is the same for both signs.
  const auto is_int32 = [](const Tensor& tensor) {
    return tensor.dtype() == DType::kInt32 || tensor.dtype() == DType::kUint32;
  };
  if (is_bitvec(op_) ||
      (is_int32(dst_) && dst_.dtype() == data_.dtype() && op_ != AluOp::kAverage)) {
    execute_bits();
  } else {
    execute_float32();
  }
}

// In the order of the partitions.
void TensorPartitionReduce::execute_bits() const {
  const TileRows out(dst_), in(data_);
  const std::size_t row = in.row_elements();
  auto* sum = scratch<std::uint32_t>(1, row);
  std::copy_n(in.read_bits({0, 1}, 0), row, sum);
  for (std::int64_t p = 1; p < data_.partitions(); ++p) {
    const std::uint32_t* x = in.read_bits({p, 1}, 0);
    if (data_.dtype() == DType::kInt32) {
      auto* signed_sum = reinterpret_cast<std::int32_t*>(sum);
      binary_row_int32(op_, signed_sum, 1, reinterpret_cast<const std::int32_t*>(x), 1, signed_sum,
                       row);
    } else {
      binary_row_uint32(op_, sum, 1, x, 1, sum, row);
    }
  }
  out.write_bits({0, 1}, sum);
}

void TensorPartitionReduce::execute_float32() const {
  const TileRows out(dst_), in(data_);
  const std::size_t row = in.row_elements();
  const AluOp op = op_ == AluOp::kAverage ? AluOp::kAdd : op_;
  auto* sum = scratch<float>(1, row);
  std::copy_n(in.read({0, 1}, 0), row, sum);
  for (std::int64_t p = 1; p < data_.partitions(); ++p) {
    binary_row(op, sum, 1, in.read({p, 1}, 0), 1, sum, row);
  }
  if (op_ == AluOp::kAverage) {
    const auto count = static_cast<float>(data_.partitions());
    for (std::size_t i = 0; i < row; ++i) {
      sum[i] /= count;
    }
  }
  out.write({0, 1}, sum);
}

Cost TensorPartitionReduce::cost(const Machine& machine) const {
  return stream_cost(machine, EngineKind::kGpsimd, machine.core.gpsimd.partition_reduce,
                     data_.free_size(), {&data_});
}

}  // namespace trena
