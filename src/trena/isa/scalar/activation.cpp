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

}  // namespace

std::unique_ptr<Activation> Activation::reduce(Tensor dst, MathFunction function,
                                               ActivationInput input, AluOp op,
                                               std::optional<Tensor> result) {
  return std::make_unique<Activation>(
      std::move(dst), function, std::move(input),
      Reduction{op, ReduceCommand::kResetReduce, std::move(result), std::nullopt},
      "activation_reduce");
}

EngineKind Activation::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

void Activation::check_bias(const Machine& machine) const {
  if (!has_bias()) {
    return;
  }
  if (function_ == MathFunction::kReciprocal && !machine.legality.activation_reciprocal_bias) {
    refuse("activation-bias",
           {.rule = "activation(op=nl.reciprocal) takes no bias on NeuronCore-v2",
            .here = fmt::format("a bias on {}", machine.chip.name),
            .fix = "add the bias first (tensor_scalar)"});
  }
  const Tensor* tensor = std::get_if<Tensor>(&*input_.bias);
  if (tensor == nullptr) {
    if (!machine.legality.activation_bias_constant) {
      refuse(
          "activation-bias",
          {.rule = "the bias is a [P, 1] tensor on NeuronCore-v2; numbers came with v3",
           .here = fmt::format("bias={} on {}", std::get<double>(*input_.bias), machine.chip.name),
           .fix = "memset a [P, 1] tile and pass it"});
    }
    return;
  }
  require_tile(machine, name(), "bias", *tensor);
  require_lane_operand(name(), "bias", *input_.bias, data(), false);
  if (tensor->dtype() == DType::kTfloat32) {
    refuse("dtype-refused", {.rule = "the bias may have every type but tfloat32",
                             .here = fmt::format("`bias` is {}", tensor->describe()),
                             .fix = "view it as float32"});
  }
}

void Activation::check(const Machine& machine) const {
  engine(machine);
  require_tile(machine, name(), "dst", dst_);
  require_tile(machine, name(), "data", data());
  require_same_partitions(name(), "dst", dst_, "data", data());
  require_same_elements(name(), "dst", dst_, "data", data());
  require_activation_table(machine, function_);
  check_bias(machine);
  require_lane_operand(name(), "scale", input_.scale, data(), true);
  require_reduce_command(name(), reduction_.command,
                         {ReduceCommand::kIdle, ReduceCommand::kReset, ReduceCommand::kReduce,
                          ReduceCommand::kResetReduce});
  if (reduction_.op) {
    require_one_of(name(), "reduce_op", *reduction_.op, {AluOp::kAdd});
  }
  require_reduce_result(machine, name(), reduction_, data());
}

void Activation::access(AccessList& list) const {
  list.read(data());
  list.read(input_.scale);
  if (has_bias()) {
    list.read(*input_.bias);
  }
  list.write(dst_);
  access_reduction(reduction_, HiddenState::kScalarAccumulators, list);
}

void Activation::execute(CoreState& core) const {
  const TileRows out(dst_), in(data());
  const std::size_t row = in.row_elements();
  const LaneOperand scale(input_.scale, row);
  const LaneOperand bias(has_bias() ? *input_.bias : Operand(0.0), row);
  float* accumulators = core.scalar_accumulators.data() + data().start_partition();
  for_each_block(dst_.partitions(), row, 4.0, [&](const Block& block) {
    const std::size_t count = out.elements(block);
    const float* x = in.read(block, 0);
    const LaneView<float> factor = scale.read(block, 3);
    const LaneView<float> addend = bias.read(block, 4);
    float* z = out.target(block, 2, {x});
    if (!is_one(input_.scale)) {
      binary_row(AluOp::kMultiply, x, 1, factor.values, factor.stride, z, count);
      x = z;
    }
    if (has_bias()) {
      binary_row(AluOp::kAdd, x, 1, addend.values, addend.stride, z, count);
      x = z;
    }
    apply_row(function_, x, z, count);
    accumulate_rows(AluOp::kAdd, reduction_, accumulators, block, z, row);
    out.write(block, z);
  });
  read_out(reduction_, accumulators);
}

// Every function but copy reads a bias, a zero that the compiler supplies when the kernel gives
// none.
int Activation::operand_reads(const ScalarEngine& scalar) const {
  const int scale = std::holds_alternative<Tensor>(input_.scale) ? 1 : 0;
  if (function_ == MathFunction::kSilu) {
    return scale;  // its law was measured with the bias
  }
  const int bias = function_ == MathFunction::kCopy ? 0 : 1;
  return std::max(0, scale + bias - static_cast<int>(scalar.activation_operands));
}

Cost Activation::cost(const Machine& machine) const {
  return activation_cost(machine, function_, dst_, data(), reduction_,
                         operand_reads(machine.core.scalar));
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
