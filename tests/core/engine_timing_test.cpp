// Probes of vector, scalar and GpSimd engines, of the gaps between instructions, and of the launch.
// Expected values are literals with their source, never read back from hardware/*.toml.
#include <algorithm>

#include "core_rig.h"
#include "trena/isa/scalar/activation.h"
#include "trena/isa/sync/registers.h"
#include "trena/isa/tensor/nc_transpose.h"
#include "trena/isa/vector/memset.h"
#include "trena/isa/vector/tensor_copy.h"
#include "trena/isa/vector/tensor_reduce.h"
#include "trena/isa/vector/tensor_scalar.h"
#include "trena/isa/vector/tensor_tensor.h"

namespace trena::core_test {
namespace {

using enum EngineKind;

// AWS architecture guides: engine clocks.
constexpr double kVectorGhz = 0.96;
constexpr double kScalarGhz = 1.2;
constexpr double kGpsimdGhz = 1.2;

// AWS nki_perf_guide.rst figure 16: 30 ns on one engine; published probes of Trn2: 100 ns between
// engines, 893 ns to a DMA trigger (hw.md §2.5).
constexpr Ticks kSameEngineGap = 30'000'000;
constexpr Ticks kOtherEngineGap = 100'000'000;
constexpr Ticks kDmaIssueGap = 893'000'000;

struct StreamRow {
  const char* what;
  EngineKind engine;
  std::function<std::unique_ptr<Instruction>(Rig&)> make;
  double clock_ghz;
  double
      interval_cycles;  // work + 70 (vector, gpsimd) or 111 (scalar), at least 64: hw.md §2.4 "II"
  double completion_cycles;  // hw.md §2.4
  double measured_ns;        // the published fit a + b N; 0: none
};

const std::vector<StreamRow>& stream_rows() {
  const auto copy = [](EngineKind engine, DType dtype, std::int64_t n, Space from) {
    return [=](Rig& rig) {
      return make_instruction(
          TensorCopy{rig.sbuf({128, n}, dtype), rig.make(from, dtype, {128, n}), engine});
    };
  };
  const auto both = [](DType dtype, std::int64_t n) {
    return [=](Rig& rig) {
      return make_instruction(TensorTensor{rig.sbuf({128, n}, dtype), rig.sbuf({128, n}, dtype),
                                           rig.sbuf({128, n}, dtype), AluOp::kAdd, kVector});
    };
  };
  const auto reduce = [](Rig& rig) {
    return make_instruction(TensorReduce{rig.sbuf({128, 1}), AluOp::kAdd, rig.sbuf({128, 512}),
                                         std::vector<std::int64_t>{1}, false});
  };
  static const std::vector<StreamRow> rows = {
      {"vector copy fp32 N=512", kVector, copy(kVector, DType::kFloat32, 512, Space::kSbuf),
       kVectorGhz, 256 + 70, 154 + 256, 160.5 + 0.5207 * 512},
      {"vector copy bf16 N=512", kVector, copy(kVector, DType::kBfloat16, 512, Space::kSbuf),
       kVectorGhz, 128 + 70, 150 + 128, 155.7 + 0.2691 * 512},
      {"vector copy fp32 PSUM N=512", kVector, copy(kVector, DType::kFloat32, 512, Space::kPsum),
       kVectorGhz, 512 + 70, 150 + 512, 158 + 1.041 * 512},
      {"vector copy fp32 N=1", kVector, copy(kVector, DType::kFloat32, 1, Space::kSbuf), kVectorGhz,
       0.5 + 70, 154 + 0.5, 160.5 + 0.5207},
      {"vector tensor_tensor fp32 N=512", kVector, both(DType::kFloat32, 512), kVectorGhz, 512 + 70,
       152 + 512, 158.7 + 1.0417 * 512},
      {"vector tensor_tensor bf16 N=512", kVector, both(DType::kBfloat16, 512), kVectorGhz,
       256 + 70, 155 + 256, 161.5 + 0.5166 * 512},
      {"vector tensor_reduce fp32 N=512", kVector, reduce, kVectorGhz, 512 + 70, 144 + 512,
       150 + 1.0417 * 512},
      {"scalar copy fp32 N=128", kScalar, copy(kScalar, DType::kFloat32, 128, Space::kSbuf),
       kScalarGhz, 128 + 111, 227 + 128, 191 + 0.8333 * 128},
      {"gpsimd copy fp32 N=512", kGpsimd, copy(kGpsimd, DType::kFloat32, 512, Space::kSbuf),
       kGpsimdGhz, 512 + 70, 210 + 512, 0},
  };
  return rows;
}

class StreamProbe : public testing::TestWithParam<std::size_t> {
 protected:
  const StreamRow& row() const { return stream_rows()[GetParam()]; }
};

TEST_P(StreamProbe, IndependentInstructionsFollowAtTheInterval) {
  const Ticks interval = cycles(row().interval_cycles, row().clock_ghz);
  Rig rig;
  for (int i = 0; i < 3; ++i) {
    rig.append(0, row().make(rig));
  }
  const auto run = rig.run();
  EXPECT_EQ(run.events[1].start - run.events[0].start, interval);
  EXPECT_EQ(run.events[2].start - run.events[1].start, interval);
}

TEST_P(StreamProbe, TheEngineIsTakenUntilTheIntervalEnds) {
  const Ticks interval = cycles(row().interval_cycles, row().clock_ghz);
  for (const Ticks late : {-1, 0, 1}) {
    // The next one's operand arrives one tick before, at, and one tick after the engine is free.
    Rig rig;
    const Tensor operand = rig.sbuf({128, 1});
    const std::uint32_t first = rig.append(0, row().make(rig));
    rig.probe(kSync, engine_cost(1, interval + late - kOtherEngineGap), {writes(operand)});
    const std::uint32_t next = rig.probe(row().engine, engine_cost(1, 1), {reads(operand)});
    const auto run = rig.run();
    EXPECT_EQ(run.events[first].start, 0);
    EXPECT_EQ(run.events[next].start, interval + std::max<Ticks>(0, late));
  }
}

TEST_P(StreamProbe, ResultsAreReadyAtCompletionPlusTheGap) {
  const Ticks completion = cycles(row().completion_cycles, row().clock_ghz);
  if (row().measured_ns > 0) {
    EXPECT_NEAR(ns_from_ticks(completion), row().measured_ns, 0.02 * row().measured_ns);
  }
  const auto consumer = [&](EngineKind engine) {
    Pair pair;
    pair.engine = engine;
    pair.before = [&](Rig& rig) { rig.append(0, row().make(rig)); };
    pair.subject = [engine](Rig& rig) {
      AccessList list;
      rig.program().instructions(0)[0]->access(list);
      for (const Access& access : list) {
        if (access.kind == AccessKind::kWrite) {
          return rig.probe(engine, engine_cost(1, 1), {reads(*access.tensor)});
        }
      }
      return 0u;
    };
    return pair;
  };
  EXPECT_READY_AT(consumer(row().engine), completion + kSameEngineGap);
  EXPECT_READY_AT(consumer(kSync), completion + kOtherEngineGap);
}

INSTANTIATE_TEST_SUITE_P(AllLaws, StreamProbe, testing::Range<std::size_t>(0, stream_rows().size()),
                         [](const auto& info) {
                           std::string name = stream_rows()[info.param].what;
                           for (char& c : name) {
                             c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           }
                           return name;
                         });

TEST(EngineTiming, MemsetAndScalarOperandFollowTheirLaws) {
  // 58 ns + 0.8333 N (hw.md §2.4); a [P, 1] operand costs about 57 ns (§2.7).
  Rig rig;
  const std::uint32_t set = rig.add<Memset>(rig.sbuf({128, 512}), MemsetValue{1.0}, kVector);
  const std::uint32_t constant =
      rig.add<TensorScalar>(rig.sbuf({128, 512}), rig.sbuf({128, 512}),
                            ScalarStep{AluOp::kMultiply, 2.0, false}, std::nullopt, kVector);
  const std::uint32_t operand = rig.add<TensorScalar>(
      rig.sbuf({128, 512}), rig.sbuf({128, 512}),
      ScalarStep{AluOp::kMultiply, rig.sbuf({128, 1}), false}, std::nullopt, kVector);
  const auto run = rig.run();
  const auto took = [&](std::uint32_t id) {
    return ns_from_ticks(run.events[id].end - run.events[id].start);
  };
  EXPECT_NEAR(took(set), 58 + 0.8333 * 512, 1.0);
  EXPECT_NEAR(took(constant), 160.3 + 0.5208 * 512, 1.0);
  EXPECT_NEAR(took(operand) - took(constant), 57.0, 0.5);
}

TEST(EngineTiming, ClocksScaleTime) {
  Machine twice = machine_named("trn2");
  twice.core.vector.clock_ghz = 1.92;
  Rig rig(twice);
  const std::uint32_t copy =
      rig.add<TensorCopy>(rig.sbuf({128, 512}), rig.sbuf({128, 512}), kVector);
  const auto run = rig.run();
  EXPECT_EQ(run.events[copy].end, cycles(410, 1.92));
}

TEST(EngineTiming, TheSameProgramIsTimedOnAnotherMachine) {
  // NeuronCore-v2's vector engine runs at 1.12 GHz (AWS trainium_inferentia2_arch.rst); fp32 copies
  // at one element per cycle there.
  Rig rig;
  rig.add<TensorCopy>(rig.sbuf({128, 512}), rig.sbuf({128, 512}), kVector);
  const auto run = run_program(rig.program(), machine_named("trn1"), {});
  EXPECT_EQ(run.machine, "trn1");
  const double took_cycles = ns_from_ticks(run.events[0].end) * 1.12;
  EXPECT_NEAR(took_cycles - std::round(took_cycles), 0.0, 1e-3);
  EXPECT_GT(took_cycles, 512);
}

// 68 ns per immediate move (published probes of Trn2), 681 ns per load from memory (INST-011).
TEST(EngineTiming, RegisterInstructionsFollowEachOtherOnTheirSequencer) {
  Rig rig;
  rig.add<RegisterMove>();
  rig.add<RegisterLoad>(rig.sbuf({1, 1}, DType::kInt32), nullptr);
  rig.add<RegisterMove>();
  rig.add<RegisterStore>(rig.sbuf({1, 1}, DType::kInt32), 7);
  const auto run = rig.run();
  EXPECT_EQ(run.events[1].start, ns(68));
  EXPECT_EQ(run.events[2].start, ns(68 + 681));
  EXPECT_EQ(run.events[3].start, ns(68 + 681 + 68));
  for (const RunEvent& event : run.events) {
    EXPECT_EQ(event.engine, run.events[0].engine);
  }
}

// Published probes of Trn2: 37 ns to a copy, 47 ns to a transpose, 100 ns to other compute (hw.md
// §2.5).
TEST(EngineTiming, CopiesAndTransposesStartSoonerThanOtherCompute) {
  for (const auto& [gap, gap_ns] : {std::pair{StartGap::kCopy, 37.0},
                                    {StartGap::kTranspose, 47.0},
                                    {StartGap::kCompute, 100.0}}) {
    Pair pair;
    pair.before = [](Rig& rig) {
      rig.probe(kScalar, engine_cost(ns(10), ns(700)), {writes(rig.sbuf({128, 64}))});
    };
    pair.subject = [gap = gap](Rig& rig) {
      AccessList list;
      rig.program().instructions(0)[0]->access(list);
      Cost cost = engine_cost(1, 1);
      cost.gap = gap;
      return rig.probe(kVector, cost, {reads(*list.begin()->tensor)});
    };
    EXPECT_READY_AT(pair, ns(700) + ns(gap_ns));
  }
  Rig rig;
  const Machine& machine = machine_named("trn2");
  const Tensor tile = rig.sbuf({32, 32});
  EXPECT_EQ(make_instruction(TensorCopy{tile, rig.sbuf({32, 32}), kVector})->cost(machine).gap,
            StartGap::kCopy);
  EXPECT_EQ(make_instruction(NcTranspose{tile, rig.sbuf({32, 32}), kVector})->cost(machine).gap,
            StartGap::kTranspose);
}

// AWS trainium_inferentia2_arch.rst: on NeuronCore-v2 vector and GpSimd take turns on SBUF, vector
// and scalar on PSUM; later generations let them run side by side.
TEST(MemoryPorts, V2EnginesTakeTurns) {
  struct Row {
    const char* machine;
    EngineKind other;
    Space space;  // of what the other engine reads; the vector engine reads the same memory
    bool in_turns;
  };
  for (const Row& row :
       {Row{"trn1", kGpsimd, Space::kSbuf, true}, Row{"inf2", kScalar, Space::kPsum, true},
        Row{"trn1", kScalar, Space::kSbuf, false}, Row{"trn2", kGpsimd, Space::kSbuf, false},
        Row{"trn2", kScalar, Space::kPsum, false}}) {
    for (const Ticks late : {ns(499), ns(500), ns(501)}) {
      Rig rig(row.machine);
      const Tensor operand = rig.sbuf({128, 1});
      rig.probe(kSync, engine_cost(1, late - kOtherEngineGap), {writes(operand)});
      rig.probe(kVector, engine_cost(ns(500), ns(900)),
                {reads(rig.make(row.space, DType::kFloat32, {128, 8}))});
      auto second = std::make_unique<Probe>(
          row.other, engine_cost(ns(10), ns(20)),
          std::vector<Touch>{reads(rig.make(row.space, DType::kFloat32, {128, 8}))});
      second->depends_on = {0};
      const std::uint32_t other = rig.append(0, std::move(second));
      EXPECT_EQ(rig.run().events[other].start, row.in_turns ? std::max(late, ns(500)) : late);
    }
  }
}

TEST(MemoryPorts, LaterGenerationsTakeTurnsAtOneBank) {
  // AWS trainium2_arch.rst: vector and scalar read PSUM in parallel unless both hit one bank.
  for (const bool same : {true, false}) {
    Rig rig("trn2");
    const Tensor bank = rig.psum({128, 512});
    const Tensor other = rig.psum({128, 512});
    rig.probe(kVector, engine_cost(ns(500), ns(900)), {reads(bank)});
    rig.probe(kScalar, engine_cost(ns(10), ns(20)), {reads(same ? bank : other)});
    EXPECT_EQ(rig.run().events[1].start, same ? ns(500) : 0);
  }
}

// A new 32 x 32 transpose every 93 ns on one pair of quadrants, every 234 ns otherwise (published
// probes of Trn2).
TEST(EngineTiming, BlockTransposesPayForAnotherRoute) {
  Rig rig;
  const Tensor from = rig.sbuf({128, 32});
  const auto quadrant = [](const Tensor& tensor, std::int64_t index) {
    return tensor.with(tensor.dtype(), index * 32 * tensor.dim(0).stride_bytes,
                       std::vector<Dim>{{32, tensor.dim(0).stride_bytes}, tensor.dim(1)});
  };
  for (const auto& [source, target] : {std::pair{0, 0}, {0, 0}, {0, 1}, {0, 1}, {1, 2}}) {
    rig.add<NcTranspose>(quadrant(rig.sbuf({128, 32}), target), quadrant(from, source), kVector);
  }
  const auto run = rig.run();
  std::vector<double> spacing;
  for (std::size_t i = 1; i < 5; ++i) {
    spacing.push_back(ns_from_ticks(run.events[i].end - run.events[i - 1].end));
  }
  const std::vector<double> expected = {93, 234, 93, 234};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(spacing[i], expected[i], 0.5) << i;
  }
  EXPECT_NEAR(ns_from_ticks(run.events[0].end), 233, 1);  // of one block
}

TEST(EngineTiming, AnEngineResultReachesADmaTriggerAfterItsGap) {
  for (const Ticks completion : {ns(500), ns(500) + 1}) {
    Rig rig;
    const Tensor tile = rig.sbuf({128, 64});
    rig.probe(kVector, engine_cost(ns(70), completion), {writes(tile)});
    const std::uint32_t store = rig.probe(kSync, prepared_dma({128, 256}, 16, true),
                                          {reads(tile), writes(rig.hbm({128, 64}))});
    EXPECT_EQ(rig.run().events[store].issue, completion + kDmaIssueGap);
  }
}

TEST(EngineTiming, WriteAfterReadAndWriteAfterWriteWaitAsReadsDo) {
  for (const AccessKind first : {AccessKind::kRead, AccessKind::kWrite}) {
    Pair pair;
    pair.before = [first](Rig& rig) {
      rig.probe(kScalar, engine_cost(ns(10), ns(700)), {{first, rig.sbuf({128, 64})}});
    };
    pair.subject = [](Rig& rig) {
      AccessList list;
      rig.program().instructions(0)[0]->access(list);
      return rig.probe(kVector, engine_cost(1, 1), {writes(*list.begin()->tensor)});
    };
    EXPECT_READY_AT(pair, ns(700) + kOtherEngineGap);
  }
}

// nki.md §5.1-4: who takes over an address waits for its earlier tenants, byte for byte.
TEST(EngineTiming, AWriteAtATakenAddressWaitsForItsEarlierTenant) {
  for (const AccessKind first : {AccessKind::kRead, AccessKind::kWrite}) {
    Pair pair;
    pair.before = [first](Rig& rig) {
      rig.probe(kScalar, engine_cost(ns(10), ns(700)), {{first, rig.sbuf_at({0, 64}, {64, 64})}});
    };
    pair.subject = [](Rig& rig) {
      return rig.probe(kVector, engine_cost(1, 1), {writes(rig.sbuf_at({32, 100}, {64, 64}))});
    };
    EXPECT_READY_AT(pair, ns(700) + kOtherEngineGap);
  }
}

TEST(EngineTiming, NobodyWaitsBesideAnAddressOrToReadThroughIt) {
  struct Case {
    Address address;
    AccessKind kind;
  };
  for (const Case& second :
       {Case{{32, 128}, AccessKind::kWrite}, Case{{64, 64}, AccessKind::kWrite},
        Case{{32, 100}, AccessKind::kRead}}) {
    Rig rig;
    const Tensor tenant = rig.sbuf_at({0, 64}, {64, 64});
    const Tensor other = rig.sbuf_at(second.address, {64, 64});
    rig.probe(kScalar, engine_cost(ns(10), ns(700)), {writes(tenant)});
    const std::uint32_t subject = rig.probe(kVector, engine_cost(1, 1), {{second.kind, other}});
    EXPECT_EQ(rig.run().events[subject].start, 0);
  }
}

// Its place of 64 bytes is taken over, but of it only these are used.
TEST(EngineTiming, OnlyUsedBytesOfATenantAreWaitedFor) {
  Rig rig;
  const Tensor tenant = rig.sbuf_at({0, 64}, {64, 64});
  const Tensor used = tenant.with(DType::kUint8, 0, std::vector<Dim>{tenant.dim(0), {16, 1}});
  rig.probe(kScalar, engine_cost(ns(10), ns(700)), {writes(used)});
  const Tensor beside = rig.sbuf_at({0, 80}, {64, 32});
  const std::uint32_t subject = rig.probe(kVector, engine_cost(1, 1), {writes(beside)});
  EXPECT_EQ(rig.run().events[subject].start, 0);
}

TEST(EngineTiming, HiddenStateKeepsProgramOrder) {
  Pair pair;
  pair.before = [](Rig& rig) {
    auto first = std::make_unique<Probe>(kScalar, engine_cost(ns(10), ns(700)));
    first->state = HiddenState::kScalarAccumulators;
    rig.append(0, std::move(first));
  };
  pair.engine = kScalar;
  pair.subject = [](Rig& rig) {
    auto second = std::make_unique<Probe>(kScalar, engine_cost(1, 1));
    second->state = HiddenState::kScalarAccumulators;
    return rig.append(0, std::move(second));
  };
  EXPECT_READY_AT(pair, ns(700) + kSameEngineGap);
}

TEST(EngineTiming, DependsOnIsAnOrderOfItsOwn) {
  Pair pair;
  pair.before = [](Rig& rig) { rig.probe(kScalar, engine_cost(ns(10), ns(700))); };
  pair.subject = [](Rig& rig) {
    auto second = std::make_unique<Probe>(kVector, engine_cost(1, 1));
    second->depends_on = {0};
    return rig.append(0, std::move(second));
  };
  EXPECT_READY_AT(pair, ns(700) + kOtherEngineGap);
}

// hw.md §2.4: 1,283 ns on Trn2 (INST-014), 368 ns on Trn1 (AWS profiler screenshot).
TEST(ActivationTables, AnotherSetCostsALoadAndTheSameSetNone) {
  for (const auto& [machine, load_ns] : {std::pair{"trn2", 1283.0}, std::pair{"trn1", 368.0}}) {
    Rig rig(machine);
    Cost exp = engine_cost(ns(100), ns(300));
    exp.activation_table = "exp";
    Cost sigmoid = exp;
    sigmoid.activation_table = "sigmoid";
    Cost plain = engine_cost(ns(100), ns(300));  // needs no set and leaves the resident one
    for (const Cost& cost : {exp, exp, plain, exp, sigmoid, exp}) {
      rig.probe(kScalar, cost);
    }
    const auto run = rig.run({.schedule = SchedulePolicy::kProgram});
    const std::vector<double> loads = {load_ns, 0, 0, 0, load_ns, load_ns};
    Ticks at = 0;
    for (std::size_t i = 0; i < loads.size(); ++i) {
      EXPECT_EQ(run.events[i].start, at) << i;
      EXPECT_EQ(run.events[i].busy_until - at, ns(loads[i] + 100)) << i;
      EXPECT_EQ(run.events[i].end - at, ns(loads[i] + 300)) << i;
      at = run.events[i].busy_until;
    }
    EXPECT_EQ(run.per_core[0].table_loads, 3);
    EXPECT_EQ(run.per_core[0].table_load_time, ns(3 * load_ns));
  }
}

TEST(ActivationTables, FunctionsOfOneSetShareIt) {
  // {copy, square, rsqrt ...}, {sigmoid} and {exp} are sets on one Trn2 build (published probes,
  // hw.md §2.4).
  Rig rig;
  const auto activate = [&](MathFunction function) {
    return rig.add<Activation>(rig.sbuf({128, 128}), function,
                               ActivationInput{rig.sbuf({128, 128}), {}, 1.0}, Reduction{});
  };
  const std::vector<std::pair<MathFunction, bool>> functions = {
      {MathFunction::kExp, true},    {MathFunction::kExp, false},    {MathFunction::kSquare, true},
      {MathFunction::kRsqrt, false}, {MathFunction::kSigmoid, true}, {MathFunction::kExp, true}};
  for (const auto& [function, loads] : functions) {
    activate(function);
  }
  const auto run = rig.run({.schedule = SchedulePolicy::kProgram});
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const Ticks until_free = run.events[i].busy_until - run.events[i].start;
    // 128 elements and 111 cycles of issue: 199 ns (hw.md §2.4).
    EXPECT_EQ(until_free, cycles(128 + 111, kScalarGhz) + (functions[i].second ? ns(1283) : 0))
        << i;
  }
}

