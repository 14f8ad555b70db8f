#include "trena/isa/vector/random.h"

#include <fmt/format.h>

#include <cstring>

#include "trena/isa/core_state.h"
#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"

namespace trena {
namespace {

// Calls fn(lane, first element of its row, elements) for the rows of a tile.
template <typename Fn>
void for_each_lane(const Tensor& tensor, const Block& block, std::size_t row, Fn&& fn) {
  const auto start = static_cast<std::size_t>(tensor.start_partition());
  for (std::int64_t p = 0; p < block.partitions; ++p) {
    fn(start + static_cast<std::size_t>(block.first + p), static_cast<std::size_t>(p) * row);
  }
}

std::size_t state_words(EngineKind engine) {
  return engine == EngineKind::kGpsimd ? Xorwow::kWords : Xorwow::kWords * VectorRandom::kStates;
}

// The generators of a lane as one list of words.
std::byte* lane_state(CoreState& core, EngineKind engine, std::size_t lane) {
  static_assert(sizeof(VectorRandom) == 24 * sizeof(std::uint32_t));
  return engine == EngineKind::kGpsimd
             ? reinterpret_cast<std::byte*>(core.gpsimd_random[lane].words.data())
             : reinterpret_cast<std::byte*>(&core.vector_random[lane]);
}

void require_float32_lane(const Machine& machine, std::string_view instruction,
                          std::string_view role, const Operand& operand, const Tensor& data) {
  if (const auto* tensor = std::get_if<Tensor>(&operand)) {
    require_tile(machine, instruction, role, *tensor);
  }
  require_lane_operand(instruction, role, operand, data, true);
}

}  // namespace

EngineKind Rng::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), request_);
}

void Rng::check(const Machine& machine) const {
  const EngineKind engine = this->engine(machine);
  require_tile(machine, name(), "dst", dst_);
  require_engine_reaches(machine, name(), engine, {&dst_});
  require_dtype(
      name(), "dst", dst_,
      {DType::kInt8, DType::kInt16, DType::kInt32, DType::kUint8, DType::kUint16, DType::kUint32});
}

void Rng::access(AccessList& list) const {
  list.write(dst_);
  list.uses_state(HiddenState::kRandom);
}

void Rng::execute(CoreState& core) const {
  const bool gpsimd = engine(core.machine()) == EngineKind::kGpsimd;
  const TileRows out(dst_);
  const std::size_t row = out.row_elements();
  for_each_block(dst_.partitions(), row, 2.0, [&](const Block& block) {
    auto* bits = scratch<std::uint32_t>(0, out.elements(block));
    for_each_lane(dst_, block, row, [&](std::size_t lane, std::size_t first) {
      for (std::size_t i = 0; i < row; ++i) {
        bits[first + i] =
            gpsimd ? core.gpsimd_random[lane].next() : core.vector_random[lane].next(i);
      }
    });
    out.write_bits(block, bits);
  });
}

Cost Rng::cost(const Machine& machine) const {
  const EngineKind engine = this->engine(machine);
  const StreamLaw& law =
      engine == EngineKind::kGpsimd ? machine.core.gpsimd.random : machine.core.vector.random;
  return stream_cost(machine, engine, law, dst_.free_size(), {&dst_});
}

EngineKind Rand2::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

void Rand2::check(const Machine& machine) const {
  engine(machine);
  require_tile(machine, name(), "dst", dst_);
  require_dtype(name(), "dst", dst_,
                {DType::kFloat8E4m3, DType::kFloat8E5m2, DType::kFloat16, DType::kBfloat16,
                 DType::kFloat32, DType::kTfloat32, DType::kInt8, DType::kInt16, DType::kInt32,
                 DType::kUint8, DType::kUint16, DType::kUint32});
  require_float32_lane(machine, name(), "min", low_, dst_);
  require_float32_lane(machine, name(), "max", high_, dst_);
  const double* low = std::get_if<double>(&low_);
  const double* high = std::get_if<double>(&high_);
  if (low != nullptr && high != nullptr && !(*low < *high)) {
    refuse("random-range", {.rule = "rand2 fills a range from `min` up to `max`",
                            .here = fmt::format("min={}, max={}", *low, *high),
                            .limit = "min < max"});
  }
}

void Rand2::access(AccessList& list) const {
  list.read(low_);
  list.read(high_);
  list.write(dst_);
  list.uses_state(HiddenState::kRandom);
}

void Rand2::execute(CoreState& core) const {
  const TileRows out(dst_);
  const std::size_t row = out.row_elements();
  for_each_block(dst_.partitions(), row, 3.0, [&](const Block& block) {
    auto* z = scratch<float>(0, out.elements(block));
    for_each_lane(dst_, block, row, [&](std::size_t lane, std::size_t first) {
      const std::int64_t p = block.first + static_cast<std::int64_t>(first / row);
      const float low = lane_value(low_, p);
      const float span = lane_value(high_, p) - low;
      for (std::size_t i = 0; i < row; ++i) {
        z[first + i] = low + span * unit_interval(core.vector_random[lane].next(i));
      }
    });
    out.write(block, z);
  });
}

Cost Rand2::cost(const Machine& machine) const {
  return stream_cost(machine, EngineKind::kVector, machine.core.vector.random_uniform,
                     dst_.free_size(), {&dst_});
}

