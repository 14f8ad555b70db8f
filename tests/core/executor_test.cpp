// The value pass: whatever runs behind the caller, nobody can tell.
#include "trena/core/executor.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "../isa/dma_support.h"
#include "trena/isa/dma/dma_copy.h"
#include "trena/isa/vector/memset.h"
#include "trena/number/threads.h"

namespace trena {
namespace {

class Threads {
 public:
  explicit Threads(int count) : before_(thread_count()) { set_thread_count(count); }
  ~Threads() { set_thread_count(before_); }

 private:
  int before_;
};

// x += y, some time after it was begun: who does not wait for it reads an old value.
class LateAdd final : public Instruction {
 public:
  LateAdd(Tensor x, Tensor y, int delay_us)
      : x_(std::move(x)), y_(std::move(y)), delay_us_(delay_us) {}
  std::string_view name() const override { return "late_add"; }
  EngineKind engine(const Machine&) const override { return EngineKind::kVector; }
  void check(const Machine&) const override {}
  void access(AccessList& list) const override {
    list.read(y_);
    list.add(x_, AccessKind::kUpdate);
  }
  void execute(CoreState&) const override {
    float y = 0;
    std::memcpy(&y, y_.data(), sizeof(y));
    std::this_thread::sleep_for(std::chrono::microseconds(delay_us_));
    float x = 0;
    std::memcpy(&x, x_.data(), sizeof(x));
    x += y;
    std::memcpy(x_.data(), &x, sizeof(x));
  }
  Cost cost(const Machine&) const override { return {}; }

 private:
  Tensor x_, y_;
  int delay_us_;
};

// More instructions than may be under way at once, mirrored in plain numbers.
void add_at_random(int threads, unsigned seed) {
  constexpr std::size_t kTiles = 12;
  constexpr int kSteps = 1200;
  const Threads scope(threads);
  Bench bench("trn2");
  std::mt19937 random(seed);
  std::vector<Tensor> tiles;
  std::vector<float> mirror;
  for (std::size_t i = 0; i < kTiles; ++i) {
    tiles.push_back(bench.make(Space::kSbuf, DType::kFloat32, {1, 1}));
    mirror.push_back(static_cast<float>(i + 1));
    bench.program.append(0, make_instruction(Memset{tiles[i], mirror[i], std::nullopt}));
  }
  for (int step = 0; step < kSteps; ++step) {
    const std::size_t x = random() % kTiles;
    const std::size_t y = random() % kTiles;
    if (random() % 4 == 0) {
      mirror[x] = static_cast<float>(step % 100);
      bench.program.append(0, make_instruction(Memset{tiles[x], mirror[x], std::nullopt}));
    } else if (x != y) {
      mirror[x] += mirror[y];
      bench.program.append(
          0, std::make_unique<LateAdd>(tiles[x], tiles[y], static_cast<int>(random() % 40)));
    }
  }
  for (std::size_t i = 0; i < kTiles; ++i) {
    EXPECT_EQ(values_of<float>(tiles[i]), std::vector<float>{mirror[i]}) << threads << " threads";
  }
}

TEST(Executor, ComputesAsInProgramOrder) {
  for (const int threads : {1, 2, 8}) {
    add_at_random(threads, 7);
  }
}

// Refuses what it finds, as an index outside its tensor would be.
class Refusing final : public Instruction {
 public:
  Refusing(Tensor tensor, bool judges) : tensor_(std::move(tensor)), judges_(judges) {}
  std::string_view name() const override { return "refusing"; }
  EngineKind engine(const Machine&) const override { return EngineKind::kVector; }
  void check(const Machine&) const override {}
  void access(AccessList& list) const override { list.write(tensor_); }
  void execute(CoreState&) const override {
    throw Error(ErrorKind::kBounds, "out-of-bounds", {.rule = "none"});
  }
  Cost cost(const Machine&) const override { return {}; }
  bool judges_values() const override { return judges_; }

