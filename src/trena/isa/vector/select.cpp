#include "trena/isa/vector/select.h"

#include <fmt/format.h>

#include "trena/isa/core_state.h"
#include "trena/isa/operators.h"
#include "trena/isa/stream.h"

namespace trena {
namespace {

constexpr std::int64_t kExactIndices = std::int64_t{1} << 24;  // integers that float32 holds

class RangeSelectInstruction final : public InstructionOf<RangeSelect> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "range_select"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_elementwise(machine, name(), args_.dst, "on_true_tile", args_.on_true);
    if (!info(args_.on_true.dtype()).is_float) {
      refuse("dtype-refused",
             {.rule = "range_select selects floats",
              .here = fmt::format("`on_true_tile` is {}", args_.on_true.describe()),
              .limit = "a float type"});
    }
    for (const auto& [role, op] :
         {std::pair{"comp_op0", args_.range.compare0}, {"comp_op1", args_.range.compare1}}) {
      require_one_of(
          name(), role, op,
          {AluOp::kEqual, AluOp::kLess, AluOp::kLessEqual, AluOp::kGreater, AluOp::kGreaterEqual});
    }
    require_lane_operand(name(), "bound0", args_.range.bound0, args_.on_true, true);
    require_lane_operand(name(), "bound1", args_.range.bound1, args_.on_true, true);
    if (args_.range.start < 0 || args_.range.start > kExactIndices - args_.on_true.free_size()) {
      refuse("select-range", {.rule = "range_select compares indices in float32",
                              .here = fmt::format("range_start {}, {} elements", args_.range.start,
                                                  args_.on_true.free_size()),
                              .limit = "indices from 0 to 2^24"});
    }
    if (args_.on_false != RangeSelect::kFill) {
      refuse("select-fill", {.rule = "the hardware fills with one value only",
                             .here = fmt::format("on_false_value={}", args_.on_false),
                             .limit = "-3.4028235e38"});
    }
    require_accumulation(machine, name(), args_.reduction, {AluOp::kMaximum}, args_.on_true);
  }

  void access(AccessList& list) const override {
    list.read(args_.on_true);
    list.read(args_.range.bound0);
    list.read(args_.range.bound1);
    list.write(args_.dst);
    access_reduction(args_.reduction, HiddenState::kVectorAccumulators, list);
  }

  void execute(CoreState& core) const override {
    const TileRows out(args_.dst), in(args_.on_true);
    const std::size_t row = in.row_elements();
    std::vector<float> indices(row);
    for (std::size_t i = 0; i < row; ++i) {
      indices[i] = static_cast<float>(args_.range.start + static_cast<std::int64_t>(i));
    }
    float* accumulators = core.vector_accumulators.data() + args_.on_true.start_partition();
    for_each_block(args_.dst.partitions(), row, 3.0, [&](const Block& block) {
      const float* x = in.read(block, 0);
      auto* z = scratch<float>(2, out.elements(block));
      auto* above = scratch<float>(3, row);
      auto* below = scratch<float>(4, row);
      for (std::int64_t p = 0; p < block.partitions; ++p) {
        const float bound0 = lane_value(args_.range.bound0, block.first + p);
        const float bound1 = lane_value(args_.range.bound1, block.first + p);
        binary_row(args_.range.compare0, indices.data(), 1, &bound0, 0, above, row);
        binary_row(args_.range.compare1, indices.data(), 1, &bound1, 0, below, row);
        const std::size_t at = static_cast<std::size_t>(p) * row;
        for (std::size_t i = 0; i < row; ++i) {
          z[at + i] = above[i] != 0.0F && below[i] != 0.0F ? x[at + i] : RangeSelect::kFill;
        }
      }
      accumulate_rows(AluOp::kMaximum, args_.reduction, accumulators, block, z, row);
      out.write(block, z);
    });
    read_out(args_.reduction, accumulators);
  }

