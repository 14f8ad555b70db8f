#include "trena/isa/vector/scalar_tensor_tensor.h"

#include "trena/isa/operators.h"
#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"
#include "trena/isa/vector/copy_law.h"

namespace trena {
namespace {

class ScalarTensorTensorInstruction final : public InstructionOf<ScalarTensorTensor> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "scalar_tensor_tensor"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    const EngineKind engine = this->engine(machine);
    require_elementwise(machine, name(), args_.dst, "data", args_.data, "operand1", args_.operand1);
    require_arithmetic(name(), "op0", args_.first.op);
    require_arithmetic(name(), "op1", args_.op1);
    require_operator(machine, name(), "op0", args_.first.op, engine);
    require_operator(machine, name(), "op1", args_.op1, engine);
    require_binary(name(), "op1", args_.op1);
    require_lane_operand(name(), "operand0", args_.first.operand, args_.data, false);
  }

  void access(AccessList& list) const override {
    list.read(args_.data);
    list.read(args_.first.operand);
    list.read(args_.operand1);
    list.write(args_.dst);
  }

  void execute(CoreState&) const override {
    const TileRows out(args_.dst), in(args_.data), other(args_.operand1);
    const LaneOperand operand0(args_.first.operand, in.row_elements());
    for_each_block(args_.dst.partitions(), out.row_elements(), 1.5, [&](const Block& block) {
      const std::size_t count = out.elements(block);
      const LaneView<float> lanes = operand0.read(block, 3);
      const float* x = in.read(block, 0);
      const float* y = other.read(block, 1);
      auto* between = scratch<float>(4, count);
      float* z = out.target(block, 2, {y});
      apply_lane(args_.first.op, args_.first.reverse, x, lanes, between, count);
      binary_row(args_.op1, args_.reverse1 ? y : between, 1, args_.reverse1 ? between : y, 1, z,
                 count);
      out.write(block, z);
    });
  }

  Cost cost(const Machine& machine) const override {
    const double extra = std::holds_alternative<Tensor>(args_.first.operand)
                             ? machine.core.vector.operand_cycles
                             : 0.0;
    const bool fast = args_.first.op == AluOp::kSubtract && args_.op1 == AluOp::kMultiply &&
                      args_.dst.free_size() % 2 == 0;
    return stream_cost(machine, EngineKind::kVector,
                       vector_two_source_law(machine, args_.dst, args_.data, args_.operand1, fast),
                       args_.dst.free_size(), {&args_.dst, &args_.data, &args_.operand1}, extra);
  }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(ScalarTensorTensor args) {
  return std::make_unique<ScalarTensorTensorInstruction>(std::move(args));
}

}  // namespace trena
