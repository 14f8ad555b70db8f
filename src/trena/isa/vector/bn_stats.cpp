#include "trena/isa/vector/bn_stats.h"

#include <fmt/format.h>

#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"

namespace trena {
namespace {

constexpr std::size_t kTriple = 3;  // of the even elements, then of the odd ones

// `legal`: the number of elements of `tensor` is.
void require_size(std::string_view instruction, std::string_view role, const Tensor& tensor,
                  bool legal, std::string limit) {
  if (!legal) {
    refuse("bn-stats-size",
           {.rule = "bn_stats gives triples (count, mean, variance * count) of even and "
                    "odd elements; bn_aggr turns triples into mean and variance",
            .here = fmt::format("{} `{}` is {}", instruction, role, tensor.describe()),
            .limit = std::move(limit)});
  }
}

// `count` elements per partition of `dst` from a row of `data`.
void require_statistics(const Machine& machine, std::string_view instruction, const Tensor& dst,
                        std::size_t count, const Tensor& data) {
  require_tile(machine, instruction, "dst", dst);
  require_tile(machine, instruction, "data", data);
  require_same_partitions(instruction, "dst", dst, "data", data);
  require_size(instruction, "dst", dst, dst.free_size() == static_cast<std::int64_t>(count),
               fmt::format("{} elements per partition", count));
}

// Every second element of a row, from `first`.
void statistics_of(const float* row, std::size_t first, std::size_t count, float* out) {
  const std::size_t half = count > first ? (count - first + 1) / 2 : 0;
  auto* values = scratch<float>(3, half + 1);
  for (std::size_t i = 0; i < half; ++i) {
    values[i] = row[first + 2 * i];
  }
  const float size = static_cast<float>(half);
  const float mean = half == 0 ? 0.0F : reduce_row(AluOp::kAdd, values, half) / size;
  for (std::size_t i = 0; i < half; ++i) {
    const float difference = values[i] - mean;
    values[i] = difference * difference;
  }
  out[0] = size;
  out[1] = mean;
  out[2] = half == 0 ? 0.0F : reduce_row(AluOp::kAdd, values, half);
}

void aggregate(const float* triples, std::size_t count, float* out) {
  float total = 0.0F;
  float sum = 0.0F;
  for (std::size_t i = 0; i < count; i += kTriple) {
    total += triples[i];
    sum += triples[i] * triples[i + 1];
  }
  const float mean = sum / total;
  float squares = 0.0F;
  for (std::size_t i = 0; i < count; i += kTriple) {
    const float difference = triples[i + 1] - mean;
    squares += triples[i + 2] + triples[i] * (difference * difference);
  }
  out[0] = mean;
  out[1] = squares / total;
}

class BnStatsInstruction final : public InstructionOf<BnStats> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "bn_stats"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_statistics(machine, name(), args_.dst, 2 * kTriple, args_.data);
    // nl.tile_size.bn_stats_fmax, as many as one PSUM bank holds (hw.md §1.4).
    const std::int64_t most =
        machine.core.psum.bank_bytes / static_cast<std::int64_t>(sizeof(float));
    require_size(name(), "data", args_.data, args_.data.free_size() <= most,
                 fmt::format("at most {} elements per partition", most));
  }

  void access(AccessList& list) const override {
    list.read(args_.data);
    list.write(args_.dst);
  }

  void execute(CoreState&) const override {
    const TileRows out(args_.dst), in(args_.data);
    const std::size_t row = in.row_elements();
    for_each_row(args_.dst.partitions(), out, in, 3.0, [&](const float* x, float* z) {
      statistics_of(x, 0, row, z);
      statistics_of(x, 1, row, z + kTriple);
    });
  }

  Cost cost(const Machine& machine) const override {
    return stream_cost(machine, EngineKind::kVector, machine.core.vector.bn_stats,
                       args_.data.free_size(), {&args_.data});
  }
};

class BnAggregateInstruction final : public InstructionOf<BnAggregate> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "bn_aggr"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_statistics(machine, name(), args_.dst, 2, args_.data);
    require_size(name(), "data", args_.data,
                 args_.data.free_size() % static_cast<std::int64_t>(kTriple) == 0,
                 "a multiple of 3 elements per partition");
  }

  void access(AccessList& list) const override {
    list.read(args_.data);
    list.write(args_.dst);
  }

  void execute(CoreState&) const override {
    const TileRows out(args_.dst), in(args_.data);
    const std::size_t row = in.row_elements();
    for_each_row(args_.dst.partitions(), out, in, 3.0,
                 [&](const float* x, float* z) { aggregate(x, row, z); });
  }

  Cost cost(const Machine& machine) const override {
    return stream_cost(machine, EngineKind::kVector, machine.core.vector.bn_aggregate,
                       args_.data.free_size(), {&args_.data});
  }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(BnStats args) {
  return std::make_unique<BnStatsInstruction>(std::move(args));
}

std::unique_ptr<Instruction> make_instruction(BnAggregate args) {
  return std::make_unique<BnAggregateInstruction>(std::move(args));
}

}  // namespace trena
