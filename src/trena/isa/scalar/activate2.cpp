#include "trena/isa/scalar/activate2.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "trena/isa/core_state.h"
#include "trena/isa/operators.h"
#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"

namespace trena {
namespace {

// The tensor-scalar stage has six forms (AWS nki.isa reference).
constexpr std::array<std::pair<AluOp, AluOp>, 6> kForms = {{{AluOp::kMultiply, AluOp::kAdd},
                                                            {AluOp::kMultiply, AluOp::kSubtract},
                                                            {AluOp::kMultiply, AluOp::kBypass},
                                                            {AluOp::kAdd, AluOp::kBypass},
                                                            {AluOp::kSubtract, AluOp::kBypass},
                                                            {AluOp::kBypass, AluOp::kBypass}}};

bool is_read(const ScalarStep& step) {
  return step.op != AluOp::kBypass && std::holds_alternative<Tensor>(step.operand);
}

// z = x op operand, or x itself where the step does nothing.
const float* apply(const ScalarStep& step, const LaneOperand& operand, const Block& block,
                   std::size_t slot, const float* x, float* z, std::size_t count) {
  if (step.op == AluOp::kBypass) {
    return x;
  }
  apply_lane(step.op, step.reverse, x, operand.read(block, slot), z, count);
  return z;
}

}  // namespace

EngineKind Activate2::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

void Activate2::check_steps() const {
  const auto form = std::pair(first_.op, second_.op);
  if (std::find(kForms.begin(), kForms.end(), form) == kForms.end()) {
    refuse("operator-refused",
           {.rule = "activate2 has six forms of (data op0 imm0) op1 imm1",
            .here = fmt::format("op0=nl.{}, op1=nl.{}", trena::name(first_.op),
                                trena::name(second_.op)),
            .limit = "(multiply, add), (multiply, subtract), (multiply, bypass), (add, bypass), "
                     "(subtract, bypass), (bypass, bypass)"});
  }
  for (const auto& [role, step] : {std::pair{"reverse0", &first_}, {"reverse1", &second_}}) {
    if (step->reverse && step->op == AluOp::kBypass) {
      refuse("reverse-refused", {.rule = "only an operator has sides to reverse",
                                 .here = fmt::format("{}=True with nl.bypass", role)});
    }
  }
}

void Activate2::check_operand(const Machine& machine, std::string_view role,
                              const Operand& operand) const {
  if (const auto* tensor = std::get_if<Tensor>(&operand)) {
    require_tile(machine, name(), role, *tensor);
  }
  require_lane_operand(name(), role, operand, data_, false);
}

void Activate2::check(const Machine& machine) const {
  engine(machine);
  require_tile(machine, name(), "dst", dst_);
  require_tile(machine, name(), "data", data_);
  require_same_partitions(name(), "dst", dst_, "data", data_);
  require_same_elements(name(), "dst", dst_, "data", data_);
  require_activation_table(machine, function_);
  check_steps();
  check_operand(machine, "imm0", first_.operand);
  check_operand(machine, "imm1", second_.operand);
  check_operand(machine, "relu_param", relu_param_);
  if (is_read(first_) && is_read(second_)) {
    require_same_dtype(name(), "imm0", std::get<Tensor>(first_.operand), "imm1",
                       std::get<Tensor>(second_.operand));
  }
  require_reduce_command(name(), reduction_.command,
                         {ReduceCommand::kIdle, ReduceCommand::kReset, ReduceCommand::kReduce,
                          ReduceCommand::kResetReduce});
  require_one_of(name(), "reduce_op", reduction_.op.value_or(AluOp::kAdd),
                 {AluOp::kAdd, AluOp::kMaximum, AluOp::kMinimum, AluOp::kAbsMax, AluOp::kAbsMin});
  require_reduce_result(machine, name(), reduction_, data_);
}

void Activate2::access(AccessList& list) const {
  list.read(data_);
  for (const ScalarStep* step : {&first_, &second_}) {
    if (is_read(*step)) {
      list.read(step->operand);
    }
  }
  if (function_ == MathFunction::kPrelu) {
    list.read(relu_param_);
  }
  list.write(dst_);
  access_reduction(reduction_, HiddenState::kScalarAccumulators, list);
}

void Activate2::execute(CoreState& core) const {
  const TileRows out(dst_), in(data_);
  const std::size_t row = in.row_elements();
  const LaneOperand imm0(first_.op == AluOp::kBypass ? Operand(0.0) : first_.operand, row);
  const LaneOperand imm1(second_.op == AluOp::kBypass ? Operand(0.0) : second_.operand, row);
  const AluOp reduce_op = reduction_.op.value_or(AluOp::kAdd);
  float* accumulators = core.scalar_accumulators.data() + data_.start_partition();
  for_each_block(dst_.partitions(), row, 4.0, [&](const Block& block) {
    const std::size_t count = out.elements(block);
    const float* x = in.read(block, 0);
    float* z = out.target(block, 2, {x});
    x = apply(first_, imm0, block, 3, x, z, count);
    x = apply(second_, imm1, block, 4, x, z, count);
    if (function_ != MathFunction::kPrelu) {
      apply_row(function_, x, z, count);
    } else {
      for (std::int64_t p = 0; p < block.partitions; ++p) {
        const std::size_t at = static_cast<std::size_t>(p) * row;
        prelu_row(x + at, lane_value(relu_param_, block.first + p), z + at, row);
      }
    }
    accumulate_rows(reduce_op, reduction_, accumulators, block, z, row);
    out.write(block, z);
  });
  read_out(reduction_, accumulators);
}

Cost Activate2::cost(const Machine& machine) const {
  const bool slope =
      function_ == MathFunction::kPrelu && std::holds_alternative<Tensor>(relu_param_);
  const int reads = (is_read(first_) ? 1 : 0) + (is_read(second_) ? 1 : 0) + (slope ? 1 : 0);
  return activation_cost(machine, function_, dst_, data_, reduction_, reads);
}

}  // namespace trena
