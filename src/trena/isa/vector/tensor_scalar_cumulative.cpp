#include "trena/isa/vector/tensor_scalar_cumulative.h"

#include "trena/isa/core_state.h"
#include "trena/isa/operators.h"
#include "trena/isa/stream.h"

namespace trena {
namespace {

// A running difference starts from 0, as a sum.
float start(const Reduction& reduction, float accumulator, std::int64_t partition) {
  switch (reduction.command) {
    case ReduceCommand::kResetReduce:
      return *reduction.op == AluOp::kSubtract ? 0.0F : identity(*reduction.op);
    case ReduceCommand::kLoadReduce:
      return lane_value(*reduction.initial, partition);
    default:
      return accumulator;
  }
}

}  // namespace

EngineKind TensorScalarCumulative::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

void TensorScalarCumulative::check(const Machine& machine) const {
  const EngineKind engine = this->engine(machine);
  for (const auto& [role, tensor] : {std::pair{"dst", &dst_}, {"src", &src_}}) {
    require_tile(machine, name(), role, *tensor);
    if (tensor->dtype() == DType::kInt32 || tensor->dtype() == DType::kUint32) {
      refuse("dtype-refused",
             {.rule = "tensor_scalar_cumulative has no datapath for 32-bit integers",
              .here = std::string(role) + " is " + tensor->describe(),
              .limit = "8- and 16-bit integers, and floats"});
    }
  }
  require_same_partitions(name(), "dst", dst_, "src", src_);
  require_same_elements(name(), "dst", dst_, "src", src_);
  require_arithmetic(name(), "op0", op0_);
  require_operator(machine, name(), "op0", op0_, engine);
  require_one_of(
      name(), "op1", *reduction_.op,
      {AluOp::kAdd, AluOp::kSubtract, AluOp::kMultiply, AluOp::kMaximum, AluOp::kMinimum});
  require_lane_operand(name(), "imm0", operand0_, src_, true);
  require_reduce_command(
      name(), reduction_.command,
      {ReduceCommand::kReduce, ReduceCommand::kResetReduce, ReduceCommand::kLoadReduce});
  require_reduce_initial(name(), "imm1", reduction_, src_);
}

void TensorScalarCumulative::access(AccessList& list) const {
  list.read(src_);
  list.read(operand0_);
  list.write(dst_);
  access_reduction(reduction_, HiddenState::kVectorAccumulators, list);
}

void TensorScalarCumulative::execute(CoreState& core) const {
  const TileRows out(dst_), in(src_);
  const std::size_t row = in.row_elements();
  const LaneOperand operand(operand0_, row);
  float* accumulators = core.vector_accumulators.data() + src_.start_partition();
  for_each_block(dst_.partitions(), row, 4.0, [&](const Block& block) {
    const std::size_t count = out.elements(block);
    const LaneView<float> lanes = operand.read(block, 3);
    const float* x = in.read(block, 0);
    auto* z = scratch<float>(2, count);
    apply_lane(op0_, false, x, lanes, z, count);
    for (std::int64_t p = 0; p < block.partitions; ++p) {
      float* values = z + static_cast<std::size_t>(p) * row;
      float& accumulator = accumulators[block.first + p];
      const float initial = start(reduction_, accumulator, block.first + p);
      accumulator =
          scan_row(*reduction_.op, AluOp::kBypass, values, 1, values, 1, initial, values, row);
    }
    out.write(block, z);
  });
}

Cost TensorScalarCumulative::cost(const Machine& machine) const {
  const VectorEngine& vector = machine.core.vector;
  const bool loads = reduction_.command == ReduceCommand::kLoadReduce &&
                     std::holds_alternative<Tensor>(*reduction_.initial);
  const double operands =
      (std::holds_alternative<Tensor>(operand0_) ? 1.0 : 0.0) + (loads ? 1.0 : 0.0);
  return stream_cost(machine, EngineKind::kVector, vector.cumulative, src_.free_size(),
                     {&dst_, &src_}, operands * vector.operand_cycles);
}

}  // namespace trena