  Cost cost(const Machine& machine) const override {
    const VectorEngine& vector = machine.core.vector;
    return with_accumulator(machine,
                            stream_cost(machine, EngineKind::kVector, vector.range_select,
                                        args_.on_true.free_size(), {&args_.dst, &args_.on_true}),
                            args_.reduction);
  }
};

class SelectReduceInstruction final : public InstructionOf<SelectReduce> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "select_reduce"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_tile(machine, name(), "dst", args_.dst);
    require_tile(machine, name(), "predicate", args_.predicate);
    require_tile(machine, name(), "on_true", args_.on_true);
    require_dtype(name(), "predicate", args_.predicate,
                  {DType::kInt8, DType::kUint8, DType::kInt16, DType::kUint16});
    for (const Tensor* tensor : {&args_.predicate, &args_.on_true}) {
      require_same_partitions(name(), "dst", args_.dst,
                              tensor == &args_.on_true ? "on_true" : "predicate", *tensor);
      require_same_elements(name(), "dst", args_.dst,
                            tensor == &args_.on_true ? "on_true" : "predicate", *tensor);
    }
    const DType type = args_.on_true.dtype();
    if (type == DType::kTfloat32 || type == DType::kInt32 || type == DType::kUint32) {
      refuse("dtype-refused",
             {.rule = "select_reduce has no datapath for tfloat32, int32 and uint32",
              .here = fmt::format("`on_true` is {}", args_.on_true.describe()),
              .limit = "the other types"});
    }
    require_not_both_psum(name(), "on_true", args_.on_true, "predicate", args_.predicate);
    require_lane_operand(name(), "on_false", args_.on_false, args_.on_true, true);
    require_accumulation(machine, name(), args_.reduction, {AluOp::kMaximum}, args_.on_true);
  }

  void access(AccessList& list) const override {
    list.read(args_.predicate);
    list.read(args_.on_true);
    list.read(args_.on_false);
    list.write(args_.dst);
    // Even idle it may disturb the accumulators of its engine.
    access_reduction(args_.reduction, HiddenState::kVectorAccumulators, list);
  }

  void execute(CoreState& core) const override {
    const TileRows out(args_.dst), in(args_.on_true), predicate(args_.predicate);
    const std::size_t row = in.row_elements();
    const LaneOperand on_false(args_.on_false, row);
    float* accumulators = core.vector_accumulators.data() + args_.on_true.start_partition();
    for_each_block(args_.dst.partitions(), row, 2.0, [&](const Block& block) {
      const std::size_t count = out.elements(block);
      const float* x = in.read(block, 0);
      const std::uint32_t* chosen = predicate.read_bits(block, 1);
      const LaneView<float> other = on_false.read(block, 3);
      auto* z = scratch<float>(2, count);
      for (std::size_t i = 0; i < count; ++i) {
        z[i] = (chosen[i] != 0) != args_.reverse
                   ? x[i]
                   : other.values[other.stride * static_cast<std::ptrdiff_t>(i)];
      }
      accumulate_rows(AluOp::kMaximum, args_.reduction, accumulators, block, z, row);
      out.write(block, z);
    });
    read_out(args_.reduction, accumulators);
  }

  Cost cost(const Machine& machine) const override {
    const VectorEngine& vector = machine.core.vector;
    const bool both_sbuf =
        args_.on_true.space() == Space::kSbuf && args_.predicate.space() == Space::kSbuf;
    const double operand =
        std::holds_alternative<Tensor>(args_.on_false) ? vector.operand_cycles : 0.0;
    return with_accumulator(
        machine,
        stream_cost(machine, EngineKind::kVector,
                    both_sbuf ? vector.predicated_sbuf : vector.predicated, args_.dst.free_size(),
                    {&args_.dst, &args_.on_true, &args_.predicate}, operand),
        args_.reduction);
  }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(RangeSelect args) {
  return std::make_unique<RangeSelectInstruction>(std::move(args));
}

std::unique_ptr<Instruction> make_instruction(SelectReduce args) {
  return std::make_unique<SelectReduceInstruction>(std::move(args));
}

}  // namespace trena
