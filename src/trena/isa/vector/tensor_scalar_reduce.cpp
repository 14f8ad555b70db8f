#include "trena/isa/vector/tensor_scalar_reduce.h"

#include "trena/isa/core_state.h"
#include "trena/isa/operators.h"
#include "trena/isa/stream.h"
#include "trena/isa/vector/copy_law.h"

namespace trena {
namespace {

class TensorScalarReduceInstruction final : public InstructionOf<TensorScalarReduce> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "tensor_scalar_reduce"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    const EngineKind engine = this->engine(machine);
    require_elementwise(machine, name(), args_.dst, "data", args_.data);
    require_arithmetic(name(), "op0", args_.step.op);
    require_operator(machine, name(), "op0", args_.step.op, engine);
    require_lane_operand(name(), "operand0", args_.step.operand, args_.data, true);
    if (args_.step.reverse) {
      refuse("reverse-refused", {.rule = "tensor_scalar_reduce does not reverse its operands yet",
                                 .here = "reverse0=True",
                                 .limit = "reverse0=False",
                                 .fix = "use tensor_scalar, then tensor_reduce"});
    }
    require_one_of(name(), "reduce_op", args_.reduction.op.value_or(AluOp::kBypass),
                   {AluOp::kAdd, AluOp::kMultiply, AluOp::kMaximum, AluOp::kMinimum});
    require_reduce_command(
        name(), args_.reduction.command,
        {ReduceCommand::kReduce, ReduceCommand::kResetReduce, ReduceCommand::kLoadReduce});
    require_reduce_initial(name(), "reduce_init", args_.reduction, args_.data);
    require_reduce_result(machine, name(), args_.reduction, args_.data);
  }

  void access(AccessList& list) const override {
    list.read(args_.data);
    list.read(args_.step.operand);
    list.write(args_.dst);
    access_reduction(args_.reduction, HiddenState::kVectorAccumulators, list);
  }

  void execute(CoreState& core) const override {
    const TileRows out(args_.dst), in(args_.data);
    const LaneOperand operand(args_.step.operand, in.row_elements());
    float* accumulators = core.vector_accumulators.data() + args_.data.start_partition();
    for_each_block(args_.dst.partitions(), out.row_elements(), 1.5, [&](const Block& block) {
      const std::size_t count = out.elements(block);
      const LaneView<float> lanes = operand.read(block, 3);
      const float* x = in.read(block, 0);
      auto* z = scratch<float>(2, count);  // not dst: reduce_init may lie there
      apply_lane(args_.step.op, false, x, lanes, z, count);
      accumulate_rows(*args_.reduction.op, args_.reduction, accumulators, block, z,
                      in.row_elements());
      out.write(block, z);
    });
    read_out(args_.reduction, accumulators, args_.negate);
  }

  Cost cost(const Machine& machine) const override {
    const VectorEngine& vector = machine.core.vector;
    const double operand =
        std::holds_alternative<Tensor>(args_.step.operand) ? vector.operand_cycles : 0.0;
    return with_accumulator(
        machine,
        stream_cost(machine, EngineKind::kVector, vector_copy_law(machine, args_.dst, args_.data),
                    args_.data.free_size(), {&args_.dst, &args_.data}, operand),
        args_.reduction);
  }

  IndirectOperands indirect_operands() const override { return {&args_.dst, &args_.data}; }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(TensorScalarReduce args) {
  return std::make_unique<TensorScalarReduceInstruction>(std::move(args));
}

}  // namespace trena
