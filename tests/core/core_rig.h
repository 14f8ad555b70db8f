// What the tests of time and place share: a Program without values, instructions with a
// hand-written cost, and the question of the timing probes: not ready at tick t - 1, ready at t?
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bitset>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "trena/core/program.h"
#include "trena/core/run.h"
#include "trena/core/stream.h"
#include "trena/machine/load.h"

namespace trena::core_test {

inline const Machine& machine_named(std::string_view name) {
  static std::map<std::string, Machine, std::less<>> machines;
  const auto found = machines.find(name);
  if (found != machines.end()) {
    return found->second;
  }
  const std::string hardware = TRENA_SOURCE_DIR "/hardware";
  return machines.emplace(name, load_machine(find_machine(name, hardware))).first->second;
}

// The tests' own arithmetic: what `count` cycles last at a documented clock.
inline Ticks cycles(double count, double clock_ghz) { return ticks_from_ns(count / clock_ghz); }
inline Ticks ns(double value) { return ticks_from_ns(value); }

struct Touch {
  AccessKind kind;
  Tensor tensor;
};
inline Touch reads(Tensor tensor) { return {AccessKind::kRead, std::move(tensor)}; }
inline Touch writes(Tensor tensor) { return {AccessKind::kWrite, std::move(tensor)}; }
inline Touch accumulates(Tensor tensor) { return {AccessKind::kAccumulate, std::move(tensor)}; }

// An instruction that costs what its test says.
class Probe final : public Instruction {
 public:
  Probe(EngineKind engine, Cost cost, std::vector<Touch> touches = {})
      : engine_(engine), cost_(cost), touches_(std::move(touches)) {}

  std::string_view name() const override { return "probe"; }
  EngineKind engine(const Machine&) const override { return engine_; }
  void check(const Machine&) const override {}
  void access(AccessList& list) const override {
    for (const Touch& touch : touches_) {
      list.add(touch.tensor, touch.kind);
    }
    if (state) {
      list.uses_state(*state);
    }
  }
  void execute(CoreState&) const override {}
  Cost cost(const Machine&) const override { return cost_; }
  bool is_dma() const override { return cost_.dma.descriptors > 0; }
  std::int64_t rendezvous() const override { return meeting; }

  std::int64_t meeting = -1;
  std::optional<HiddenState> state;

 private:
  EngineKind engine_;
  Cost cost_;
  std::vector<Touch> touches_;
};

inline Cost engine_cost(Ticks interval, Ticks completion) {
  Cost cost;
  cost.interval = interval;
  cost.completion = completion;
  return cost;
}

inline Cost product(Ticks load, Ticks multiply, double area = 1.0) {
  Cost cost;
  cost.tensor = {1, load, multiply, area};
  return cost;
}

struct Rows {
  std::int64_t count;
  std::int64_t bytes;
};

// A transfer whose trigger the kernel placed on `engine`; descriptors were written before the run.
inline Cost prepared_dma(Rows rows, int engines, bool to_hbm = false) {
  Cost cost;
  cost.interval = ticks_from_ns(70);
  cost.dma.descriptors = rows.count;
  cost.dma.descriptor_bytes = rows.bytes;
  cost.dma.engines = engines;
  (to_hbm ? cost.dma.hbm_write_bytes : cost.dma.hbm_read_bytes) = rows.count * rows.bytes;
  cost.dma.to_hbm = to_hbm;
  cost.dma.dge = DgeMode::kNone;
  cost.dma.trigger_requested = true;
  return cost;
}

class Rig {
 public:
  explicit Rig(std::string_view machine = "trn2", int cores = 1)
      : Rig(machine_named(machine), cores) {}
  explicit Rig(const Machine& machine, int cores = 1)
      : program_(machine, cores, {.values = false}) {
    program_.intern_file("kernel.py");
  }

  Program& program() { return program_; }

  Tensor make(Space space, DType dtype, const std::vector<std::int64_t>& shape, int core = 0) {
    return program_.make_tensor(core, {.space = space,
                                       .dtype = dtype,
                                       .shape = shape,
                                       .name = fmt::format("t{}", made_++),
                                       .address = {}});
  }
  Tensor sbuf(const std::vector<std::int64_t>& shape, DType dtype = DType::kFloat32, int core = 0) {
    return make(Space::kSbuf, dtype, shape, core);
  }
  Tensor psum(const std::vector<std::int64_t>& shape, DType dtype = DType::kFloat32, int core = 0) {
    return make(Space::kPsum, dtype, shape, core);
  }
  // Where the kernel wants it.
  Tensor sbuf_at(Address address, const std::vector<std::int64_t>& shape) {
    return program_.make_tensor(0, {.space = Space::kSbuf,
                                    .dtype = DType::kUint8,
                                    .shape = shape,
                                    .name = fmt::format("t{}", made_++),
                                    .address = address});
  }
  Tensor hbm(const std::vector<std::int64_t>& shape, DType dtype = DType::kFloat32) {
    return make(Space::kHbm, dtype, shape);
  }

