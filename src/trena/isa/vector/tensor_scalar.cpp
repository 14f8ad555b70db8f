#include "trena/isa/vector/tensor_scalar.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "trena/isa/operators.h"
#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"
#include "trena/isa/vector/copy_law.h"

namespace trena {
namespace {

bool is_in(const std::vector<std::string>& names, AluOp op) {
  return std::find(names.begin(), names.end(), name(op)) != names.end();
}

int tensor_count(const Operand& operand) { return std::holds_alternative<Tensor>(operand) ? 1 : 0; }

void apply_bits(const ScalarStep& step, const std::uint32_t* data, LaneView<std::uint32_t> operand,
                std::uint32_t* out, std::size_t count) {
  if (step.reverse && !is_unary(step.op)) {
    binary_row_uint32(step.op, operand.values, operand.stride, data, 1, out, count);
  } else {
    binary_row_uint32(step.op, data, 1, operand.values, operand.stride, out, count);
  }
}

class TensorScalarInstruction final : public InstructionOf<TensorScalar> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "tensor_scalar"; }

  // Unless asked otherwise: GpSimd for rsqrt and power, else the vector engine.
  EngineKind engine(const Machine& machine) const override {
    if (!args_.engine && (uses(AluOp::kRsqrt) || uses(AluOp::kPower))) {
      return resolve_engine(machine, name(), EngineKind::kGpsimd);
    }
    return resolve_engine(machine, name(), args_.engine);
  }

  void check(const Machine& machine) const override {
    require_elementwise(machine, name(), args_.dst, "data", args_.data);
    const EngineKind engine = this->engine(machine);
    require_engine_reaches(machine, name(), engine, {&args_.dst, &args_.data});
    if (args_.second && is_bitvec(args_.first.op) != is_bitvec(args_.second->op)) {
      refuse("operator-class",
             {.rule = "op0 and op1 are both bitvec or both arithmetic",
              .here = fmt::format("op0=nl.{}, op1=nl.{}", trena::name(args_.first.op),
                                  trena::name(args_.second->op)),
              .fix = "use two instructions"});
    }
    if (is_bitvec(args_.first.op)) {
      require_integer(name(), "dst", args_.dst);
      require_integer(name(), "data", args_.data);
    }
    check_step(machine, engine, "op0", "operand0", args_.first);
    if (args_.second) {
      check_step(machine, engine, "op1", "operand1", *args_.second);
    }
    check_engine(machine, engine);
  }

  void access(AccessList& list) const override {
    list.read(args_.data);
    list.read(args_.first.operand);
    if (args_.second) {
      list.read(args_.second->operand);
    }
    list.write(args_.dst);
  }

  void execute(CoreState&) const override {
    if (is_bitvec(args_.first.op)) {
      execute_bits();
    } else {
      execute_float32();
    }
  }

  Cost cost(const Machine& machine) const override {
    const EngineKind engine = this->engine(machine);
    const Core& core = machine.core;
    const int operands = tensor_count(args_.first.operand) +
                         (args_.second ? tensor_count(args_.second->operand) : 0);
    switch (engine) {
      case EngineKind::kScalar:
        return stream_cost(
            machine, engine, scalar_copy_law(machine, args_.dst, args_.data),
            args_.data.free_size(), {&args_.dst, &args_.data},
            operands * core.scalar.operand_cycles - scalar_psum_credit(machine, args_.data));
      case EngineKind::kGpsimd:
        return stream_cost(machine, engine,
                           uses(AluOp::kRsqrt) ? core.gpsimd.rsqrt : core.gpsimd.tensor_scalar,
                           args_.data.free_size(), {&args_.dst, &args_.data});
      default:
        return stream_cost(machine, engine, vector_copy_law(machine, args_.dst, args_.data),
                           args_.data.free_size(), {&args_.dst, &args_.data},
                           operands * core.vector.operand_cycles);
    }
  }