// 9.40 us around the data flow (published probes of Trn2, hw.md §2.5).
TEST(Launch, AKernelCostsAFixedTime) {
  Rig rig;
  rig.probe(kVector, engine_cost(ns(10), ns(1000)));
  const auto run = rig.run();
  EXPECT_EQ(run.launch_time, ns(9400));
  EXPECT_EQ(run.time, ns(9400) + ns(1000));
}

TEST(Launch, AnEmptyProgramCostsTheLaunch) {
  Rig rig;
  EXPECT_EQ(rig.run().time, ns(9400));
}

// hw.md §1.5: the port of v3 delivers one 16-byte sector every two cycles; v2 halves past 16 bytes.
struct StrideRow {
  const char* machine;
  std::int64_t stride;  // elements
  DType dtype;
  double stretch;
};
TEST(Strides, LongStridesStretchTheStream) {
  const std::vector<StrideRow> rows = {
      {"trn2", 1, DType::kFloat32, 1.0},  {"trn2", 2, DType::kFloat32, 1.0},
      {"trn2", 3, DType::kFloat32, 1.5},  {"trn2", 4, DType::kFloat32, 2.0},
      {"trn2", 8, DType::kFloat32, 2.0},  {"trn2", 16, DType::kFloat32, 2.0},
      {"trn2", 20, DType::kFloat32, 2.5}, {"trn2", 24, DType::kFloat32, 3.0},
      {"trn2", 32, DType::kFloat32, 3.0}, {"trn1", 1, DType::kFloat32, 1.0},
      {"trn1", 4, DType::kFloat32, 1.0},  {"trn1", 5, DType::kFloat32, 2.0},
      {"trn1", 8, DType::kBfloat16, 1.0}, {"trn1", 9, DType::kBfloat16, 2.0},
      {"trn1", 16, DType::kFloat32, 2.0},
  };
  for (const StrideRow& row : rows) {
    // As the completion grows with N, so that offsets cancel.
    const auto completion = [&](std::int64_t n) {
      Rig rig(row.machine);
      const auto width = static_cast<std::int64_t>(size_bytes(row.dtype));
      const Tensor wide = rig.sbuf({128, n * row.stride}, row.dtype);
      const Tensor source =
          wide.with(row.dtype, 0, std::vector<Dim>{wide.dim(0), {n, row.stride * width}});
      rig.add<TensorTensor>(rig.sbuf({128, n}, row.dtype), source, rig.sbuf({128, n}, row.dtype),
                            AluOp::kAdd, kVector);
      return rig.run().events[0].end;
    };
    const bool v2 = std::string_view(row.machine) == "trn1";
    const double ghz = v2 ? 1.12 : kVectorGhz;
    // hw.md §2.3, §2.4: on v2 one cycle for bfloat16 of unit stride only.
    const double per_element = v2 ? 2.0 : 1.0;
    EXPECT_NEAR(ns_from_ticks(completion(512) - completion(256)) * ghz / 256,
                per_element * row.stretch, 1e-3)
        << row.machine << " stride " << row.stride;
  }
}

