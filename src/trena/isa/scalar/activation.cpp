#include "trena/isa/scalar/activation.h"

#include <fmt/format.h>

#include <algorithm>

#include "trena/isa/core_state.h"
#include "trena/isa/operators.h"
#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"
#include "trena/isa/vector/copy_law.h"

namespace trena {
namespace {

// The set of functions that must be resident for this one; empty: no set has it.
std::string_view table_of(const ScalarEngine& scalar, MathFunction function) {
  for (const auto& [table, functions] : scalar.tables) {
    if (std::find(functions.begin(), functions.end(), name(function)) != functions.end()) {
      return table;
    }
  }
  return {};
}

bool is_one(const Operand& operand) {
  const double* number = std::get_if<double>(&operand);
  return number != nullptr && *number == 1.0;
}

class ActivationInstruction final : public InstructionOf<Activation> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return args_.name; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_elementwise(machine, name(), args_.dst, "data", data());
    require_activation_table(machine, args_.function);
    check_bias(machine);
    require_lane_operand(name(), "scale", args_.input.scale, data(), true);
    require_accumulation(machine, name(), args_.reduction, {AluOp::kAdd}, data());
  }

  void access(AccessList& list) const override {
    list.read(data());
    list.read(args_.input.scale);
    if (has_bias()) {
      list.read(*args_.input.bias);
    }
    list.write(args_.dst);
    access_reduction(args_.reduction, HiddenState::kScalarAccumulators, list);
  }

  void execute(CoreState& core) const override {
    const TileRows out(args_.dst), in(data());
    const std::size_t row = in.row_elements();
    const LaneOperand scale(args_.input.scale, row);
    const LaneOperand bias(has_bias() ? *args_.input.bias : Operand(0.0), row);
    float* accumulators = core.scalar_accumulators.data() + data().start_partition();
    for_each_block(args_.dst.partitions(), row, 4.0, [&](const Block& block) {
      const std::size_t count = out.elements(block);
      const float* x = in.read(block, 0);
      const LaneView<float> factor = scale.read(block, 3);
      const LaneView<float> addend = bias.read(block, 4);
      float* z = out.target(block, 2, {x});
      if (!is_one(args_.input.scale)) {
        binary_row(AluOp::kMultiply, x, 1, factor.values, factor.stride, z, count);
        x = z;
      }
      if (has_bias()) {
        binary_row(AluOp::kAdd, x, 1, addend.values, addend.stride, z, count);
        x = z;
      }
      apply_row(args_.function, x, z, count);
      accumulate_rows(AluOp::kAdd, args_.reduction, accumulators, block, z, row);
      out.write(block, z);
    });
    read_out(args_.reduction, accumulators);
  }

  Cost cost(const Machine& machine) const override {
    return activation_cost(machine, args_.function, args_.dst, data(), args_.reduction,
                           operand_reads(machine.core.scalar));
  }

  IndirectOperands indirect_operands() const override { return {&args_.dst, &args_.input.data}; }

 private:
  const Tensor& data() const { return args_.input.data; }
  bool has_bias() const { return args_.input.bias && args_.function != MathFunction::kCopy; }

  void check_bias(const Machine& machine) const {
    if (!has_bias()) {
      return;
    }
    if (args_.function == MathFunction::kReciprocal &&
        !machine.legality.activation_reciprocal_bias) {
      refuse("activation-bias",
             {.rule = "activation(op=nl.reciprocal) takes no bias on NeuronCore-v2",
              .here = fmt::format("a bias on {}", machine.chip.name),
              .fix = "add the bias first (tensor_scalar)"});
    }
    const Tensor* tensor = std::get_if<Tensor>(&*args_.input.bias);
    if (tensor == nullptr) {
      if (!machine.legality.activation_bias_constant) {
        refuse("activation-bias",
               {.rule = "the bias is a [P, 1] tensor on NeuronCore-v2; numbers came with v3",
                .here = fmt::format("bias={} on {}", std::get<double>(*args_.input.bias),
                                    machine.chip.name),
                .fix = "memset a [P, 1] tile and pass it"});
      }
      return;
    }
    require_tile(machine, name(), "bias", *tensor);
    require_lane_operand(name(), "bias", *args_.input.bias, data(), false);
    if (tensor->dtype() == DType::kTfloat32) {
      refuse("dtype-refused", {.rule = "the bias may have every type but tfloat32",
                               .here = fmt::format("`bias` is {}", tensor->describe()),
                               .fix = "view it as float32"});
    }
  }

  // Every function but copy reads a bias, a zero that the compiler supplies when the kernel gives
  // none.
  int operand_reads(const ScalarEngine& scalar) const {
    const int scale = std::holds_alternative<Tensor>(args_.input.scale) ? 1 : 0;
    if (args_.function == MathFunction::kSilu) {
      return scale;  // its law was measured with the bias
    }
    const int bias = args_.function == MathFunction::kCopy ? 0 : 1;
    return std::max(0, scale + bias - static_cast<int>(scalar.activation_operands));
  }
};

}  // namespace

Activation activation_reduce(Tensor dst, MathFunction function, ActivationInput input, AluOp op,
                             std::optional<Tensor> result) {
  return {std::move(dst), function, std::move(input),
          Reduction{op, ReduceCommand::kResetReduce, std::move(result), std::nullopt},
          "activation_reduce"};
}

std::unique_ptr<Instruction> make_instruction(Activation args) {
  return std::make_unique<ActivationInstruction>(std::move(args));
}

std::string_view require_activation_table(const Machine& machine, MathFunction function) {
  const std::string_view table = table_of(machine.core.scalar, function);
  if (table.empty()) {
    refuse("operator-refused",
           {.rule = "the scalar engine has the functions of its tables",
            .here = fmt::format("op=nl.{} on {}", name(function), name(EngineKind::kScalar)),
            .limit = fmt::format("the functions of core.scalar.tables of {}", machine.chip.name)});
  }
  return table;
}

Cost activation_cost(const Machine& machine, MathFunction function, const Tensor& dst,
                     const Tensor& data, const Reduction& reduction, int operand_reads) {
  const ScalarEngine& scalar = machine.core.scalar;
  const bool fast = streams_fast(machine, {&dst, &data});
  const StreamLaw& law = function == MathFunction::kSilu ? scalar.silu
                         : fast                          ? scalar.activation_16bit
                                                         : scalar.activation;
  const double extra = operand_reads * scalar.operand_cycles - scalar_psum_credit(machine, data);
  Cost cost =
      stream_cost(machine, EngineKind::kScalar, law, data.free_size(), {&dst, &data}, extra);
  cost.activation_table = table_of(scalar, function);
  if (reduction.result) {
    // A second instruction reads the accumulators out; it may start before dst is complete.
    const Ticks work =
        cost.completion - machine.ticks(EngineKind::kScalar, law.offset_cycles + extra);
    const double readout = scalar.accumulator_ready_cycles + scalar.accumulator_cycles;
    cost.interval += machine.ticks(EngineKind::kScalar, scalar.accumulator_issue_cycles);
    cost.completion = std::max(cost.completion, work + machine.ticks(EngineKind::kScalar, readout));
  }
  return cost;
}

}  // namespace trena
