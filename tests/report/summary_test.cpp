// Expected values are worked out by hand from hand_made_run.h and published figures of Trainium2:
// 128 x 128 cells at 2.4 GHz, 716 GB/s per stack (hw.md §1.1, §1.2).
#include "trena/report/summary.h"

#include <gtest/gtest.h>

#include "hand_made_run.h"
#include "trena/report/advice.h"

namespace trena {
namespace {

Summary hand_made_summary() { return summarise(hand_made_run(), trainium2()); }

const EngineSummary& engine(const Summary& summary, EngineKind kind) {
  return summary.engines[static_cast<std::size_t>(kind)];
}

bool advises(const Run& run, std::string_view id) {
  for (const Advice& advice : summarise(run, trainium2()).advice) {
    if (advice.id == id) {
      return true;
    }
  }
  return false;
}

TEST(Summary, ActiveIsAPartOfTheWholeTime) {
  const Summary summary = hand_made_summary();
  EXPECT_DOUBLE_EQ(engine(summary, EngineKind::kTensor).active_fraction, 0.30);
  EXPECT_DOUBLE_EQ(engine(summary, EngineKind::kVector).active_fraction, 0.05);
  EXPECT_DOUBLE_EQ(engine(summary, EngineKind::kGpsimd).active_fraction, 0.0);
  EXPECT_DOUBLE_EQ(summary.dma.active_fraction, 0.25);
  EXPECT_EQ(summary.instructions, 4);
}

TEST(Summary, UtilisationOfTheTensorEngine) {
  const Summary summary = hand_made_summary();
  const double possible = 2.0 * 128 * 128 * 2.4e9 * 10e-6;
  EXPECT_DOUBLE_EQ(summary.tensor.mfu, 2.0 * 128 * 128 * 512 / possible);
  EXPECT_DOUBLE_EQ(summary.tensor.hfu, 2.0 * 128 * 128 * 640 / possible);
  EXPECT_DOUBLE_EQ(summary.tensor.adjusted_mfu, 8.0 * 128 * 128 * 512 / possible);
  EXPECT_DOUBLE_EQ(summary.tensor.adjusted_hfu, 8.0 * 128 * 128 * 640 / possible);
}

// The published profile of the blocked float32 product (4096 x 8192 x 8192, AWS
// kernel-optimization.rst): 28.30 ms, HFU 24.70 %, MBU 8.96 % with 1.816 GB moved.
TEST(Summary, DefinitionsMatchAPublishedProfile) {
  trena::Run run;
  run.time = ticks_from_ns(28.30e6);
  CoreRun core;
  core.multiply_accumulates = std::int64_t{4096} * 8192 * 8192;
  core.hbm_read_bytes = 1'680'000'000;
  core.hbm_write_bytes = 136'000'000;
  run.per_core = {core};
  const Summary summary = summarise(run, trainium2());
  EXPECT_NEAR(summary.tensor.hfu, 0.2470, 0.0001);
  EXPECT_NEAR(summary.dma.mbu, 0.0896, 0.0001);
}

TEST(Summary, TwoCoresShareOneStackAndHaveTwoPeaks) {
  trena::Run run = hand_made_run();
  run.cores = 2;
  run.per_core.push_back(run.per_core[0]);
  const Summary one = hand_made_summary();
  const Summary two = summarise(run, trainium2());
  EXPECT_DOUBLE_EQ(two.dma.mbu, 2 * one.dma.mbu);
  EXPECT_DOUBLE_EQ(two.tensor.hfu, one.tensor.hfu);
  EXPECT_DOUBLE_EQ(engine(two, EngineKind::kTensor).active_fraction, 0.30);
  EXPECT_EQ(two.dma.hbm_read_bytes, 131072);
}

TEST(Summary, MeanDescriptorAndMemoryAgainstWhatIsUsable) {
  const Summary summary = hand_made_summary();
  EXPECT_DOUBLE_EQ(summary.dma.mean_descriptor_bytes, 98304.0 / 48);
  EXPECT_EQ(summary.memory.sbuf_peak_bytes, 148 * 1024);
  EXPECT_EQ(summary.memory.psum_peak_banks, 7);
  EXPECT_EQ(summary.memory.psum_banks, 8);  // hw.md §1.4
  EXPECT_EQ(summary.memory.sbuf_usable_bytes, trainium2().core.sbuf.usable_bytes());
}

TEST(Summary, EvidenceIsWeighedByTheTimeThatRestsOnIt) {
  const Summary summary = hand_made_summary();
  // Of 6 µs of work the copy's 0.5 µs are extrapolated; transfers rest on measured packets.
  EXPECT_DOUBLE_EQ(summary.evidence.fraction(Evidence::kExtrapolated), 0.5 / 6.0);
  EXPECT_DOUBLE_EQ(summary.evidence.fraction(Evidence::kEstimate), 0.0);
  EXPECT_EQ(engine(summary, EngineKind::kTensor).evidence.worst(), Evidence::kMeasured);
  EXPECT_EQ(summary.evidence.worst(), Evidence::kExtrapolated);
  EXPECT_EQ(EvidenceShare{}.worst(), Evidence::kDocumented);
}

TEST(Summary, EvidenceOfRowsWithoutEventsIsThatOfTheirEngine) {
  trena::Run run = hand_made_run();
  run.events.clear();
  const Summary summary = summarise(run, trainium2());
  EXPECT_EQ(engine(summary, EngineKind::kVector).evidence.worst(),
            engine_evidence(trainium2(), EngineKind::kVector));
  EXPECT_DOUBLE_EQ(summary.evidence.total(), static_cast<double>(ticks_from_ns(6000)));
}

TEST(Summary, BoundNamesTheBusiestRowOrSaysWaiting) {
  trena::Run run = hand_made_run();
  const Bound waiting = summarise(run, trainium2()).bound;
  EXPECT_EQ(waiting.what, "waiting");
  EXPECT_EQ(waiting.then, "tensor engine");
  EXPECT_DOUBLE_EQ(waiting.fraction, 0.30);

  run.per_core[0].engines[static_cast<std::size_t>(EngineKind::kTensor)].active =
      ticks_from_ns(7100);
  const Bound tensor = summarise(run, trainium2()).bound;
  EXPECT_EQ(tensor.what, "tensor engine");
  EXPECT_DOUBLE_EQ(tensor.fraction, 0.71);
  EXPECT_EQ(tensor.row, "tensor");
  EXPECT_EQ(tensor.then, "DMA");
}

// 300 of the 358 GB/s of a core while transfers run: what they wait for is the stack.
TEST(Summary, FullBandwidthIsTheBoundRatherThanTheQueues) {
  trena::Run run = hand_made_run();
  run.per_core[0].dma_active = ticks_from_ns(8000);
  run.per_core[0].hbm_read_bytes = 8000 * 300;
  EXPECT_EQ(summarise(run, trainium2()).bound.what, "HBM bandwidth");
  run.per_core[0].hbm_read_bytes = 8000 * 100;
  EXPECT_EQ(summarise(run, trainium2()).bound.what, "DMA");
}

TEST(Stalls, AreSummedByPairOfLinesAndSortedByTime) {
  trena::Run run = hand_made_run();
  run.events.push_back(
      waiting(event("nc_matmul", EngineKind::kTensor, 9, 8000, 8100, 8200), 0, 5000));
  const std::vector<Stall> stalls = aggregate_stalls(run);
  ASSERT_EQ(stalls.size(), 3u);
  EXPECT_EQ(stalls[0].line.line, 9);
  EXPECT_EQ(stalls[0].count, 2);
  EXPECT_EQ(stalls[0].time, ticks_from_ns(8050));
  EXPECT_EQ(stalls[0].cause_line.line, 7);
  EXPECT_EQ(stalls[0].row, "tensor");
  EXPECT_EQ(stalls[0].cause_row, "dma.load");
  EXPECT_EQ(stalls[1].line.line, 11);
  EXPECT_EQ(stalls[1].row, "dma.store");
  EXPECT_EQ(stalls[1].cause_name, "tensor_copy");
  EXPECT_EQ(stalls[2].line.line, 10);
}

TEST(Stalls, WaitingForOnesOwnQueueIsNone) {
  trena::Run run = hand_made_run();
  run.events[1].cause = kNoCause;
  EXPECT_EQ(aggregate_stalls(run).size(), 2u);
}

TEST(Advice, NothingWithoutAReason) { EXPECT_TRUE(hand_made_summary().advice.empty()); }

TEST(Advice, LaunchBound) {
  trena::Run run = hand_made_run();
  run.launch_time = 6 * kTicksPerUs;
  EXPECT_TRUE(advises(run, "launch-bound"));
}

TEST(Advice, Spilled) {
  trena::Run run = hand_made_run();
  run.per_core[0].spilled_bytes = 4096;
  EXPECT_TRUE(advises(run, "spilled"));
}

// 8.4 ns per packet at 27.4 B/ns (DMA-001…012): half of the time is overhead at 230 bytes.
TEST(Advice, TinyDescriptorsOnlyWhenDmaBinds) {
  trena::Run run = hand_made_run();
  run.per_core[0].descriptors = 98304 / 64;
  EXPECT_FALSE(advises(run, "tiny-descriptors"));
  run.per_core[0].dma_active = ticks_from_ns(8000);
  EXPECT_TRUE(advises(run, "tiny-descriptors"));
  run.per_core[0].descriptors = 98304 / 1024;
  EXPECT_FALSE(advises(run, "tiny-descriptors"));
}

TEST(Advice, TableThrash) {
  trena::Run run = hand_made_run();
  run.per_core[0].table_loads = 11;
  run.per_core[0].table_load_time = ticks_from_ns(11 * 1283.0);
  EXPECT_TRUE(advises(run, "table-thrash"));
  run.per_core[0].table_loads = 2;
  EXPECT_FALSE(advises(run, "table-thrash"));
}

TEST(Advice, Fp32Products) {
  trena::Run run = hand_made_run();
  run.per_core[0].engines[static_cast<std::size_t>(EngineKind::kTensor)].active =
      ticks_from_ns(9000);
  EXPECT_TRUE(advises(run, "fp32-products"));
  run.per_core[0].hardware_flops = 2.0 * 128 * 128 * 640;
  EXPECT_FALSE(advises(run, "fp32-products"));
}

}  // namespace
}  // namespace trena