TEST(Schedules, ListTakesWhatIsReadyAndProgramKeepsTheOrder) {
  Rig rig;
  const Tensor late = rig.sbuf({128, 1});
  rig.probe(kScalar, engine_cost(ns(10), ns(1000)), {writes(late)});
  const std::uint32_t blocked = rig.probe(kVector, engine_cost(ns(50), ns(60)), {reads(late)});
  const std::uint32_t independent = rig.probe(kVector, engine_cost(ns(50), ns(60)));
  const auto list = rig.run({.schedule = SchedulePolicy::kList});
  EXPECT_EQ(list.events[independent].start, 0);
  EXPECT_EQ(list.events[blocked].start, ns(1100));
  const auto program = rig.run({.schedule = SchedulePolicy::kProgram});
  EXPECT_EQ(program.events[blocked].start, ns(1100));
  EXPECT_EQ(program.events[independent].start, ns(1150));
}

// AWS nki.isa.tensor_copy: with engine.unknown the "compiler selects best engine based on engine
// workload". Copies of 512 float32: from PSUM 585.8 ns by scalar and 689.6 ns by vector, one every
// 519.2 and 606.3 ns; from SBUF 616 and 427 ns (hw.md §2.4).
TEST(EngineChoice, ACopyGoesWhereItIsDoneFirst) {
  struct Row {
    const char* machine;
    Space space;
    DType dtype;
    std::vector<EngineKind> engines;
  };
  const std::vector<Row> rows = {
      {"trn2", Space::kPsum, DType::kFloat32, {kScalar, kVector, kScalar}},
      {"trn2", Space::kSbuf, DType::kFloat32, {kVector, kScalar, kVector}},
      // On NeuronCore-v2 the scalar engine copies through float32, which not every integer
      // survives.
      {"trn1", Space::kSbuf, DType::kInt32, {kVector, kVector, kVector}}};
  for (const Row& row : rows) {
    Rig rig(row.machine);
    for (std::size_t i = 0; i < row.engines.size(); ++i) {
      rig.add<TensorCopy>(rig.sbuf({128, 512}, row.dtype),
                          rig.make(row.space, row.dtype, {128, 512}), EngineRequest{});
    }
    const auto run = rig.run();
    const auto written = rig.run({.schedule = SchedulePolicy::kProgram});
    for (std::size_t i = 0; i < row.engines.size(); ++i) {
      EXPECT_EQ(run.events[i].engine, row.engines[i]) << row.machine << " copy " << i;
      EXPECT_EQ(written.events[i].engine, kVector);  // as written: the usual engine
    }
    EXPECT_EQ(run.per_core[0].engines[static_cast<std::size_t>(kScalar)].instructions,
              std::count(row.engines.begin(), row.engines.end(), kScalar));
  }
}

