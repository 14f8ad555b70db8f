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

}  // namespace

EngineKind TensorScalar::engine(const Machine& machine) const {
  if (!engine_ && (uses(AluOp::kRsqrt) || uses(AluOp::kPower))) {
    return resolve_engine(machine, name(), EngineKind::kGpsimd);
  }
  return resolve_engine(machine, name(), engine_);
}

// The scalar engine has multiply then add, or one of them; GpSimd what no other engine has.
void TensorScalar::check_engine(const Machine& machine, EngineKind engine) const {
  const Legality& legality = machine.legality;
  bool legal = true;
  std::string limit;
  if (engine == EngineKind::kScalar) {
    const std::vector<std::string>& operators = legality.scalar_operators;
    legal = is_in(operators, first_.op) &&
            (!second_ || (is_in(operators, second_->op) && first_.op == AluOp::kMultiply &&
                          second_->op == AluOp::kAdd));
    limit = "multiply then add, multiply, or add";
  } else if (engine == EngineKind::kGpsimd) {
    legal = std::any_of(legality.gpsimd_operators.begin(), legality.gpsimd_operators.end(),
                        [&](const std::string& op) {
                          return trena::name(first_.op) == op ||
                                 (second_ && trena::name(second_->op) == op);
                        }) ||
            uses(AluOp::kPower);
    limit = fmt::format("{}, power", fmt::join(legality.gpsimd_operators, ", "));
  }
  if (!legal) {
    refuse(
        "operator-refused",
        {.rule = fmt::format("tensor_scalar on the {} engine has a few operators only",
                             trena::name(engine)),
         .here = fmt::format("op0=nl.{}{}", trena::name(first_.op),
                             second_ ? fmt::format(", op1=nl.{}", trena::name(second_->op)) : ""),
         .limit = limit,
         .fix = "leave `engine` out"});
  }
}

void TensorScalar::check_step(const Machine& machine, EngineKind engine, std::string_view op_role,
                              std::string_view operand_role, const ScalarStep& step) const {
  require_operator(machine, name(), op_role, step.op, engine);
  if (is_bitvec(step.op)) {
    require_bitvec_operand(name(), operand_role, step.operand, data_);
  } else {
    require_lane_operand(name(), operand_role, step.operand, data_, true);
  }
}

void TensorScalar::check(const Machine& machine) const {
  require_tile(machine, name(), "dst", dst_);
  require_tile(machine, name(), "data", data_);
  require_same_partitions(name(), "dst", dst_, "data", data_);
  require_same_elements(name(), "dst", dst_, "data", data_);
  const EngineKind engine = this->engine(machine);
  require_engine_reaches(machine, name(), engine, {&dst_, &data_});
  if (second_ && is_bitvec(first_.op) != is_bitvec(second_->op)) {
    refuse("operator-class", {.rule = "op0 and op1 are both bitvec or both arithmetic",
                              .here = fmt::format("op0=nl.{}, op1=nl.{}", trena::name(first_.op),
                                                  trena::name(second_->op)),
                              .fix = "use two instructions"});
  }
  if (is_bitvec(first_.op)) {
    require_integer(name(), "dst", dst_);
    require_integer(name(), "data", data_);
  }
  check_step(machine, engine, "op0", "operand0", first_);
  if (second_) {
    check_step(machine, engine, "op1", "operand1", *second_);
  }
  check_engine(machine, engine);
}

void TensorScalar::access(AccessList& list) const {
  list.read(data_);
  list.read(first_.operand);
  if (second_) {
    list.read(second_->operand);
  }
  list.write(dst_);
}

void TensorScalar::execute(CoreState&) const {
  if (is_bitvec(first_.op)) {
    execute_bits();
  } else {
    execute_float32();
  }
}

void TensorScalar::execute_float32() const {
  const TileRows out(dst_), in(data_);
  const LaneOperand operand0(first_.operand, in.row_elements());
  const LaneOperand operand1(second_ ? second_->operand : Operand(0.0), in.row_elements());
  for_each_block(dst_.partitions(), out.row_elements(), 1.0, [&](const Block& block) {
    const std::size_t count = out.elements(block);
    const LaneView<float> first = operand0.read(block, 3);
    const LaneView<float> second = operand1.read(block, 4);
    const float* x = in.read(block, 0);
    float* z = out.target(block, 2, {x});
    apply_lane(first_.op, first_.reverse, x, first, z, count);
    if (second_) {
      apply_lane(second_->op, second_->reverse, z, second, z, count);
    }
    out.write(block, z);
  });
}

void TensorScalar::execute_bits() const {
  const TileRows out(dst_), in(data_);
  const LaneOperand operand0(first_.operand, in.row_elements());
  const LaneOperand operand1(second_ ? second_->operand : Operand(0.0), in.row_elements());
  for_each_block(dst_.partitions(), out.row_elements(), 1.0, [&](const Block& block) {
    const std::size_t count = out.elements(block);
    const std::uint32_t* x = in.read_bits(block, 0);
    auto* z = scratch<std::uint32_t>(2, count);
    apply_bits(first_, x, operand0.read_bits(block, 3), z, count);
    if (second_) {
      apply_bits(*second_, z, operand1.read_bits(block, 4), z, count);
    }
    out.write_bits(block, z);
  });
}

Cost TensorScalar::cost(const Machine& machine) const {
  const EngineKind engine = this->engine(machine);
  const Core& core = machine.core;
  const int operands =
      tensor_count(first_.operand) + (second_ ? tensor_count(second_->operand) : 0);
  switch (engine) {
    case EngineKind::kScalar:
      return stream_cost(
          machine, engine, scalar_copy_law(machine, dst_, data_), data_.free_size(),
          {&dst_, &data_},
          operands * core.scalar.operand_cycles - scalar_psum_credit(machine, data_));
    case EngineKind::kGpsimd:
      return stream_cost(machine, engine,
                         uses(AluOp::kRsqrt) ? core.gpsimd.rsqrt : core.gpsimd.tensor_scalar,
                         data_.free_size(), {&dst_, &data_});
    default:
      return stream_cost(machine, engine, vector_copy_law(machine, dst_, data_), data_.free_size(),
                         {&dst_, &data_}, operands * core.vector.operand_cycles);
  }
}

}  // namespace trena