  // Appends to `core` and returns its index there. Each instruction has its own line, from 1.
  std::uint32_t append(int core, std::unique_ptr<Instruction> instruction) {
    const std::size_t index = program_.instructions(core).size();
    program_.set_position({0, static_cast<std::int32_t>(index) + 1});
    program_.append(core, std::move(instruction));
    return static_cast<std::uint32_t>(index);
  }
  template <typename T, typename... Arguments>
  std::uint32_t add(Arguments&&... arguments) {
    if constexpr (std::is_base_of_v<Instruction, T>) {
      return append(0, std::make_unique<T>(std::forward<Arguments>(arguments)...));
    } else {
      return append(0, make_instruction(T{std::forward<Arguments>(arguments)...}));
    }
  }
  std::uint32_t probe(EngineKind engine, const Cost& cost, std::vector<Touch> touches = {}) {
    return add<Probe>(engine, cost, std::move(touches));
  }
  // An instruction that all cores meet at.
  std::uint32_t meet(int core, EngineKind engine, std::int64_t meeting, const Cost& cost,
                     std::vector<Touch> touches = {}) {
    auto instruction = std::make_unique<Probe>(engine, cost, std::move(touches));
    instruction->meeting = meeting;
    return append(core, std::move(instruction));
  }

  Run run(RunOptions options = {}) const { return run_program(program_, options); }

 private:
  Program program_;
  int made_ = 0;
};

// The bytes of its buffer that a view touches, one by one.
inline std::vector<std::int64_t> byte_list(const Tensor& tensor) {
  std::vector<std::int64_t> bytes;
  const auto width = static_cast<std::int64_t>(size_bytes(tensor.dtype()));
  std::vector<std::int64_t> index(static_cast<std::size_t>(tensor.rank()), 0);
  while (true) {
    std::int64_t at = tensor.offset_bytes();
    for (int axis = 0; axis < tensor.rank(); ++axis) {
      at += index[static_cast<std::size_t>(axis)] * tensor.dim(axis).stride_bytes;
    }
    for (std::int64_t byte = 0; byte < width; ++byte) {
      bytes.push_back(at + byte);
    }
    int axis = tensor.rank() - 1;
    for (; axis >= 0 && ++index[static_cast<std::size_t>(axis)] == tensor.size(axis); --axis) {
      index[static_cast<std::size_t>(axis)] = 0;
    }
    if (axis < 0) {
      return bytes;
    }
  }
}

inline std::vector<bool> bytes_of(const Tensor& tensor) {
  std::vector<bool> bytes(static_cast<std::size_t>(tensor.buffer()->size_bytes()), false);
  for (const std::int64_t byte : byte_list(tensor)) {
    bytes[static_cast<std::size_t>(byte)] = true;
  }
  return bytes;
}

inline bool reads_only(AccessKind kind) {
  return kind == AccessKind::kRead || kind == AccessKind::kReadCarry;
}

class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}
  // In [first, last].
  std::int64_t operator()(std::int64_t first, std::int64_t last) {
    return first +
           static_cast<std::int64_t>(engine_() % static_cast<std::uint32_t>(last - first + 1));
  }

 private:
  std::mt19937 engine_;
};

// What the waits of a stream imply: the end of which earlier items an item's start is behind, and
// of which its end is behind because products of one chain keep their order (hw.md §2.2).
template <std::size_t kItems>
struct Closure {
  std::vector<std::bitset<kItems>> ended;
  std::vector<std::bitset<kItems>> chained;

  void add(std::span<const Wait> waits) {
    std::bitset<kItems> ends;
    std::bitset<kItems> chain;
    for (const Wait wait : waits) {
      ends |= ended[wait.item()];
      if (wait.for_start()) {
        chain |= chained[wait.item()];
        chain.set(wait.item());
      } else {
        ends |= chained[wait.item()];
        ends.set(wait.item());
      }
    }
    ended.push_back(ends);
    chained.push_back(chain);
  }
};

// A probe pair. `before` adds what the subject depends on, `subject` adds the subject and returns
// its index.
struct Pair {
  std::string machine = "trn2";
  EngineKind engine = EngineKind::kVector;  // the subject's
  std::function<void(Rig&)> before;
  std::function<std::uint32_t(Rig&)> subject;
};

// Would the subject be taken by its engine at `at`? A filler keeps the engine busy until exactly
// then; of what is ready at that moment the earliest in the program starts, and a competitor behind
// the subject is always ready.
inline bool taken_at(const Pair& pair, Ticks at) {
  Ticks filler_interval = 1;
  for (int round = 0;; ++round) {
    Rig rig(pair.machine);
    pair.before(rig);
    const std::uint32_t filler = rig.probe(pair.engine, engine_cost(filler_interval, 1));
    const std::uint32_t subject = pair.subject(rig);
    const std::uint32_t competitor = rig.probe(pair.engine, engine_cost(ticks_from_ns(1e6), 1));
    const Run run = rig.run();
    const auto start = [&](std::uint32_t id) { return run.events[id].start; };
    if (round == 0) {
      EXPECT_LT(start(filler), at) << "the filler starts too late to keep the engine busy";
      filler_interval = at - start(filler);
      continue;
    }
    EXPECT_EQ(std::min(start(subject), start(competitor)), at);
    return start(subject) == at;
  }
}

#define EXPECT_READY_AT(pair, t)           \
  EXPECT_FALSE(taken_at((pair), (t) - 1)); \
  EXPECT_TRUE(taken_at((pair), (t)))

}  // namespace trena::core_test
