#include "trena/isa/vector/bn_stats.h"

#include <fmt/format.h>

#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"

namespace trena {
namespace {

constexpr std::size_t kStatistics = 6;
constexpr std::size_t kTriple = 3;

void require_statistics(std::string_view instruction, std::string_view role, const Tensor& tensor,
                        bool legal, std::string limit) {
  if (!legal) {
    refuse("bn-stats-size",
           {.rule = "bn_stats gives triples (count, mean, variance * count) of even and "
                    "odd elements; bn_aggr turns triples into mean and variance",
            .here = fmt::format("{} `{}` is {}", instruction, role, tensor.describe()),
            .limit = std::move(limit)});
  }
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

}  // namespace

EngineKind BnStats::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

void BnStats::check(const Machine& machine) const {
  engine(machine);
  require_tile(machine, name(), "dst", dst_);
  require_tile(machine, name(), "data", data_);
  require_same_partitions(name(), "dst", dst_, "data", data_);
  require_statistics(name(), "dst", dst_,
                     dst_.free_size() == static_cast<std::int64_t>(kStatistics),
                     "6 elements per partition");
  // nl.tile_size.bn_stats_fmax, as many as one PSUM bank holds (hw.md §1.4).
  const std::int64_t most = machine.core.psum.bank_bytes / static_cast<std::int64_t>(sizeof(float));
  require_statistics(name(), "data", data_, data_.free_size() <= most,
                     fmt::format("at most {} elements per partition", most));
}

void BnStats::access(AccessList& list) const {
  list.read(data_);
  list.write(dst_);
}

void BnStats::execute(CoreState&) const {
  const TileRows out(dst_), in(data_);
  const std::size_t row = in.row_elements();
  for_each_block(dst_.partitions(), row, 3.0, [&](const Block& block) {
    const float* x = in.read(block, 0);
    auto* z = scratch<float>(2, out.elements(block));
    for (std::size_t p = 0; p < static_cast<std::size_t>(block.partitions); ++p) {
      statistics_of(x + p * row, 0, row, z + p * kStatistics);
      statistics_of(x + p * row, 1, row, z + p * kStatistics + kTriple);
    }
    out.write(block, z);
  });
}

Cost BnStats::cost(const Machine& machine) const {
  return stream_cost(machine, EngineKind::kVector, machine.core.vector.bn_stats, data_.free_size(),
                     {&data_});
}

EngineKind BnAggregate::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

void BnAggregate::check(const Machine& machine) const {
  engine(machine);
  require_tile(machine, name(), "dst", dst_);
  require_tile(machine, name(), "data", data_);
  require_same_partitions(name(), "dst", dst_, "data", data_);
  require_statistics(name(), "dst", dst_, dst_.free_size() == 2, "2 elements per partition");
  require_statistics(name(), "data", data_,
                     data_.free_size() % static_cast<std::int64_t>(kTriple) == 0,
                     "a multiple of 3 elements per partition");
}

void BnAggregate::access(AccessList& list) const {
  list.read(data_);
  list.write(dst_);
}

void BnAggregate::execute(CoreState&) const {
  const TileRows out(dst_), in(data_);
  const std::size_t row = in.row_elements();
  for_each_block(dst_.partitions(), row, 3.0, [&](const Block& block) {
    const float* x = in.read(block, 0);
    auto* z = scratch<float>(2, out.elements(block));
    for (std::size_t p = 0; p < static_cast<std::size_t>(block.partitions); ++p) {
      aggregate(x + p * row, row, z + p * 2);
    }
    out.write(block, z);
  });
}

Cost BnAggregate::cost(const Machine& machine) const {
  return stream_cost(machine, EngineKind::kVector, machine.core.vector.bn_aggregate,
                     data_.free_size(), {&data_});
}

}  // namespace trena
