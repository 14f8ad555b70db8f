#include "trena/isa/vector/exponential.h"

#include "trena/isa/core_state.h"
#include "trena/isa/stream.h"

namespace trena {
namespace {

constexpr int kMostDimensions = 4;

}  // namespace

EngineKind Exponential::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

void Exponential::check(const Machine& machine) const {
  engine(machine);
  require_tile(machine, name(), "dst", dst_);
  require_tile(machine, name(), "src", src_);
  require_same_partitions(name(), "dst", dst_, "src", src_);
  require_same_elements(name(), "dst", dst_, "src", src_);
  require_dtype(name(), "dst", dst_,
                {DType::kFloat8E4m3, DType::kFloat8E5m2, DType::kFloat16, DType::kBfloat16,
                 DType::kFloat32, DType::kTfloat32, DType::kInt8, DType::kInt16, DType::kInt32,
                 DType::kUint8, DType::kUint16});
  require_dtype(
      name(), "src", src_,
      {DType::kFloat8E4m3, DType::kFloat8E5m2, DType::kFloat16, DType::kBfloat16, DType::kFloat32,
       DType::kInt8, DType::kInt16, DType::kInt32, DType::kUint8, DType::kUint16, DType::kUint32});
  if (std::max(dst_.rank(), src_.rank()) > kMostDimensions) {
    refuse("rank-limit", {.rule = "exponential takes tiles of up to four dimensions",
                          .here = src_.describe() + " to " + dst_.describe(),
                          .limit = "4 dimensions"});
  }
  require_lane_operand(name(), "max_value", max_value_, src_, true);
  require_reduce_command(name(), reduction_.command,
                         {ReduceCommand::kIdle, ReduceCommand::kReduce, ReduceCommand::kResetReduce,
                          ReduceCommand::kLoadReduce});
  require_reduce_initial(name(), "reduce_init", reduction_, src_);
  require_reduce_result(machine, name(), reduction_, src_);
  if (reduction_.result) {
    require_dtype(name(), "reduce_res", *reduction_.result,
                  {DType::kFloat8E4m3, DType::kFloat8E5m2, DType::kFloat16, DType::kBfloat16,
                   DType::kFloat32, DType::kTfloat32});
  }
}

void Exponential::access(AccessList& list) const {
  list.read(src_);
  list.read(max_value_);
  list.write(dst_);
  access_reduction(reduction_, HiddenState::kVectorAccumulators, list);
}

void Exponential::execute(CoreState& core) const {
  const TileRows out(dst_), in(src_);
  const std::size_t row = in.row_elements();
  const LaneOperand max_value(max_value_, row);
  float* accumulators = core.vector_accumulators.data() + src_.start_partition();
  for_each_block(dst_.partitions(), row, 4.0, [&](const Block& block) {
    const std::size_t count = out.elements(block);
    const float* x = in.read(block, 0);
    const LaneView<float> highest = max_value.read(block, 3);
    float* z = out.target(block, 2, {x});
    binary_row(AluOp::kSubtract, x, 1, highest.values, highest.stride, z, count);
    apply_row(MathFunction::kExp, z, z, count);
    accumulate_rows(AluOp::kAdd, reduction_, accumulators, block, z, row);
    out.write(block, z);
  });
  read_out(reduction_, accumulators);
}

Cost Exponential::cost(const Machine& machine) const {
  const VectorEngine& vector = machine.core.vector;
  const double operand = std::holds_alternative<Tensor>(max_value_) ? vector.operand_cycles : 0.0;
  return with_accumulator(machine,
                          stream_cost(machine, EngineKind::kVector, vector.exponential,
                                      src_.free_size(), {&dst_, &src_}, operand),
                          reduction_);
}

}  // namespace trena