  IndirectOperands indirect_operands() const override { return {&args_.dst, &args_.data}; }

 private:
  bool uses(AluOp op) const {
    return args_.first.op == op || (args_.second && args_.second->op == op);
  }

  // The scalar engine has multiply then add, or one of them; GpSimd what no other engine has.
  void check_engine(const Machine& machine, EngineKind engine) const {
    const Legality& legality = machine.legality;
    bool legal = true;
    std::string limit;
    if (engine == EngineKind::kScalar) {
      const std::vector<std::string>& operators = legality.scalar_operators;
      legal = is_in(operators, args_.first.op) &&
              (!args_.second ||
               (is_in(operators, args_.second->op) && args_.first.op == AluOp::kMultiply &&
                args_.second->op == AluOp::kAdd));
      limit = "multiply then add, multiply, or add";
    } else if (engine == EngineKind::kGpsimd) {
      legal = std::any_of(legality.gpsimd_operators.begin(), legality.gpsimd_operators.end(),
                          [&](const std::string& op) {
                            return trena::name(args_.first.op) == op ||
                                   (args_.second && trena::name(args_.second->op) == op);
                          }) ||
              uses(AluOp::kPower);
      limit = fmt::format("{}, power", fmt::join(legality.gpsimd_operators, ", "));
    }
    if (!legal) {
      refuse("operator-refused",
             {.rule = fmt::format("tensor_scalar on the {} engine has a few operators only",
                                  trena::name(engine)),
              .here = fmt::format(
                  "op0=nl.{}{}", trena::name(args_.first.op),
                  args_.second ? fmt::format(", op1=nl.{}", trena::name(args_.second->op)) : ""),
              .limit = limit,
              .fix = "leave `engine` out"});
    }
  }

  void check_step(const Machine& machine, EngineKind engine, std::string_view op_role,
                  std::string_view operand_role, const ScalarStep& step) const {
    require_operator(machine, name(), op_role, step.op, engine);
    if (is_bitvec(step.op)) {
      require_bitvec_operand(name(), operand_role, step.operand, args_.data);
    } else {
      require_lane_operand(name(), operand_role, step.operand, args_.data, true);
    }
  }

  void execute_float32() const {
    const TileRows out(args_.dst), in(args_.data);
    const LaneOperand operand0(args_.first.operand, in.row_elements());
    const LaneOperand operand1(args_.second ? args_.second->operand : Operand(0.0),
                               in.row_elements());
    for_each_block(args_.dst.partitions(), out.row_elements(), 1.0, [&](const Block& block) {
      const std::size_t count = out.elements(block);
      const LaneView<float> first = operand0.read(block, 3);
      const LaneView<float> second = operand1.read(block, 4);
      const float* x = in.read(block, 0);
      float* z = out.target(block, 2, {x});
      apply_lane(args_.first.op, args_.first.reverse, x, first, z, count);
      if (args_.second) {
        apply_lane(args_.second->op, args_.second->reverse, z, second, z, count);
      }
      out.write(block, z);
    });
  }

  void execute_bits() const {
    const TileRows out(args_.dst), in(args_.data);
    const LaneOperand operand0(args_.first.operand, in.row_elements());
    const LaneOperand operand1(args_.second ? args_.second->operand : Operand(0.0),
                               in.row_elements());
    for_each_block(args_.dst.partitions(), out.row_elements(), 1.0, [&](const Block& block) {
      const std::size_t count = out.elements(block);
      const std::uint32_t* x = in.read_bits(block, 0);
      auto* z = scratch<std::uint32_t>(2, count);
      apply_bits(args_.first, x, operand0.read_bits(block, 3), z, count);
      if (args_.second) {
        apply_bits(*args_.second, z, operand1.read_bits(block, 4), z, count);
      }
      out.write_bits(block, z);
    });
  }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(TensorScalar args) {
  return std::make_unique<TensorScalarInstruction>(std::move(args));
}

}  // namespace trena
