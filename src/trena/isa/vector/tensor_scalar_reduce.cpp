#include "trena/isa/vector/tensor_scalar_reduce.h"

#include "trena/isa/core_state.h"
#include "trena/isa/operators.h"
#include "trena/isa/stream.h"
#include "trena/isa/vector/copy_law.h"

namespace trena {

EngineKind TensorScalarReduce::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

void TensorScalarReduce::check(const Machine& machine) const {
  const EngineKind engine = this->engine(machine);
  require_tile(machine, name(), "dst", dst_);
  require_tile(machine, name(), "data", data_);
  require_same_partitions(name(), "dst", dst_, "data", data_);
  require_same_elements(name(), "dst", dst_, "data", data_);
  require_arithmetic(name(), "op0", step_.op);
  require_operator(machine, name(), "op0", step_.op, engine);
  require_lane_operand(name(), "operand0", step_.operand, data_, true);
  if (step_.reverse) {
    refuse("reverse-refused", {.rule = "tensor_scalar_reduce does not reverse its operands yet",
                               .here = "reverse0=True",
                               .limit = "reverse0=False",
                               .fix = "use tensor_scalar, then tensor_reduce"});
  }
  require_one_of(name(), "reduce_op", reduction_.op.value_or(AluOp::kBypass),
                 {AluOp::kAdd, AluOp::kMultiply, AluOp::kMaximum, AluOp::kMinimum});
  require_reduce_command(
      name(), reduction_.command,
      {ReduceCommand::kReduce, ReduceCommand::kResetReduce, ReduceCommand::kLoadReduce});
  require_reduce_initial(name(), "reduce_init", reduction_, data_);
  require_reduce_result(machine, name(), reduction_, data_);
}

void TensorScalarReduce::access(AccessList& list) const {
  list.read(data_);
  list.read(step_.operand);
  list.write(dst_);
  access_reduction(reduction_, HiddenState::kVectorAccumulators, list);
}

void TensorScalarReduce::execute(CoreState& core) const {
  const TileRows out(dst_), in(data_);
  const LaneOperand operand(step_.operand, in.row_elements());
  float* accumulators = core.vector_accumulators.data() + data_.start_partition();
  for_each_block(dst_.partitions(), out.row_elements(), 1.5, [&](const Block& block) {
    const std::size_t count = out.elements(block);
    const LaneView<float> lanes = operand.read(block, 3);
    const float* x = in.read(block, 0);
    auto* z = scratch<float>(2, count);  // not dst: reduce_init may lie there
    apply_lane(step_.op, false, x, lanes, z, count);
    accumulate_rows(*reduction_.op, reduction_, accumulators, block, z, in.row_elements());
    out.write(block, z);
  });
  read_out(reduction_, accumulators, negate_);
}

Cost TensorScalarReduce::cost(const Machine& machine) const {
  const VectorEngine& vector = machine.core.vector;
  const double operand =
      std::holds_alternative<Tensor>(step_.operand) ? vector.operand_cycles : 0.0;
  return with_accumulator(
      machine,
      stream_cost(machine, EngineKind::kVector, vector_copy_law(machine, dst_, data_),
                  data_.free_size(), {&dst_, &data_}, operand),
      reduction_);
}

}  // namespace trena