 private:
  Tensor tensor_;
  bool judges_;
};

TEST(Executor, WhatJudgesItsValuesFailsAtItsLine) {
  const Threads scope(2);
  Bench bench("trn2");
  const Tensor tile = bench.make(Space::kSbuf, DType::kFloat32, {1, 8});
  bench.program.set_position({bench.program.intern_file("kernel.py"), 7});
  EXPECT_THROW(bench.program.append(0, std::make_unique<Refusing>(tile, true)), Error);
  EXPECT_EQ(bench.program.instruction_count(), 0U);
}

TEST(Executor, ErrorsBehindTheCallerCarryTheirLineAndTheFirstWins) {
  const Threads scope(2);
  Bench bench("trn2");
  for (const int line : {7, 8}) {
    const Tensor tile = bench.make(Space::kSbuf, DType::kFloat32, {1, 8});
    bench.program.set_position({bench.program.intern_file("kernel.py"), line});
    bench.program.append(0, std::make_unique<Refusing>(tile, false));
  }
  try {
    bench.program.settle();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.id(), "out-of-bounds");
    EXPECT_EQ(error.where().line, 7);
  }
  bench.program.settle();  // once
}

// Whoever is being appended when it becomes known has nothing to do with it.
TEST(Executor, GoingOnNotesWhatFailedBehindTheCallerAndKeepsTheInnocent) {
  const Threads scope(2);
  Program program(test_machine("trn2"), 1, {.go_on = true});
  const auto tile = [&] {
    return program.make_tensor(0, {.space = Space::kSbuf,
                                   .dtype = DType::kFloat32,
                                   .shape = std::array<std::int64_t, 2>{1, 8},
                                   .name = "t",
                                   .address = {}});
  };
  const auto append = [&](int line, std::unique_ptr<Instruction> instruction) {
    program.set_position({program.intern_file("kernel.py"), line});
    program.append(0, std::move(instruction));
  };
  append(7, std::make_unique<Refusing>(tile(), false));
  append(8, std::make_unique<Refusing>(tile(), false));
  append(9, std::make_unique<Refusing>(tile(), true));  // settles first
  EXPECT_TRUE(program.left_out(0));
  append(10, make_instruction(Memset{tile(), 1.0, std::nullopt}));
  EXPECT_FALSE(program.left_out(0));
  program.settle();
  std::vector<int> lines;
  for (const Finding& finding : program.findings()) {
    lines.push_back(finding.where.line);
  }
  EXPECT_EQ(lines, (std::vector{7, 8, 9}));
  std::vector<int> kept;
  for (const auto& instruction : program.instructions(0)) {
    kept.push_back(instruction->position.line);
  }
  EXPECT_EQ(kept, (std::vector{7, 8, 10}));
}

TEST(Executor, ArgumentsThatAreTheSameBytesStayInOrder) {
  const Threads scope(4);
  auto bytes = std::make_shared<std::vector<float>>(1, 1.0F);
  Bench bench("trn2");
  const auto argument = [&] {
    return bench.program.make_external(DType::kFloat32, std::array<std::int64_t, 2>{1, 1}, "x",
                                       reinterpret_cast<std::byte*>(bytes->data()), bytes);
  };
  const std::array<Tensor, 2> twice{argument(), argument()};
  const Tensor sum = bench.make(Space::kSbuf, DType::kFloat32, {1, 1});
  bench.program.append(0, make_instruction(Memset{sum, 0.0, std::nullopt}));
  const Tensor one = bench.make(Space::kSbuf, DType::kFloat32, {1, 1});
  bench.program.append(0, make_instruction(Memset{one, 1.0, std::nullopt}));
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    bench.program.append(0, std::make_unique<LateAdd>(twice[0], one, 300));  // 2, 3, 4 …
    const Tensor seen = bench.make(Space::kSbuf, DType::kFloat32, {1, 1});
    bench.program.append(0, make_instruction(DmaCopy{seen, twice[1], DmaRequest{}}));
    bench.program.append(0, std::make_unique<LateAdd>(sum, seen, 0));
  }
  constexpr float kSum = kRounds * (kRounds + 3) / 2.0F;
  EXPECT_EQ(values_of<float>(sum), std::vector<float>{kSum});
}

}  // namespace
}  // namespace trena