EngineKind Dropout::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

void Dropout::check(const Machine& machine) const {
  engine(machine);
  require_tile(machine, name(), "dst", dst_);
  require_tile(machine, name(), "data", data_);
  require_same_dtype(name(), "dst", dst_, "data", data_);
  require_same_partitions(name(), "dst", dst_, "data", data_);
  require_same_elements(name(), "dst", dst_, "data", data_);
  if (const auto* tensor = std::get_if<Tensor>(&probability_)) {
    require_tile(machine, name(), "prob", *tensor);
    if (!info(tensor->dtype()).is_float) {
      refuse("dtype-refused", {.rule = "a probability is a float",
                               .here = fmt::format("`prob` is {}", tensor->describe()),
                               .limit = "float32 for integer data, any float type for floats"});
    }
  }
  require_lane_operand(name(), "prob", probability_, data_, info(data_.dtype()).is_integer);
}

void Dropout::access(AccessList& list) const {
  list.read(data_);
  list.read(probability_);
  list.write(dst_);
  list.uses_state(HiddenState::kRandom);
}

void Dropout::execute(CoreState& core) const {
  const TileRows out(dst_), in(data_);
  const std::size_t row = in.row_elements();
  for_each_block(dst_.partitions(), row, 3.0, [&](const Block& block) {
    const std::uint32_t* x = in.read_bits(block, 0);
    auto* z = scratch<std::uint32_t>(2, out.elements(block));
    for_each_lane(data_, block, row, [&](std::size_t lane, std::size_t first) {
      const float drop =
          lane_value(probability_, block.first + static_cast<std::int64_t>(first / row));
      for (std::size_t i = 0; i < row; ++i) {
        const bool keep = unit_interval(core.vector_random[lane].next(i)) >= drop;
        z[first + i] = keep ? x[first + i] : 0u;
      }
    });
    out.write_bits(block, z);
  });
}

Cost Dropout::cost(const Machine& machine) const {
  const VectorEngine& vector = machine.core.vector;
  const double operand = std::holds_alternative<Tensor>(probability_) ? vector.operand_cycles : 0.0;
  return stream_cost(machine, EngineKind::kVector, vector.dropout, data_.free_size(),
                     {&dst_, &data_}, operand);
}

EngineKind SetRngSeed::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

void SetRngSeed::check(const Machine& machine) const {
  engine(machine);
  require_tile(machine, name(), "src_seeds", seed_);
  require_dtype(name(), "src_seeds", seed_, {DType::kUint32, DType::kInt32, DType::kFloat32});
  if (seed_.element_count() != 1) {
    refuse("random-state", {.rule = "set_rng_seed takes one 32-bit value for all lanes",
                            .here = fmt::format("`src_seeds` is {}", seed_.describe()),
                            .limit = "shape [1, 1]"});
  }
}

void SetRngSeed::access(AccessList& list) const {
  list.read(seed_);
  list.uses_state(HiddenState::kRandom);
}

void SetRngSeed::execute(CoreState& core) const {
  std::uint32_t seed;
  read_row_bits(seed_, 0, reinterpret_cast<std::byte*>(&seed));
  core.seed_vector_random(seed);
}

Cost SetRngSeed::cost(const Machine& machine) const {
  return stream_cost(machine, EngineKind::kVector, machine.core.vector.random, 1, {});
}

EngineKind RandState::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), request_);
}

void RandState::check(const Machine& machine) const {
  const EngineKind engine = this->engine(machine);
  require_tile(machine, name(), role_, state_);
  require_engine_reaches(machine, name(), engine, {&state_});
  require_dtype(name(), role_, state_, {DType::kUint32});
  const auto words = static_cast<std::int64_t>(state_words(engine));
  if (state_.free_size() != words) {
    refuse("random-state", {.rule = fmt::format("the state of one lane is {} words on {}", words,
                                                trena::name(engine)),
                            .here = fmt::format("`{}` is {}", role_, state_.describe()),
                            .limit = fmt::format("shape [P, {}]", words)});
  }
}

Cost RandState::cost(const Machine& machine) const {
  const EngineKind engine = this->engine(machine);
  const StreamLaw& law =
      engine == EngineKind::kGpsimd ? machine.core.gpsimd.random : machine.core.vector.random;
  return stream_cost(machine, engine, law, state_.free_size(), {&state_});
}

void RandSetState::access(AccessList& list) const {
  list.read(state_);
  list.uses_state(HiddenState::kRandom);
}

void RandSetState::execute(CoreState& core) const {
  const EngineKind engine = this->engine(core.machine());
  const auto start = static_cast<std::size_t>(state_.start_partition());
  for (std::int64_t p = 0; p < state_.partitions(); ++p) {
    read_row_bits(state_, p, lane_state(core, engine, start + static_cast<std::size_t>(p)));
  }
}

void RandGetState::access(AccessList& list) const {
  list.write(state_);
  list.uses_state(HiddenState::kRandom);
}

void RandGetState::execute(CoreState& core) const {
  const EngineKind engine = this->engine(core.machine());
  const auto start = static_cast<std::size_t>(state_.start_partition());
  for (std::int64_t p = 0; p < state_.partitions(); ++p) {
    write_row_bits(state_, p, lane_state(core, engine, start + static_cast<std::size_t>(p)));
  }
}

}  // namespace trena
