// Probes of the tensor engine (hw.md §1.8, §2.2, §2.7): steady streams, weight loads, the current
// ramp, the sustained limit. Expected values are literals with their source.
#include "core_rig.h"
#include "trena/isa/tensor/nc_matmul.h"

namespace trena::core_test {
namespace {

using enum EngineKind;

constexpr double kGhz = 2.4;          // AWS trainium2_arch.rst
constexpr double kWindowNs = 3413.0;  // throttle windows are multiples of it (ENRG-010)
constexpr Ticks kOtherEngineGap = 100'000'000;

struct Shape {
  DType dtype = DType::kBfloat16;
  std::int64_t moving = 512;
  std::int64_t contraction = 128;
};

// A chain of products accumulating into one bank; returns the index of the last.
std::uint32_t stream(Rig& rig, int count, Shape shape) {
  const Tensor result = rig.psum({128, shape.moving});
  const Tensor weights = rig.sbuf({shape.contraction, 128}, shape.dtype);
  const Tensor moving = rig.sbuf({shape.contraction, shape.moving}, shape.dtype);
  std::uint32_t last = 0;
  for (int i = 0; i < count; ++i) {
    last = rig.add<NcMatmul>(result, weights, moving, MatmulOptions{});
  }
  return last;
}

Ticks spacing(const Run& run, std::uint32_t id) {
  return run.events[id].start - run.events[id - 1].start;
}
// A product is several roundings to a tick.
bool same(Ticks a, Ticks b) { return std::abs(a - b) <= 3; }
Ticks took(const Run& run, std::uint32_t id) { return run.events[id].end - run.events[id].start; }

TEST(TensorStream, SteadyIntervals) {
  struct Row {
    Shape shape;
    double cycles;       // (max(64, N) [x 4 for fp32] + 24), hw.md §2.2
    double measured_ns;  // published probes of Trn2; 0: none
  };
  const std::vector<Row> rows = {
      {{DType::kFloat32, 512}, 4 * 512 + 24, 863.3}, {{DType::kFloat32, 128}, 4 * 128 + 24, 223},
      {{DType::kFloat32, 64}, 4 * 128 + 24, 0},  // the weight loads are longer
      {{DType::kBfloat16, 512}, 512 + 24, 0},        {{DType::kBfloat16, 128}, 128 + 24, 0},
      {{DType::kBfloat16, 32}, 64 + 24, 0},          {{DType::kFloat8E4m3, 512}, 512 + 24, 0}};
  for (const Row& row : rows) {
    Rig rig;
    const std::uint32_t last = stream(rig, 150, row.shape);
    const auto run = rig.run();
    EXPECT_TRUE(same(spacing(run, last), cycles(row.cycles, kGhz)));
    if (row.measured_ns > 0) {
      EXPECT_NEAR(ns_from_ticks(spacing(run, last)), row.measured_ns, 0.5);
    }
  }
}

// Isolated products (published probes of Trn2, hw.md §2.2): the law and what was measured, ns.
TEST(TensorStream, ColdCompletions) {
  struct Row {
    Shape shape;
    double law_ns;
    double measured_ns;
  };
  for (const Row& row :
       {Row{{DType::kBfloat16, 128}, 298, 309}, Row{{DType::kBfloat16, 512}, 618, 627},
        Row{{DType::kFloat32, 128}, 805, 808}, Row{{DType::kFloat32, 512}, 2085, 2088}}) {
    Rig rig;
    const std::uint32_t only = stream(rig, 1, row.shape);
    const double seen = ns_from_ticks(took(rig.run(), only));
    EXPECT_NEAR(seen, row.law_ns, 0.6);
    EXPECT_NEAR(seen, row.measured_ns, 0.04 * row.measured_ns);
  }
}

// What a profiler shows of LDWEIGHTS and MATMUL, within 3 % (published medians of traced kernels).
TEST(TensorStream, ShowsWeightLoadsAndProductsAsAProfilerDoes) {
  struct Row {
    Shape shape;
    int count;  // 512: at full rate; 1: cold, under the ramp
    double load_ns;
    double multiply_ns;
  };
  const Shape fp32{DType::kFloat32, 512, 128};
  for (const Row& row : {Row{{}, 512, 97, 379},       // INST-040, INST-051
                         Row{{}, 1, 146, 630},        // INST-041, INST-052
                         Row{fp32, 512, 191, 591},    // INST-043, INST-056
                         Row{fp32, 1, 333, 1060}}) {  // INST-044, INST-057
    Rig rig;
    const std::uint32_t last = stream(rig, row.count, row.shape);
    const RunEvent event = rig.run().events[last];
    EXPECT_NEAR(ns_from_ticks(event.load_weights), row.load_ns, 0.03 * row.load_ns);
    EXPECT_NEAR(ns_from_ticks(event.multiply), row.multiply_ns, 0.03 * row.multiply_ns);
  }
}

TEST(TensorStream, AResultIsReadyAtItsCompletion) {
  // 32 cycles of weights and 512 of data at half rate, then 396 cycles through the array (165 ns,
  // hw.md §2.2).
  const Ticks cold = 2 * cycles(32, kGhz) + 2 * cycles(512, kGhz) + cycles(396, kGhz);
  Pair pair;
  pair.before = [](Rig& rig) { stream(rig, 1, {}); };
  pair.subject = [](Rig& rig) {
    AccessList list;
    rig.program().instructions(0)[0]->access(list);
    const Tensor result = *(list.end() - 1)->tensor;
    return rig.probe(kVector, engine_cost(1, 1), {reads(result)});
  };
  EXPECT_READY_AT(pair, cold + kOtherEngineGap);
}

TEST(TensorStream, AccumulationChainsStartBehindEachOtherAndReadersWaitForTheEnd) {
  Rig rig;
  stream(rig, 2, {});
  const auto run = rig.run();
  EXPECT_EQ(run.events[1].start, run.events[0].busy_until);
  EXPECT_LT(run.events[1].start, run.events[0].end);
}

TEST(TensorStream, WeightsLoadBehindTheProductBefore) {
  // A warm engine; the last product's operand arrives when the engine is free, and one tick later.
  const auto last_product = [](Ticks ready) {
    Rig rig;
    const Tensor operand = rig.sbuf({128, 512}, DType::kBfloat16);
    rig.probe(kVector, engine_cost(1, std::max<Ticks>(1, ready - kOtherEngineGap)),
              {writes(operand)});
    const std::uint32_t before = stream(rig, 40, {});
    const std::uint32_t last = rig.add<NcMatmul>(
        rig.psum({128, 512}), rig.sbuf({128, 128}, DType::kBfloat16), operand, MatmulOptions{});
    const auto run = rig.run({.schedule = SchedulePolicy::kProgram});
    EXPECT_EQ(run.events[last].start, std::max(run.events[before].busy_until, ready));
    return std::pair(run.events[before].busy_until, took(run, last));
  };
  const Ticks free_at = last_product(1).first;
  const Ticks moving = cycles(512, kGhz);
  const Ticks latency = cycles(396, kGhz);  // 165 ns
  EXPECT_EQ(last_product(free_at).second, moving + latency);
  EXPECT_EQ(last_product(free_at + 1).second, cycles(32, kGhz) + moving + latency);
}

TEST(TensorStream, WeightLoadsLongerThanTheDataSetThePace) {
  // fp32: 2 cycles per weight column (INST-043), 256 for 128 columns, against 128 for 64 columns of
  // data.
  Rig rig;
  const std::uint32_t last = stream(rig, 60, {DType::kFloat32, 64});
  EXPECT_TRUE(same(spacing(rig.run(), last), cycles(2 * 256 + 24, kGhz)));
}

// A product whose operand arrives at `start`, after a stream of `count` products of `service` from
// tick 0.
Ticks product_after(int count, Ticks service, Ticks start, double area = 1.0) {
  Rig rig;
  const Tensor operand = rig.sbuf({128, 1});
  rig.probe(kVector, engine_cost(1, start - kOtherEngineGap), {writes(operand)});
  for (int i = 0; i < count; ++i) {
    rig.probe(kTensor, product(0, service, area));
  }
  const std::uint32_t last = rig.probe(kTensor, product(0, ns(100)), {reads(operand)});
  const auto run = rig.run();
  EXPECT_EQ(run.events[last].start, start);
  return took(run, last);
}

const Ticks kFull = ns(100) + cycles(396, kGhz);
const Ticks kHalf = ns(200) + cycles(396, kGhz);

TEST(CurrentRamp, FullRateIsEarnedByABusyWindow) {
  // Ten products of 150 ns at half rate fill 3,000 of the window's 3,413 ns.
  EXPECT_EQ(product_after(10, ns(150), ns(kWindowNs) - 1), kHalf);
  EXPECT_EQ(product_after(10, ns(150), ns(kWindowNs)), kFull);
}

TEST(CurrentRamp, TheWindowStartsWithTheFirstWork) {
  // AWS glossary: full rate is reached over about the first 3 us of work, whenever that begins.
  for (const Ticks late : {-1, 0}) {
    Rig rig;
    const Tensor first = rig.sbuf({128, 1});
    const Tensor second = rig.sbuf({128, 1});
    const Ticks begin = ns(2000);
    rig.probe(kVector, engine_cost(1, begin - kOtherEngineGap), {writes(first)});
    rig.probe(kScalar, engine_cost(1, begin + ns(kWindowNs) + late - kOtherEngineGap),
              {writes(second)});
    for (int i = 0; i < 10; ++i) {
      rig.probe(kTensor, product(0, ns(150)), {reads(first)});
    }
    const std::uint32_t last = rig.probe(kTensor, product(0, ns(100)), {reads(second)});
    const auto run = rig.run();
    EXPECT_EQ(run.events[2].start, begin);
    EXPECT_EQ(took(run, last), late < 0 ? kHalf : kFull);
  }
}

TEST(CurrentRamp, AnIdleWindowBringsTheCapBack) {
  EXPECT_EQ(product_after(10, ns(150), 2 * ns(kWindowNs) - 1), kFull);
  EXPECT_EQ(product_after(10, ns(150), 2 * ns(kWindowNs)), kHalf);
  EXPECT_EQ(product_after(10, ns(150), 100 * ns(kWindowNs) + 7), kHalf);
}

TEST(CurrentRamp, ExactlyHalfIsNotEnough) {
  // AWS glossary: under 50 % the cap returns; a K = 64 stream shows that 50 % itself counts as
  // under.
  const Ticks quarter = ns(kWindowNs) / 4;
  EXPECT_EQ(product_after(1, quarter, ns(kWindowNs)), kHalf);
  EXPECT_EQ(product_after(1, quarter + 1, ns(kWindowNs)), kFull);
  // Half the rows: twice as long for the same share.
  EXPECT_EQ(product_after(1, ns(kWindowNs) / 2, ns(kWindowNs) + ns(100), 0.5), kHalf);
}

TEST(CurrentRamp, HalfOfTheRowsNeverLeaveTheCap) {
  // 1,707 ns instead of 860 per 512 columns of fp32 with K = 64 (published probes of Trn2, hw.md
  // §1.8).
  Rig rig;
  const std::uint32_t last = stream(rig, 40, {DType::kFloat32, 512, 64});
  EXPECT_NEAR(ns_from_ticks(spacing(rig.run(), last)), 1707, 0.01 * 1707);
}

TEST(CurrentRamp, AFullStreamIsHeldForOneWindow) {
  Rig rig;
  const std::uint32_t last = stream(rig, 60, {});
  const auto run = rig.run();
  const Ticks half = cycles(1024, kGhz) + cycles(24, kGhz);
  const Ticks full = cycles(512, kGhz) + cycles(24, kGhz);
  std::uint32_t at = 2;
  while (at < last && same(spacing(run, at), half)) {
    ++at;
  }
  EXPECT_TRUE(same(spacing(run, at), full));
  // The first product at full rate is the first to start in the second window.
  EXPECT_GE(run.events[at - 1].start, ns(kWindowNs));
  EXPECT_LT(run.events[at - 2].start, ns(kWindowNs));
  EXPECT_TRUE(same(spacing(run, last), full));
}

TEST(CurrentRamp, TheV2PartsHaveNone) {
  Rig rig("trn1");
  const std::uint32_t only = stream(rig, 1, {});
  // 32 + 512 cycles at 2.8 GHz and the latency: nothing is halved.
  EXPECT_LT(took(rig.run(), only), cycles(32 + 512 + 512, 2.8));
}

// Average rate of a dense 16-bit GEMM by the profiler's throttle counters: 0.891 on Trn1, 0.641 on
// Inf2 (ENRG-012, ENRG-014; hw.md §1.8).
TEST(SustainedLimit, DenseWorkSettlesAtTheLevelOfThePart) {
  for (const auto& [machine, level, measured] :
       {std::tuple{"trn1", 0.89, 0.891}, std::tuple{"inf2", 0.64, 0.641}}) {
    Rig rig(machine);
    const std::uint32_t last = stream(rig, 6000, {});
    const auto run = rig.run();
    const Ticks overhead = cycles(24, 2.8);
    const Ticks service = cycles(512, 2.8);
    EXPECT_EQ(spacing(run, 100), service + overhead);
    EXPECT_EQ(spacing(run, 5000), service + overhead);  // within the first millisecond
    EXPECT_NEAR(static_cast<double>(spacing(run, last) - overhead),
                static_cast<double>(service) / level, 1.0);
    EXPECT_NEAR(static_cast<double>(service) / static_cast<double>(spacing(run, last) - overhead),
                measured, 0.002);
  }
}

TEST(SustainedLimit, IdleTimeRestoresTheBudget) {
  Rig rig("trn1");
  const std::uint32_t tired = stream(rig, 6000, {});
  const Tensor operand = rig.sbuf({128, 512}, DType::kBfloat16);
  rig.probe(kVector, engine_cost(1, ns(5e6)), {writes(operand)});
  const std::uint32_t rested = rig.add<NcMatmul>(
      rig.psum({128, 512}), rig.sbuf({128, 128}, DType::kBfloat16), operand, MatmulOptions{});
  const auto run = rig.run();
  EXPECT_GT(spacing(run, tired), cycles(512 + 24, 2.8) + 1);
  const Ticks streaming = run.events[rested].busy_until - run.events[rested].start;
  EXPECT_NEAR(static_cast<double>(streaming), static_cast<double>(cycles(32 + 512 + 24, 2.8)), 2.0);
}

// nki.isa.nc_matmul: products on different row or column tiles of the array run in parallel (2 x 64
// rows, from v3 on 4 x 32 rows; columns likewise). Steady time of one round over all tiles, in
// cycles.
double round_cycles(std::string_view machine, double ghz,
                    std::vector<std::array<std::int64_t, 2>> positions,
                    std::array<std::int64_t, 2> size) {
  Rig rig(machine);
  std::vector<Tensor> banks;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    banks.push_back(rig.psum({size[1], 512}));
  }
  const Tensor weights = rig.sbuf({size[0], size[1]}, DType::kBfloat16);
  const Tensor moving = rig.sbuf({size[0], 512}, DType::kBfloat16);
  std::uint32_t last = 0;
  constexpr std::uint32_t kRounds = 60;
  for (std::uint32_t i = 0; i < kRounds; ++i) {
    for (std::size_t tile = 0; tile < positions.size(); ++tile) {
      MatmulOptions options;
      options.tile_position = positions[tile];
      options.tile_size = size;
      last = rig.add<NcMatmul>(banks[tile], weights, moving, options);
    }
  }
  const auto run = rig.run();
  const auto tiles = static_cast<std::uint32_t>(positions.size());
  return ns_from_ticks(run.events[last].end - run.events[last - 10 * tiles].end) / 10 * ghz;
}

TEST(ArrayTiles, DisjointTilesRunSideBySide) {
  const double one = 512 + 24;
  EXPECT_NEAR(round_cycles("trn2", kGhz, {{0, 0}, {32, 0}, {64, 0}, {96, 0}}, {32, 128}), one, 1);
  EXPECT_NEAR(round_cycles("trn2", kGhz, {{0, 0}, {64, 0}}, {64, 128}), one, 1);
  EXPECT_NEAR(round_cycles("trn2", kGhz, {{0, 0}, {0, 64}}, {128, 64}), one, 1);
  EXPECT_NEAR(round_cycles("trn2", kGhz, {{0, 0}, {0, 32}, {32, 0}, {32, 32}}, {32, 32}), 1024 + 24,
              1);  // a quarter of the array stays under the ramp's cap
  EXPECT_NEAR(round_cycles("trn1", 2.8, {{0, 0}, {64, 0}}, {64, 128}), one, 1);
}

TEST(ArrayTiles, TheSameTileIsUsedInTurn) {
  // A quarter of the array never leaves the ramp's cap: each takes twice as long.
  EXPECT_NEAR(round_cycles("trn2", kGhz, {{32, 0}}, {32, 128}), 1024 + 24, 1);
  EXPECT_NEAR(round_cycles("trn1", 2.8, {{64, 0}, {64, 0}}, {64, 128}), 2 * (512 + 24), 1);
}

TEST(ArrayTiles, AProductOnTheWholeArrayWaitsForEveryTile) {
  Rig rig("trn1");
  MatmulOptions half;
  half.tile_position = {64, 0};
  half.tile_size = {64, 128};
  const std::uint32_t tile =
      rig.add<NcMatmul>(rig.psum({128, 512}), rig.sbuf({64, 128}, DType::kBfloat16),
                        rig.sbuf({64, 512}, DType::kBfloat16), half);
  const std::uint32_t whole = stream(rig, 1, {});
  const auto run = rig.run();
  // Issue after 64 cycles, streaming behind the tile.
  EXPECT_EQ(run.events[whole].start - run.events[tile].start, cycles(64, 2.8));
  EXPECT_TRUE(same(run.events[whole].end - run.events[tile].end, cycles(512 + 24, 2.8)));
}

TEST(TensorStream, TheTimedWorkIsTheCountedWork) {
  Rig rig;
  stream(rig, 7, {DType::kFloat32, 512, 64});
  const auto run = rig.run();
  EXPECT_EQ(run.per_core[0].multiply_accumulates, 7 * 64 * 128 * 512);
  EXPECT_DOUBLE_EQ(run.per_core[0].hardware_flops,
                   4.0 * 2 * 7 * 64 * 128 * 512);  // fp32 counts fourfold (hw.md §2.6)
}

}  // namespace
}  // namespace trena::core_test
