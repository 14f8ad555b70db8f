#include "trena/isa/reduce.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

namespace trena {
namespace {

std::string_view name(ReduceCommand command) {
  constexpr std::array<std::string_view, 5> kNames = {"idle", "reset", "reduce", "reset_reduce",
                                                      "load_reduce"};
  return kNames[static_cast<std::size_t>(command)];
}

float combine(AluOp op, float a, float b) {
  float result = 0.0F;
  binary_row(op, &a, 1, &b, 1, &result, 1);
  return result;
}

}  // namespace

float accumulate(AluOp op, ReduceCommand command, float accumulator, float initial, float row) {
  switch (command) {
    case ReduceCommand::kIdle:
      return accumulator;
    case ReduceCommand::kReset:
      return identity(op);
    case ReduceCommand::kReduce:
      return combine(op, accumulator, row);
    case ReduceCommand::kResetReduce:
      return row;
    case ReduceCommand::kLoadReduce:
      return combine(op, initial, row);
  }
  return accumulator;
}

void require_reduce_command(std::string_view instruction, ReduceCommand command,
                            std::initializer_list<ReduceCommand> allowed) {
  if (std::find(allowed.begin(), allowed.end(), command) != allowed.end()) {
    return;
  }
  std::vector<std::string_view> names;
  for (const ReduceCommand one : allowed) {
    names.push_back(name(one));
  }
  refuse("reduce-cmd", {.rule = "an instruction has its own commands for the accumulators",
                        .here = fmt::format("{} reduce_cmd={}", instruction, name(command)),
                        .limit = fmt::format("{}", fmt::join(names, ", "))});
}

void require_reduce_result(const Machine& machine, std::string_view instruction,
                           const Reduction& reduction, const Tensor& data) {
  if (!reduction.result) {
    return;
  }
  require_tile(machine, instruction, "reduce_res", *reduction.result);
  require_lane_operand(instruction, "reduce_res", *reduction.result, data, false);
}

}  // namespace trena
