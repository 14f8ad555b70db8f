#include "trena/isa/operators.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace trena {
namespace {

[[noreturn]] void refuse_operator(std::string_view rule, std::string_view instruction,
                                  std::string_view role, AluOp op, std::string limit) {
  refuse("operator-refused", {.rule = std::string(rule),
                              .here = fmt::format("{} {}=nl.{}", instruction, role, name(op)),
                              .limit = std::move(limit)});
}

bool came_with_v4(AluOp op) {
  return op == AluOp::kSquare || op == AluOp::kRelu || op == AluOp::kAbsMax || op == AluOp::kAbsMin;
}

}  // namespace

void require_operator(const Machine& machine, std::string_view instruction, std::string_view role,
                      AluOp op, EngineKind engine) {
  if (came_with_v4(op) && !machine.legality.extended_operators) {
    refuse_operator("square, relu, abs_max and abs_min came with NeuronCore-v4", instruction, role,
                    op, fmt::format("the other operators on {}", machine.chip.name));
  }
  if (op == AluOp::kAverage) {
    refuse_operator("average is a reduction across partitions", instruction, role, op,
                    "tensor_partition_reduce");
  }
  if (engine == EngineKind::kVector && (op == AluOp::kRsqrt || op == AluOp::kPower)) {
    refuse_operator("the vector engine has neither rsqrt nor power", instruction, role, op,
                    "leave `engine` out: GpSimd has both");
  }
  if (engine == EngineKind::kGpsimd && is_bitvec(op)) {
    refuse_operator("bitvec operators exist on the vector engine only", instruction, role, op,
                    "leave `engine` out, or name the vector engine");
  }
}

void require_binary(std::string_view instruction, std::string_view role, AluOp op) {
  if (is_unary(op)) {
    refuse_operator("the operator combines two tensors", instruction, role, op,
                    "a binary operator; tensor_scalar and activation take unary ones");
  }
}

void require_arithmetic(std::string_view instruction, std::string_view role, AluOp op) {
  if (is_bitvec(op)) {
    refuse_operator("this instruction computes in float32: bitvec operators are not supported",
                    instruction, role, op, "an arithmetic operator");
  }
}

void require_one_of(std::string_view instruction, std::string_view role, AluOp op,
                    std::initializer_list<AluOp> allowed) {
  if (std::find(allowed.begin(), allowed.end(), op) != allowed.end()) {
    return;
  }
  std::vector<std::string> names;
  for (const AluOp one : allowed) {
    names.push_back(fmt::format("nl.{}", name(one)));
  }
  refuse_operator("this instruction has a few operators only", instruction, role, op,
                  fmt::format("{}", fmt::join(names, ", ")));
}

void require_reduction(std::string_view instruction, std::string_view role, AluOp op) {
  require_one_of(instruction, role, op,
                 {AluOp::kAdd, AluOp::kSubtract, AluOp::kMultiply, AluOp::kMaximum, AluOp::kMinimum,
                  AluOp::kLogicalAnd, AluOp::kLogicalOr, AluOp::kLogicalXor, AluOp::kBitwiseAnd,
                  AluOp::kBitwiseOr, AluOp::kBitwiseXor});
}

void require_bitvec_operand(std::string_view instruction, std::string_view role,
                            const Operand& operand, const Tensor& data) {
  if (const Tensor* tensor = std::get_if<Tensor>(&operand)) {
    require_lane_operand(instruction, role, operand, data, false);
    require_integer(instruction, role, *tensor);
    return;
  }
  const double number = std::get<double>(operand);
  if (number == std::floor(number) && number >= -2147483648.0 && number <= 4294967295.0) {
    return;
  }
  refuse("bitvec-operand", {.rule = "a bitvec operator combines integers of at most 32 bits",
                            .here = fmt::format("{} {}={}", instruction, role, number),
                            .limit = "an integer from -2^31 to 2^32 - 1"});
}

}  // namespace trena
