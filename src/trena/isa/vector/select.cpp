#include "trena/isa/vector/select.h"

#include <fmt/format.h>

#include "trena/isa/core_state.h"
#include "trena/isa/operators.h"
#include "trena/isa/stream.h"

namespace trena {
namespace {

constexpr std::int64_t kExactIndices = std::int64_t{1} << 24;  // integers that float32 holds

}  // namespace

EngineKind RangeSelect::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

void RangeSelect::check(const Machine& machine) const {
  engine(machine);
  require_tile(machine, name(), "dst", dst_);
  require_tile(machine, name(), "on_true_tile", on_true_);
  require_same_partitions(name(), "dst", dst_, "on_true_tile", on_true_);
  require_same_elements(name(), "dst", dst_, "on_true_tile", on_true_);
  if (!info(on_true_.dtype()).is_float) {
    refuse("dtype-refused", {.rule = "range_select selects floats",
                             .here = fmt::format("`on_true_tile` is {}", on_true_.describe()),
                             .limit = "a float type"});
  }
  for (const auto& [role, op] :
       {std::pair{"comp_op0", range_.compare0}, {"comp_op1", range_.compare1}}) {
    require_one_of(
        name(), role, op,
        {AluOp::kEqual, AluOp::kLess, AluOp::kLessEqual, AluOp::kGreater, AluOp::kGreaterEqual});
  }
  require_lane_operand(name(), "bound0", range_.bound0, on_true_, true);
  require_lane_operand(name(), "bound1", range_.bound1, on_true_, true);
  if (range_.start < 0 || range_.start > kExactIndices - on_true_.free_size()) {
    refuse("select-range",
           {.rule = "range_select compares indices in float32",
            .here = fmt::format("range_start {}, {} elements", range_.start, on_true_.free_size()),
            .limit = "indices from 0 to 2^24"});
  }
  if (on_false_ != kFill) {
    refuse("select-fill", {.rule = "the hardware fills with one value only",
                           .here = fmt::format("on_false_value={}", on_false_),
                           .limit = "-3.4028235e38"});
  }
  require_one_of(name(), "reduce_op", reduction_.op.value_or(AluOp::kMaximum), {AluOp::kMaximum});
  require_reduce_command(name(), reduction_.command,
                         {ReduceCommand::kIdle, ReduceCommand::kReset, ReduceCommand::kReduce,
                          ReduceCommand::kResetReduce});
  require_reduce_result(machine, name(), reduction_, on_true_);
}

void RangeSelect::access(AccessList& list) const {
  list.read(on_true_);
  list.read(range_.bound0);
  list.read(range_.bound1);
  list.write(dst_);
  access_reduction(reduction_, HiddenState::kVectorAccumulators, list);
}

void RangeSelect::execute(CoreState& core) const {
  const TileRows out(dst_), in(on_true_);
  const std::size_t row = in.row_elements();
  std::vector<float> indices(row);
  for (std::size_t i = 0; i < row; ++i) {
    indices[i] = static_cast<float>(range_.start + static_cast<std::int64_t>(i));
  }
  float* accumulators = core.vector_accumulators.data() + on_true_.start_partition();
  for_each_block(dst_.partitions(), row, 3.0, [&](const Block& block) {
    const float* x = in.read(block, 0);
    auto* z = scratch<float>(2, out.elements(block));
    auto* above = scratch<float>(3, row);
    auto* below = scratch<float>(4, row);
    for (std::int64_t p = 0; p < block.partitions; ++p) {
      const float bound0 = lane_value(range_.bound0, block.first + p);
      const float bound1 = lane_value(range_.bound1, block.first + p);
      binary_row(range_.compare0, indices.data(), 1, &bound0, 0, above, row);
      binary_row(range_.compare1, indices.data(), 1, &bound1, 0, below, row);
      const std::size_t at = static_cast<std::size_t>(p) * row;
      for (std::size_t i = 0; i < row; ++i) {
        z[at + i] = above[i] != 0.0F && below[i] != 0.0F ? x[at + i] : kFill;
      }
    }
    accumulate_rows(AluOp::kMaximum, reduction_, accumulators, block, z, row);
    out.write(block, z);
  });
  read_out(reduction_, accumulators);
}

Cost RangeSelect::cost(const Machine& machine) const {
  const VectorEngine& vector = machine.core.vector;
  return with_accumulator(machine,
                          stream_cost(machine, EngineKind::kVector, vector.range_select,
                                      on_true_.free_size(), {&dst_, &on_true_}),
                          reduction_);
}

EngineKind SelectReduce::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

void SelectReduce::check(const Machine& machine) const {
  engine(machine);
  require_tile(machine, name(), "dst", dst_);
  require_tile(machine, name(), "predicate", predicate_);
  require_tile(machine, name(), "on_true", on_true_);
  require_dtype(name(), "predicate", predicate_,
                {DType::kInt8, DType::kUint8, DType::kInt16, DType::kUint16});
  for (const Tensor* tensor : {&predicate_, &on_true_}) {
    require_same_partitions(name(), "dst", dst_, tensor == &on_true_ ? "on_true" : "predicate",
                            *tensor);
    require_same_elements(name(), "dst", dst_, tensor == &on_true_ ? "on_true" : "predicate",
                          *tensor);
  }
  const DType type = on_true_.dtype();
  if (type == DType::kTfloat32 || type == DType::kInt32 || type == DType::kUint32) {
    refuse("dtype-refused", {.rule = "select_reduce has no datapath for tfloat32, int32 and uint32",
                             .here = fmt::format("`on_true` is {}", on_true_.describe()),
                             .limit = "the other types"});
  }
  require_not_both_psum(name(), "on_true", on_true_, "predicate", predicate_);
  require_lane_operand(name(), "on_false", on_false_, on_true_, true);
  require_one_of(name(), "reduce_op", reduction_.op.value_or(AluOp::kMaximum), {AluOp::kMaximum});
  require_reduce_command(name(), reduction_.command,
                         {ReduceCommand::kIdle, ReduceCommand::kReset, ReduceCommand::kReduce,
                          ReduceCommand::kResetReduce});
  require_reduce_result(machine, name(), reduction_, on_true_);
}

void SelectReduce::access(AccessList& list) const {
  list.read(predicate_);
  list.read(on_true_);
  list.read(on_false_);
  list.write(dst_);
  // Even idle it may disturb the accumulators of its engine.
  access_reduction(reduction_, HiddenState::kVectorAccumulators, list);
}

void SelectReduce::execute(CoreState& core) const {
  const TileRows out(dst_), in(on_true_), predicate(predicate_);
  const std::size_t row = in.row_elements();
  const LaneOperand on_false(on_false_, row);
  float* accumulators = core.vector_accumulators.data() + on_true_.start_partition();
  for_each_block(dst_.partitions(), row, 2.0, [&](const Block& block) {
    const std::size_t count = out.elements(block);
    const float* x = in.read(block, 0);
    const std::uint32_t* chosen = predicate.read_bits(block, 1);
    const LaneView<float> other = on_false.read(block, 3);
    auto* z = scratch<float>(2, count);
    for (std::size_t i = 0; i < count; ++i) {
      z[i] = (chosen[i] != 0) != reverse_
                 ? x[i]
                 : other.values[other.stride * static_cast<std::ptrdiff_t>(i)];
    }
    accumulate_rows(AluOp::kMaximum, reduction_, accumulators, block, z, row);
    out.write(block, z);
  });
  read_out(reduction_, accumulators);
}

Cost SelectReduce::cost(const Machine& machine) const {
  const VectorEngine& vector = machine.core.vector;
  const bool both_sbuf = on_true_.space() == Space::kSbuf && predicate_.space() == Space::kSbuf;
  const double operand = std::holds_alternative<Tensor>(on_false_) ? vector.operand_cycles : 0.0;
  return with_accumulator(machine,
                          stream_cost(machine, EngineKind::kVector,
                                      both_sbuf ? vector.predicated_sbuf : vector.predicated,
                                      dst_.free_size(), {&dst_, &on_true_, &predicate_}, operand),
                          reduction_);
}

}  // namespace trena
