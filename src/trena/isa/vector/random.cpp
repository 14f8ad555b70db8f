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

// Bits as they are, to a tile or from it.
Cost bits_cost(const Machine& machine, EngineKind engine, const Tensor& tile) {
  const StreamLaw& law =
      engine == EngineKind::kGpsimd ? machine.core.gpsimd.random : machine.core.vector.random;
  return stream_cost(machine, engine, law, tile.free_size(), {&tile});
}

class RngInstruction final : public InstructionOf<Rng> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "rng"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), args_.engine);
  }

  void check(const Machine& machine) const override {
    const EngineKind engine = this->engine(machine);
    require_tile(machine, name(), "dst", args_.dst);
    require_engine_reaches(machine, name(), engine, {&args_.dst});
    require_dtype(name(), "dst", args_.dst,
                  {DType::kInt8, DType::kInt16, DType::kInt32, DType::kUint8, DType::kUint16,
                   DType::kUint32});
  }

  void access(AccessList& list) const override {
    list.write(args_.dst);
    list.uses_state(HiddenState::kRandom);
  }

  void execute(CoreState& core) const override {
    const bool gpsimd = engine(core.machine()) == EngineKind::kGpsimd;
    const TileRows out(args_.dst);
    const std::size_t row = out.row_elements();
    for_each_block(args_.dst.partitions(), row, 2.0, [&](const Block& block) {
      auto* bits = scratch<std::uint32_t>(0, out.elements(block));
      for_each_lane(args_.dst, block, row, [&](std::size_t lane, std::size_t first) {
        for (std::size_t i = 0; i < row; ++i) {
          bits[first + i] =
              gpsimd ? core.gpsimd_random[lane].next() : core.vector_random[lane].next(i);
        }
      });
      out.write_bits(block, bits);
    });
  }

  Cost cost(const Machine& machine) const override {
    return bits_cost(machine, engine(machine), args_.dst);
  }
};

class Rand2Instruction final : public InstructionOf<Rand2> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "rand2"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_tile(machine, name(), "dst", args_.dst);
    require_dtype(name(), "dst", args_.dst,
                  {DType::kFloat8E4m3, DType::kFloat8E5m2, DType::kFloat16, DType::kBfloat16,
                   DType::kFloat32, DType::kTfloat32, DType::kInt8, DType::kInt16, DType::kInt32,
                   DType::kUint8, DType::kUint16, DType::kUint32});
    require_float32_lane(machine, name(), "min", args_.low, args_.dst);
    require_float32_lane(machine, name(), "max", args_.high, args_.dst);
    const double* low = std::get_if<double>(&args_.low);
    const double* high = std::get_if<double>(&args_.high);
    if (low != nullptr && high != nullptr && !(*low < *high)) {
      refuse("random-range", {.rule = "rand2 fills a range from `min` up to `max`",
                              .here = fmt::format("min={}, max={}", *low, *high),
                              .limit = "min < max"});
    }
  }

  void access(AccessList& list) const override {
    list.read(args_.low);
    list.read(args_.high);
    list.write(args_.dst);
    list.uses_state(HiddenState::kRandom);
  }

  void execute(CoreState& core) const override {
    const TileRows out(args_.dst);
    const std::size_t row = out.row_elements();
    for_each_block(args_.dst.partitions(), row, 3.0, [&](const Block& block) {
      auto* z = scratch<float>(0, out.elements(block));
      for_each_lane(args_.dst, block, row, [&](std::size_t lane, std::size_t first) {
        const std::int64_t p = block.first + static_cast<std::int64_t>(first / row);
        const float low = lane_value(args_.low, p);
        const float span = lane_value(args_.high, p) - low;
        for (std::size_t i = 0; i < row; ++i) {
          z[first + i] = low + span * unit_interval(core.vector_random[lane].next(i));
        }
      });
      out.write(block, z);
    });
  }

  Cost cost(const Machine& machine) const override {
    return stream_cost(machine, EngineKind::kVector, machine.core.vector.random_uniform,
                       args_.dst.free_size(), {&args_.dst});
  }
};

