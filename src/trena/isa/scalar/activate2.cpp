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

class Activate2Instruction final : public InstructionOf<Activate2> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "activate2"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_elementwise(machine, name(), args_.dst, "data", args_.data);
    require_activation_table(machine, args_.function);
    check_steps();
    check_operand(machine, "imm0", args_.first.operand);
    check_operand(machine, "imm1", args_.second.operand);
    check_operand(machine, "relu_param", args_.relu_param);
    if (is_read(args_.first) && is_read(args_.second)) {
      require_same_dtype(name(), "imm0", std::get<Tensor>(args_.first.operand), "imm1",
                         std::get<Tensor>(args_.second.operand));
    }
    require_accumulation(
        machine, name(), args_.reduction,
        {AluOp::kAdd, AluOp::kMaximum, AluOp::kMinimum, AluOp::kAbsMax, AluOp::kAbsMin},
        args_.data);
  }

  void access(AccessList& list) const override {
    list.read(args_.data);
    for (const ScalarStep* step : {&args_.first, &args_.second}) {
      if (is_read(*step)) {
        list.read(step->operand);
      }
    }
    if (args_.function == MathFunction::kPrelu) {
      list.read(args_.relu_param);
    }
    list.write(args_.dst);
    access_reduction(args_.reduction, HiddenState::kScalarAccumulators, list);
  }

  void execute(CoreState& core) const override {
    const TileRows out(args_.dst), in(args_.data);
    const std::size_t row = in.row_elements();
    const LaneOperand imm0(args_.first.op == AluOp::kBypass ? Operand(0.0) : args_.first.operand,
                           row);
    const LaneOperand imm1(args_.second.op == AluOp::kBypass ? Operand(0.0) : args_.second.operand,
                           row);
    const AluOp reduce_op = args_.reduction.op.value_or(AluOp::kAdd);
    float* accumulators = core.scalar_accumulators.data() + args_.data.start_partition();
    for_each_block(args_.dst.partitions(), row, 4.0, [&](const Block& block) {
      const std::size_t count = out.elements(block);
      const float* x = in.read(block, 0);
      float* z = out.target(block, 2, {x});
      x = apply(args_.first, imm0, block, 3, x, z, count);
      x = apply(args_.second, imm1, block, 4, x, z, count);
      if (args_.function != MathFunction::kPrelu) {
        apply_row(args_.function, x, z, count);
      } else {
        for (std::int64_t p = 0; p < block.partitions; ++p) {
          const std::size_t at = static_cast<std::size_t>(p) * row;
          prelu_row(x + at, lane_value(args_.relu_param, block.first + p), z + at, row);
        }
      }
      accumulate_rows(reduce_op, args_.reduction, accumulators, block, z, row);
      out.write(block, z);
    });
    read_out(args_.reduction, accumulators);
  }

  Cost cost(const Machine& machine) const override {
    const bool slope =
        args_.function == MathFunction::kPrelu && std::holds_alternative<Tensor>(args_.relu_param);
    const int reads =
        (is_read(args_.first) ? 1 : 0) + (is_read(args_.second) ? 1 : 0) + (slope ? 1 : 0);
    return activation_cost(machine, args_.function, args_.dst, args_.data, args_.reduction, reads);
  }

  IndirectOperands indirect_operands() const override { return {&args_.dst, &args_.data}; }

 private:
  void check_steps() const {
    const auto form = std::pair(args_.first.op, args_.second.op);
    if (std::find(kForms.begin(), kForms.end(), form) == kForms.end()) {
      refuse("operator-refused",
             {.rule = "activate2 has six forms of (data op0 imm0) op1 imm1",
              .here = fmt::format("op0=nl.{}, op1=nl.{}", trena::name(args_.first.op),
                                  trena::name(args_.second.op)),
              .limit = "(multiply, add), (multiply, subtract), (multiply, bypass), (add, bypass), "
                       "(subtract, bypass), (bypass, bypass)"});
    }
    for (const auto& [role, step] :
         {std::pair{"reverse0", &args_.first}, {"reverse1", &args_.second}}) {
      if (step->reverse && step->op == AluOp::kBypass) {
        refuse("reverse-refused", {.rule = "only an operator has sides to reverse",
                                   .here = fmt::format("{}=True with nl.bypass", role)});
      }
    }
  }

  void check_operand(const Machine& machine, std::string_view role, const Operand& operand) const {
    if (const auto* tensor = std::get_if<Tensor>(&operand)) {
      require_tile(machine, name(), role, *tensor);
    }
    require_lane_operand(name(), role, operand, args_.data, false);
  }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(Activate2 args) {
  return std::make_unique<Activate2Instruction>(std::move(args));
}

}  // namespace trena
