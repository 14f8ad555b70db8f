#include "trena/isa/gpsimd/tensor_partition_reduce.h"

#include <fmt/format.h>

#include "trena/isa/operators.h"
#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"

namespace trena {
namespace {

class TensorPartitionReduceInstruction final : public InstructionOf<TensorPartitionReduce> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "tensor_partition_reduce"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    require_tile(machine, name(), "dst", args_.dst);
    require_tile(machine, name(), "data", args_.data);
    require_engine_reaches(machine, name(), engine(machine), {&args_.dst, &args_.data});
    require_same_elements(name(), "dst", args_.dst, "data", args_.data);
    if (args_.dst.partitions() != 1) {
      refuse("partition-mismatch",
             {.rule = "the result of a reduction over partitions is one partition",
              .here = fmt::format("`dst` is {}", args_.dst.describe()),
              .limit = "1 partition"});
    }
    require_one_of(
        name(), "op", args_.op,
        {AluOp::kAdd, AluOp::kAverage, AluOp::kMaximum, AluOp::kBitwiseOr, AluOp::kBitwiseAnd});
    if (is_bitvec(args_.op)) {
      require_integer(name(), "dst", args_.dst);
      require_integer(name(), "data", args_.data);
    }
  }

  void access(AccessList& list) const override {
    list.read(args_.data);
    list.write(args_.dst);
  }

  void execute(CoreState&) const override {
    const FlushDenormals flush;
    // 32-bit integers are exact on GpSimd (hw.md §1.6), and addition is the same for both signs.
    const auto is_int32 = [](const Tensor& tensor) {
      return tensor.dtype() == DType::kInt32 || tensor.dtype() == DType::kUint32;
    };
    if (is_bitvec(args_.op) || (is_int32(args_.dst) && args_.dst.dtype() == args_.data.dtype() &&
                                args_.op != AluOp::kAverage)) {
      execute_bits();
    } else {
      execute_float32();
    }
  }

  Cost cost(const Machine& machine) const override {
    return stream_cost(machine, EngineKind::kGpsimd, machine.core.gpsimd.partition_reduce,
                       args_.data.free_size(), {&args_.data});
  }

 private:
  // In the order of the partitions.
  void execute_bits() const {
    const TileRows out(args_.dst), in(args_.data);
    const std::size_t row = in.row_elements();
    auto* sum = scratch<std::uint32_t>(1, row);
    std::copy_n(in.read_bits({0, 1}, 0), row, sum);
    for (std::int64_t p = 1; p < args_.data.partitions(); ++p) {
      const std::uint32_t* x = in.read_bits({p, 1}, 0);
      if (args_.data.dtype() == DType::kInt32) {
        auto* signed_sum = reinterpret_cast<std::int32_t*>(sum);
        binary_row_int32(args_.op, signed_sum, 1, reinterpret_cast<const std::int32_t*>(x), 1,
                         signed_sum, row);
      } else {
        binary_row_uint32(args_.op, sum, 1, x, 1, sum, row);
      }
    }
    out.write_bits({0, 1}, sum);
  }

  void execute_float32() const {
    const TileRows out(args_.dst), in(args_.data);
    const std::size_t row = in.row_elements();
    const AluOp op = args_.op == AluOp::kAverage ? AluOp::kAdd : args_.op;
    auto* sum = scratch<float>(1, row);
    std::copy_n(in.read({0, 1}, 0), row, sum);
    for (std::int64_t p = 1; p < args_.data.partitions(); ++p) {
      binary_row(op, sum, 1, in.read({p, 1}, 0), 1, sum, row);
    }
    if (args_.op == AluOp::kAverage) {
      const auto count = static_cast<float>(args_.data.partitions());
      for (std::size_t i = 0; i < row; ++i) {
        sum[i] /= count;
      }
    }
    out.write({0, 1}, sum);
  }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(TensorPartitionReduce args) {
  return std::make_unique<TensorPartitionReduceInstruction>(std::move(args));
}

}  // namespace trena
