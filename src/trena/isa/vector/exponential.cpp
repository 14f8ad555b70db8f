#include "trena/isa/vector/exponential.h"

#include "trena/isa/core_state.h"
#include "trena/isa/stream.h"

namespace trena {
namespace {

constexpr int kMostDimensions = 4;

class ExponentialInstruction final : public InstructionOf<Exponential> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "exponential"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_elementwise(machine, name(), args_.dst, "src", args_.src);
    require_dtype(name(), "dst", args_.dst,
                  {DType::kFloat8E4m3, DType::kFloat8E5m2, DType::kFloat16, DType::kBfloat16,
                   DType::kFloat32, DType::kTfloat32, DType::kInt8, DType::kInt16, DType::kInt32,
                   DType::kUint8, DType::kUint16});
    require_dtype(name(), "src", args_.src,
                  {DType::kFloat8E4m3, DType::kFloat8E5m2, DType::kFloat16, DType::kBfloat16,
                   DType::kFloat32, DType::kInt8, DType::kInt16, DType::kInt32, DType::kUint8,
                   DType::kUint16, DType::kUint32});
    if (std::max(args_.dst.rank(), args_.src.rank()) > kMostDimensions) {
      refuse("rank-limit", {.rule = "exponential takes tiles of up to four dimensions",
                            .here = args_.src.describe() + " to " + args_.dst.describe(),
                            .limit = "4 dimensions"});
    }
    require_lane_operand(name(), "max_value", args_.max_value, args_.src, true);
    require_reduce_command(name(), args_.reduction.command,
                           {ReduceCommand::kIdle, ReduceCommand::kReduce,
                            ReduceCommand::kResetReduce, ReduceCommand::kLoadReduce});
    require_reduce_initial(name(), "reduce_init", args_.reduction, args_.src);
    require_reduce_result(machine, name(), args_.reduction, args_.src);
    if (args_.reduction.result) {
      require_dtype(name(), "reduce_res", *args_.reduction.result,
                    {DType::kFloat8E4m3, DType::kFloat8E5m2, DType::kFloat16, DType::kBfloat16,
                     DType::kFloat32, DType::kTfloat32});
    }
  }

  void access(AccessList& list) const override {
    list.read(args_.src);
    list.read(args_.max_value);
    list.write(args_.dst);
    access_reduction(args_.reduction, HiddenState::kVectorAccumulators, list);
  }

  void execute(CoreState& core) const override {
    const TileRows out(args_.dst), in(args_.src);
    const std::size_t row = in.row_elements();
    const LaneOperand max_value(args_.max_value, row);
    float* accumulators = core.vector_accumulators.data() + args_.src.start_partition();
    for_each_block(args_.dst.partitions(), row, 4.0, [&](const Block& block) {
      const std::size_t count = out.elements(block);
      const float* x = in.read(block, 0);
      const LaneView<float> highest = max_value.read(block, 3);
      float* z = out.target(block, 2, {x});
      binary_row(AluOp::kSubtract, x, 1, highest.values, highest.stride, z, count);
      apply_row(MathFunction::kExp, z, z, count);
      accumulate_rows(AluOp::kAdd, args_.reduction, accumulators, block, z, row);
      out.write(block, z);
    });
    read_out(args_.reduction, accumulators);
  }

  Cost cost(const Machine& machine) const override {
    const VectorEngine& vector = machine.core.vector;
    const double operand =
        std::holds_alternative<Tensor>(args_.max_value) ? vector.operand_cycles : 0.0;
    return with_accumulator(machine,
                            stream_cost(machine, EngineKind::kVector, vector.exponential,
                                        args_.src.free_size(), {&args_.dst, &args_.src}, operand),
                            args_.reduction);
  }

  IndirectOperands indirect_operands() const override { return {&args_.dst, &args_.src}; }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(Exponential args) {
  return std::make_unique<ExponentialInstruction>(std::move(args));
}

}  // namespace trena
