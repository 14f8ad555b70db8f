#include "trena/isa/reduce.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "trena/isa/operators.h"

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

void accumulate_rows(AluOp op, const Reduction& reduction, float* accumulators, const Block& block,
                     const float* rows, std::size_t row_elements) {
  if (reduction.command == ReduceCommand::kIdle) {
    return;
  }
  for (std::int64_t p = 0; p < block.partitions; ++p) {
    const float* row = rows + static_cast<std::size_t>(p) * row_elements;
    const float value = reduction.reduces() ? reduce_row(op, row, row_elements) : 0.0F;
    const float initial =
        reduction.initial ? lane_value(*reduction.initial, block.first + p) : 0.0F;
    float& accumulator = accumulators[block.first + p];
    accumulator = accumulate(op, reduction.command, accumulator, initial, value);
  }
}

void read_out(const Reduction& reduction, const float* accumulators, bool negate) {
  if (!reduction.result) {
    return;
  }
  const TileRows out(*reduction.result);
  const Block all{0, reduction.result->partitions()};
  auto* values = scratch<float>(0, out.elements(all));
  for (std::int64_t p = 0; p < all.partitions; ++p) {
    values[p] = negate ? -accumulators[p] : accumulators[p];
  }
  out.write(all, values);
}

void access_reduction(const Reduction& reduction, HiddenState state, AccessList& list) {
  if (reduction.initial) {
    list.read(*reduction.initial);
  }
  if (reduction.result) {
    list.write(*reduction.result);
  }
  if (reduction.uses_accumulator()) {
    list.uses_state(state);
  }
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

void require_reduce_initial(std::string_view instruction, std::string_view role,
                            const Reduction& reduction, const Tensor& data) {
  const bool loads = reduction.command == ReduceCommand::kLoadReduce;
  if (loads != reduction.initial.has_value()) {
    refuse("reduce-init",
           {.rule = fmt::format("`{}` of {} goes with reduce_cmd.load_reduce", role, instruction),
            .here = fmt::format("{} {}, reduce_cmd={}", role,
                                reduction.initial ? "given" : "missing", name(reduction.command))});
  }
  if (loads) {
    require_lane_operand(instruction, role, *reduction.initial, data, true);
  }
}

Cost with_accumulator(const Machine& machine, Cost cost, const Reduction& reduction) {
  if (reduction.result) {
    const Ticks readout =
        machine.ticks(EngineKind::kVector, machine.core.vector.accumulator_cycles);
    cost.interval += readout;
    cost.completion += readout;
  }
  return cost;
}

void require_reduce_result(const Machine& machine, std::string_view instruction,
                           const Reduction& reduction, const Tensor& data) {
  if (!reduction.result) {
    return;
  }
  require_tile(machine, instruction, "reduce_res", *reduction.result);
  require_lane_operand(instruction, "reduce_res", *reduction.result, data, false);
}

void require_accumulation(const Machine& machine, std::string_view instruction,
                          const Reduction& reduction, std::initializer_list<AluOp> operators,
                          const Tensor& data) {
  require_reduce_command(instruction, reduction.command,
                         {ReduceCommand::kIdle, ReduceCommand::kReset, ReduceCommand::kReduce,
                          ReduceCommand::kResetReduce});
  if (reduction.op) {
    require_one_of(instruction, "reduce_op", *reduction.op, operators);
  }
  require_reduce_result(machine, instruction, reduction, data);
}

}  // namespace trena
