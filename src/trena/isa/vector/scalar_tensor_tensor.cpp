#include "trena/isa/vector/scalar_tensor_tensor.h"

#include "trena/isa/operators.h"
#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"
#include "trena/isa/vector/copy_law.h"

namespace trena {

EngineKind ScalarTensorTensor::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

void ScalarTensorTensor::check(const Machine& machine) const {
  const EngineKind engine = this->engine(machine);
  require_tile(machine, name(), "dst", dst_);
  require_tile(machine, name(), "data", data_);
  require_tile(machine, name(), "operand1", operand1_);
  require_same_partitions(name(), "data", data_, "operand1", operand1_);
  require_same_elements(name(), "data", data_, "operand1", operand1_);
  require_same_partitions(name(), "dst", dst_, "data", data_);
  require_same_elements(name(), "dst", dst_, "data", data_);
  require_not_both_psum(name(), "data", data_, "operand1", operand1_);
  require_arithmetic(name(), "op0", first_.op);
  require_arithmetic(name(), "op1", op1_);
  require_operator(machine, name(), "op0", first_.op, engine);
  require_operator(machine, name(), "op1", op1_, engine);
  require_binary(name(), "op1", op1_);
  require_lane_operand(name(), "operand0", first_.operand, data_, false);
}

void ScalarTensorTensor::access(AccessList& list) const {
  list.read(data_);
  list.read(first_.operand);
  list.read(operand1_);
  list.write(dst_);
}

void ScalarTensorTensor::execute(CoreState&) const {
  const TileRows out(dst_), in(data_), other(operand1_);
  const LaneOperand operand0(first_.operand, in.row_elements());
  for_each_block(dst_.partitions(), out.row_elements(), 1.5, [&](const Block& block) {
    const std::size_t count = out.elements(block);
    const LaneView<float> lanes = operand0.read(block, 3);
    const float* x = in.read(block, 0);
    const float* y = other.read(block, 1);
    auto* between = scratch<float>(4, count);
    float* z = out.target(block, 2, {y});
    apply_lane(first_.op, first_.reverse, x, lanes, between, count);
    binary_row(op1_, reverse1_ ? y : between, 1, reverse1_ ? between : y, 1, z, count);
    out.write(block, z);
  });
}

Cost ScalarTensorTensor::cost(const Machine& machine) const {
  const double extra =
      std::holds_alternative<Tensor>(first_.operand) ? machine.core.vector.operand_cycles : 0.0;
  const bool fast =
      first_.op == AluOp::kSubtract && op1_ == AluOp::kMultiply && dst_.free_size() % 2 == 0;
  return stream_cost(machine, EngineKind::kVector,
                     vector_two_source_law(machine, dst_, data_, operand1_, fast), dst_.free_size(),
                     {&dst_, &data_, &operand1_}, extra);
}

}  // namespace trena