TEST(EngineChoice, ItFollowsTheWorkloadAndTheRequest) {
  for (const Ticks busy : {ns(188), ns(190)}) {
    Rig rig;
    rig.probe(kVector, engine_cost(busy, busy));
    rig.add<TensorCopy>(rig.sbuf({128, 512}), rig.sbuf({128, 512}), EngineRequest{});
    rig.add<TensorCopy>(rig.sbuf({128, 512}), rig.sbuf({128, 512}), kGpsimd);
    const auto run = rig.run();
    EXPECT_EQ(run.events[1].engine, busy < ns(188.75) ? kVector : kScalar);
    EXPECT_EQ(run.events[2].engine, kGpsimd);
  }
}

TEST(Stalls, IdleTimeIsChargedToWhatArrivedLast) {
  Rig rig;
  const Tensor operand = rig.sbuf({128, 1});
  const Tensor early = rig.sbuf({128, 1});
  rig.probe(kSync, engine_cost(ns(10), ns(20)), {writes(early)});
  const std::uint32_t producer =
      rig.probe(kScalar, engine_cost(ns(10), ns(1000)), {writes(operand)});
  rig.probe(kVector, engine_cost(ns(200), ns(300)));
  const std::uint32_t consumer =
      rig.probe(kVector, engine_cost(ns(50), ns(60)), {reads(operand), reads(early)});
  const auto run = rig.run();
  EXPECT_EQ(run.events[consumer].cause, producer);
  EXPECT_EQ(run.events[consumer].stall, ns(1100 - 200));
}

TEST(Stalls, WaitingForOnesOwnEngineIsNoStall) {
  Rig rig;
  const Tensor operand = rig.sbuf({128, 1});
  rig.probe(kScalar, engine_cost(ns(10), ns(100)), {writes(operand)});
  rig.probe(kVector, engine_cost(ns(900), ns(900)));
  const std::uint32_t consumer = rig.probe(kVector, engine_cost(ns(50), ns(60)), {reads(operand)});
  EXPECT_EQ(rig.run().events[consumer].stall, 0);
}

}  // namespace
}  // namespace trena::core_test