class DropoutInstruction final : public InstructionOf<Dropout> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "dropout"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_tile(machine, name(), "dst", args_.dst);
    require_tile(machine, name(), "data", args_.data);
    require_same_dtype(name(), "dst", args_.dst, "data", args_.data);
    require_same_partitions(name(), "dst", args_.dst, "data", args_.data);
    require_same_elements(name(), "dst", args_.dst, "data", args_.data);
    if (const auto* tensor = std::get_if<Tensor>(&args_.probability)) {
      require_tile(machine, name(), "prob", *tensor);
      if (!info(tensor->dtype()).is_float) {
        refuse("dtype-refused", {.rule = "a probability is a float",
                                 .here = fmt::format("`prob` is {}", tensor->describe()),
                                 .limit = "float32 for integer data, any float type for floats"});
      }
    }
    require_lane_operand(name(), "prob", args_.probability, args_.data,
                         info(args_.data.dtype()).is_integer);
  }

  void access(AccessList& list) const override {
    list.read(args_.data);
    list.read(args_.probability);
    list.write(args_.dst);
    list.uses_state(HiddenState::kRandom);
  }

  void execute(CoreState& core) const override {
    const TileRows out(args_.dst), in(args_.data);
    const std::size_t row = in.row_elements();
    for_each_block(args_.dst.partitions(), row, 3.0, [&](const Block& block) {
      const std::uint32_t* x = in.read_bits(block, 0);
      auto* z = scratch<std::uint32_t>(2, out.elements(block));
      for_each_lane(args_.data, block, row, [&](std::size_t lane, std::size_t first) {
        const float drop =
            lane_value(args_.probability, block.first + static_cast<std::int64_t>(first / row));
        for (std::size_t i = 0; i < row; ++i) {
          const bool keep = unit_interval(core.vector_random[lane].next(i)) >= drop;
          z[first + i] = keep ? x[first + i] : 0u;
        }
      });
      out.write_bits(block, z);
    });
  }

  Cost cost(const Machine& machine) const override {
    const VectorEngine& vector = machine.core.vector;
    const double operand =
        std::holds_alternative<Tensor>(args_.probability) ? vector.operand_cycles : 0.0;
    return stream_cost(machine, EngineKind::kVector, vector.dropout, args_.data.free_size(),
                       {&args_.dst, &args_.data}, operand);
  }
};

class SetRngSeedInstruction final : public InstructionOf<SetRngSeed> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "set_rng_seed"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_tile(machine, name(), "src_seeds", args_.seed);
    require_dtype(name(), "src_seeds", args_.seed,
                  {DType::kUint32, DType::kInt32, DType::kFloat32});
    if (args_.seed.element_count() != 1) {
      refuse("random-state", {.rule = "set_rng_seed takes one 32-bit value for all lanes",
                              .here = fmt::format("`src_seeds` is {}", args_.seed.describe()),
                              .limit = "shape [1, 1]"});
    }
  }

  void access(AccessList& list) const override {
    list.read(args_.seed);
    list.uses_state(HiddenState::kRandom);
  }

  void execute(CoreState& core) const override {
    std::uint32_t seed;
    read_row_bits(args_.seed, 0, reinterpret_cast<std::byte*>(&seed));
    core.seed_vector_random(seed);
  }

  Cost cost(const Machine& machine) const override {
    return stream_cost(machine, EngineKind::kVector, machine.core.vector.random, 1, {});
  }
};

class RandState : public Instruction {
 public:
  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), request_);
  }

  void check(const Machine& machine) const override {
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

  Cost cost(const Machine& machine) const override {
    return bits_cost(machine, engine(machine), state_);
  }

 protected:
  RandState(std::string_view role, Tensor state, EngineRequest request)
      : role_(role), state_(std::move(state)), request_(request) {}

  // The generator of the lane that partition p of the tensor covers.
  std::byte* lane(CoreState& core, std::int64_t p) const {
    return lane_state(core, engine(core.machine()),
                      static_cast<std::size_t>(state_.start_partition() + p));
  }

  const std::string_view role_;
  const Tensor state_;
  const EngineRequest request_;
};

class RandSetStateInstruction final : public RandState {
 public:
  explicit RandSetStateInstruction(RandSetState args)
      : RandState("src_seeds", std::move(args.state), args.engine) {}

  std::string_view name() const override { return "rand_set_state"; }

  void access(AccessList& list) const override {
    list.read(state_);
    list.uses_state(HiddenState::kRandom);
  }

  void execute(CoreState& core) const override {
    for (std::int64_t p = 0; p < state_.partitions(); ++p) {
      read_row_bits(state_, p, lane(core, p));
    }
  }
};

class RandGetStateInstruction final : public RandState {
 public:
  explicit RandGetStateInstruction(RandGetState args)
      : RandState("dst", std::move(args.state), args.engine) {}

  std::string_view name() const override { return "rand_get_state"; }

  void access(AccessList& list) const override {
    list.write(state_);
    list.uses_state(HiddenState::kRandom);
  }

  void execute(CoreState& core) const override {
    for (std::int64_t p = 0; p < state_.partitions(); ++p) {
      write_row_bits(state_, p, lane(core, p));
    }
  }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(Rng args) {
  return std::make_unique<RngInstruction>(std::move(args));
}

std::unique_ptr<Instruction> make_instruction(Rand2 args) {
  return std::make_unique<Rand2Instruction>(std::move(args));
}

std::unique_ptr<Instruction> make_instruction(Dropout args) {
  return std::make_unique<DropoutInstruction>(std::move(args));
}

std::unique_ptr<Instruction> make_instruction(SetRngSeed args) {
  return std::make_unique<SetRngSeedInstruction>(std::move(args));
}

std::unique_ptr<Instruction> make_instruction(RandSetState args) {
  return std::make_unique<RandSetStateInstruction>(std::move(args));
}

std::unique_ptr<Instruction> make_instruction(RandGetState args) {
  return std::make_unique<RandGetStateInstruction>(std::move(args));
}

}  // namespace trena
