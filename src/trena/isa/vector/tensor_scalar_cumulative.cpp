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

class TensorScalarCumulativeInstruction final : public InstructionOf<TensorScalarCumulative> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "tensor_scalar_cumulative"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    const EngineKind engine = this->engine(machine);
    for (const auto& [role, tensor] : {std::pair{"dst", &args_.dst}, {"src", &args_.src}}) {
      require_tile(machine, name(), role, *tensor);
      if (tensor->dtype() == DType::kInt32 || tensor->dtype() == DType::kUint32) {
        refuse("dtype-refused",
               {.rule = "tensor_scalar_cumulative has no datapath for 32-bit integers",
                .here = std::string(role) + " is " + tensor->describe(),
                .limit = "8- and 16-bit integers, and floats"});
      }
    }
    require_same_partitions(name(), "dst", args_.dst, "src", args_.src);
    require_same_elements(name(), "dst", args_.dst, "src", args_.src);
    require_arithmetic(name(), "op0", args_.op0);
    require_operator(machine, name(), "op0", args_.op0, engine);
    require_one_of(
        name(), "op1", *args_.reduction.op,
        {AluOp::kAdd, AluOp::kSubtract, AluOp::kMultiply, AluOp::kMaximum, AluOp::kMinimum});
    require_lane_operand(name(), "imm0", args_.operand0, args_.src, true);
    require_reduce_command(
        name(), args_.reduction.command,
        {ReduceCommand::kReduce, ReduceCommand::kResetReduce, ReduceCommand::kLoadReduce});
    require_reduce_initial(name(), "imm1", args_.reduction, args_.src);
  }

  void access(AccessList& list) const override {
    list.read(args_.src);
    list.read(args_.operand0);
    list.write(args_.dst);
    access_reduction(args_.reduction, HiddenState::kVectorAccumulators, list);
  }

  void execute(CoreState& core) const override {
    const TileRows out(args_.dst), in(args_.src);
    const std::size_t row = in.row_elements();
    const LaneOperand operand(args_.operand0, row);
    float* accumulators = core.vector_accumulators.data() + args_.src.start_partition();
    for_each_block(args_.dst.partitions(), row, 4.0, [&](const Block& block) {
      const std::size_t count = out.elements(block);
      const LaneView<float> lanes = operand.read(block, 3);
      const float* x = in.read(block, 0);
      auto* z = scratch<float>(2, count);
      apply_lane(args_.op0, false, x, lanes, z, count);
      for (std::int64_t p = 0; p < block.partitions; ++p) {
        float* values = z + static_cast<std::size_t>(p) * row;
        float& accumulator = accumulators[block.first + p];
        const float initial = start(args_.reduction, accumulator, block.first + p);
        accumulator = scan_row(*args_.reduction.op, AluOp::kBypass, values, 1, values, 1, initial,
                               values, row);
      }
      out.write(block, z);
    });
  }

  Cost cost(const Machine& machine) const override {
    const VectorEngine& vector = machine.core.vector;
    const bool loads = args_.reduction.command == ReduceCommand::kLoadReduce &&
                       std::holds_alternative<Tensor>(*args_.reduction.initial);
    const double operands =
        (std::holds_alternative<Tensor>(args_.operand0) ? 1.0 : 0.0) + (loads ? 1.0 : 0.0);
    return stream_cost(machine, EngineKind::kVector, vector.cumulative, args_.src.free_size(),
                       {&args_.dst, &args_.src}, operands * vector.operand_cycles);
  }

  IndirectOperands indirect_operands() const override { return {&args_.dst, &args_.src}; }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(TensorScalarCumulative args) {
  return std::make_unique<TensorScalarCumulativeInstruction>(std::move(args));
}

}  // namespace trena
