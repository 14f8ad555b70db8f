// Probes of the DMA queues, their engines and HBM (hw.md §1.7, §2.5, §2.7). Expected values are
// literals with their source.
#include <array>

#include "core_rig.h"
#include "trena/isa/dma/dma_copy.h"
#include "trena/memory/views.h"

namespace trena::core_test {
namespace {

using enum EngineKind;

// Packets of Trn2: 8.4 ns + bytes / 27.4 B/ns on their engine (DMA-001…005, DMA-010, DMA-012).
constexpr double packet_ns(double bytes) { return 8.4 + bytes / 27.4; }
// Back to back an engine moves no more than 23 B/ns (DOC-009, AWS nki-dma-bandwidth-guide.rst).
constexpr double streamed_ns(double bytes) { return bytes / 23; }

// Descriptors written before the run: 70 ns to issue, 763 to the first packet, 293 to the consumer
// (hw.md §2.5).
constexpr double kPreparedDispatch = 763;
constexpr double kPreparedNotify = 293;
// Isolated transfers on Trn2: base of the payload (hw.md §2.5).
constexpr double kLoadBase = 293;
constexpr double kStoreBase = 162;

struct Direction {
  bool store;
  double issue_ns;
  double dispatch_ns;
  double base_ns;
  double notify_ns;
};
// Software descriptors on Trn2 (published probes, hw.md §2.5).
constexpr Direction kLoad{false, 599, 751, 293, 314};
constexpr Direction kStore{true, 609, 565, 162, 355};

void copy(Rig& rig, const Direction& direction, std::int64_t columns, DmaRequest request = {}) {
  const Tensor far = rig.hbm({128, columns});
  const Tensor near = rig.sbuf({128, columns});
  rig.add<DmaCopy>(direction.store ? far : near, direction.store ? near : far, request);
}

TEST(DmaPhases, SoftwareDescriptors) {
  for (const Direction& direction : {kLoad, kStore}) {
    Rig rig;
    for (int i = 0; i < 3; ++i) {
      copy(rig, direction, 64);
    }
    const auto run = rig.run();
    for (std::size_t i = 0; i < 3; ++i) {
      const RunEvent& event = run.events[i];
      EXPECT_EQ(event.issue, static_cast<Ticks>(i) * ns(direction.issue_ns));
      EXPECT_EQ(event.start - event.issue, ns(direction.dispatch_ns));
      // 8 rows of 256 bytes on each of 16 engines.
      EXPECT_NEAR(ns_from_ticks(event.busy_until - event.start),
                  8 * packet_ns(256) + direction.base_ns, 1e-5);
      EXPECT_EQ(event.end - event.busy_until, ns(direction.notify_ns));
    }
  }
}

// Totals of isolated transfers (published probes of Trn2, hw.md §2.5); the packet law is for
// streams and is up to a sixth short for single large ones.
TEST(DmaPhases, IsolatedTotals) {
  struct Row {
    Direction direction;
    std::int64_t kib;
    double measured_us;
    double tolerance;
  };
  for (const Row& row :
       {Row{kLoad, 32, 1.47, 0.03}, Row{kLoad, 64, 1.59, 0.03}, Row{kLoad, 256, 2.29, 0.13},
        Row{kStore, 32, 1.17, 0.05}, Row{kStore, 64, 1.25, 0.05}, Row{kStore, 256, 1.77, 0.05}}) {
    Rig rig;
    copy(rig, row.direction, row.kib * 1024 / 128 / 4);
    const auto run = rig.run();
    EXPECT_NEAR(us_from_ticks(run.events[0].end), row.measured_us, row.tolerance * row.measured_us)
        << row.kib;
  }
}

TEST(DmaPhases, HardwareAndPreparedDescriptors) {
  struct Row {
    DmaRequest request;
    double issue_ns;
    double dispatch_ns;
    double notify_ns;
  };
  // hwdge: 518 to 559 ns per trigger of 128 rows (INST-022, -029, -030, -031); prepared: WRITE of
  // 70 ns (INST-096), 763 ns to the engine.
  for (const Row& row : {Row{{.engine = kSync}, 533, 763, 314},
                         Row{{.mode = DgeMode::kNone, .engine = kSync}, 70, 763, 293}}) {
    Rig rig;
    copy(rig, kLoad, 64, row.request);
    copy(rig, kLoad, 64, row.request);
    const auto run = rig.run();
    EXPECT_EQ(run.events[1].issue, ns(row.issue_ns));
    EXPECT_EQ(run.events[0].start, ns(row.dispatch_ns));
    EXPECT_EQ(run.events[0].end - run.events[0].busy_until, ns(row.notify_ns));
  }
}

TEST(DmaPhases, DataIsReadyAtTheNotification) {
  // 128 descriptors of 272 bytes, 8 per engine: 8 packets.
  Pair pair;
  pair.before = [](Rig& rig) {
    rig.probe(kSync, prepared_dma({128, 272}, 16),
              {reads(rig.hbm({128, 68})), writes(rig.sbuf({128, 68}))});
  };
  pair.subject = [](Rig& rig) {
    AccessList list;
    rig.program().instructions(0)[0]->access(list);
    return rig.probe(kVector, engine_cost(1, 1), {reads(*(list.end() - 1)->tensor)});
  };
  EXPECT_READY_AT(
      pair, ns(kPreparedDispatch) + ns(8 * packet_ns(272)) + ns(kLoadBase) + ns(kPreparedNotify));
}

TEST(DmaPhases, ADmaThatNeedsADmaIsTriggeredAtTheNotification) {
  Rig rig;
  const Tensor tile = rig.sbuf({128, 68});
  const std::uint32_t load =
      rig.probe(kSync, prepared_dma({128, 272}, 16), {reads(rig.hbm({128, 68})), writes(tile)});
  const std::uint32_t store = rig.probe(kScalar, prepared_dma({128, 272}, 16, true),
                                        {reads(tile), writes(rig.hbm({128, 68}))});
  const auto run = rig.run();
  EXPECT_EQ(run.events[store].issue, run.events[load].end);
  EXPECT_EQ(run.events[load].end, ns(763) + ns(8 * packet_ns(272)) + ns(293) + ns(293));
}

TEST(DmaPackets, EachDescriptorCostsItsOverhead) {
  struct Row {
    Rows rows;
    int engines;
    double payload_ns;
  };
  for (const Row& row :
       {Row{{1, 4}, 1, packet_ns(4)}, Row{{128, 64}, 16, 8 * packet_ns(64)},
        Row{{8, 2720}, 1, 8 * streamed_ns(2720)}, Row{{17, 64}, 16, 2 * packet_ns(64)},
        Row{{1024, 4}, 16, 64 * packet_ns(4)}}) {
    Rig rig;
    rig.probe(kSync, prepared_dma(row.rows, row.engines));
    const RunEvent event = rig.run().events[0];
    EXPECT_NEAR(ns_from_ticks(event.busy_until - event.start), row.payload_ns + kLoadBase, 1e-5);
  }
}

TEST(DmaPackets, LongDescriptorsAreCutIntoPacketsOf4KiB) {
  // AWS compute-comm-overlap.rst. One row of 16 KiB per engine, far below the bandwidth cap: 4
  // packets.
  Rig rig;
  const Tensor far = rig.hbm({8, 4096});
  rig.add<DmaCopy>(rig.sbuf({8, 4096}), far, DmaRequest{});
  const RunEvent event = rig.run().events[0];
  EXPECT_NEAR(ns_from_ticks(event.busy_until - event.start), 8 * 4 * streamed_ns(4096) + kLoadBase,
              1e-4);
}

TEST(DmaPackets, OneEngineAtItsBest) {
  // AWS nki-dma-bandwidth-guide.rst (DOC-008...010); DOC-002: 32 KiB on one engine take 1,416 ns on
  // Trn2.
  for (const auto& [machine, rate] :
       {std::pair{"trn1", 17.0}, std::pair{"trn2", 23.0}, std::pair{"trn3", 33.0}}) {
    Rig rig(machine);
    rig.probe(kSync, prepared_dma({8, 4096}, 1));
    const RunEvent event = rig.run().events[0];
    const double payload_ns = ns_from_ticks(event.busy_until - event.start) - kLoadBase;
    EXPECT_NEAR(8 * 4096 / payload_ns, rate, 1e-3) << machine;
  }
  EXPECT_NEAR(8 * streamed_ns(4096), 1416, 0.01 * 1416);
}

TEST(DmaPhases, WhatAProfilerShowsOfATransfer) {
  // INST-002 and INST-004: triggers on GpSimd, which makes the descriptors afterwards; INST-021:
  // 256 rows with hardware descriptors.
  struct Row {
    Direction direction;
    DmaRequest request;
    double trigger_ns;
  };
  for (const Row& row :
       {Row{kLoad, {}, 50}, Row{kStore, {}, 37}, Row{kLoad, {.engine = kSync}, 533}}) {
    Rig rig;
    copy(rig, row.direction, 64, row.request);
    const RunEvent event = rig.run().events[0];
    EXPECT_EQ(event.trigger, ns(row.trigger_ns));
    EXPECT_EQ(event.packet_count, 128);
    EXPECT_NEAR(ns_from_ticks(event.packets), 128 * packet_ns(256), 1e-3);
  }
  Rig rig;
  const Tensor far = rig.hbm({2, 128, 512});
  constexpr std::array kPartitionsFirst{1, 0, 2};
  rig.add<DmaCopy>(rig.sbuf({128, 2, 512}), views::permute(far, kPartitionsFirst),
                   DmaRequest{.engine = kScalar});
  EXPECT_NEAR(ns_from_ticks(rig.run().events[0].trigger), 572, 0.01 * 572);
}

TEST(DmaQueues, FourTransfersAreInFlight) {
  // At least four fit the published kernels, three do not (hw.md §2.7).
  Rig rig;
  for (int i = 0; i < 9; ++i) {
    rig.probe(kSync, prepared_dma({8, 2720}, 1));
  }
  const auto run = rig.run();
  EXPECT_EQ(run.events[3].issue, ns(3 * 70));
  for (std::size_t i = 4; i < 9; ++i) {
    EXPECT_EQ(run.events[i].issue, run.events[i - 4].end) << i;
  }
}

TEST(DmaQueues, AQueueIsFirstInFirstOut) {
  Rig rig;
  rig.probe(kSync, prepared_dma({128, 272}, 16));
  rig.probe(kSync, prepared_dma({128, 272}, 16));
  const auto run = rig.run();
  // The second head starts when the first one's last packet has left; bases overlap.
  const double work = 8 * packet_ns(272);
  EXPECT_NEAR(ns_from_ticks(run.events[1].start), 763 + work, 1e-5);
  EXPECT_NEAR(ns_from_ticks(run.events[1].busy_until), 763 + 2 * work + kLoadBase, 1e-5);
}

TEST(DmaQueues, TwoQueuesShareTheEngines) {
  // Round robin at packet ends (AWS nki-dma-overview.rst): each gets half until the shorter one is
  // done.
  const auto payload_ends = [](std::int64_t first, std::int64_t second) {
    Rig rig;
    rig.probe(kSync, prepared_dma({16 * first, 272}, 16));
    rig.probe(kScalar, prepared_dma({16 * second, 272}, 16));
    const auto run = rig.run();
    EXPECT_EQ(run.events[0].start, ns(763));
    EXPECT_EQ(run.events[1].start, ns(763));
    return std::pair(ns_from_ticks(run.events[0].busy_until) - 763 - kLoadBase,
                     ns_from_ticks(run.events[1].busy_until) - 763 - kLoadBase);
  };
  const auto [a, b] = payload_ends(4, 4);
  EXPECT_NEAR(a, 8 * packet_ns(272), 1e-4);
  EXPECT_NEAR(b, 8 * packet_ns(272), 1e-4);
  const auto [shorter, longer] = payload_ends(1, 3);
  EXPECT_NEAR(shorter, 2 * packet_ns(272), 1e-4);
  EXPECT_NEAR(longer, 4 * packet_ns(272), 1e-4);
}

TEST(DmaQueues, StoresHaveTheirOwnQueueAndOnesTheKernelNamedToo) {
  Rig rig;
  copy(rig, kLoad, 64);
  copy(rig, kStore, 64);
  copy(rig, kLoad, 64, {.mode = DgeMode::kNone, .engine = kSync});
  copy(rig, kLoad, 64, {.mode = DgeMode::kNone, .engine = kScalar});
  const auto run = rig.run();
  std::vector<std::string> names;
  for (const RunEvent& event : run.events) {
    EXPECT_EQ(event.issue, 0);
    names.push_back(queue_name(event.queue));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"dma.load", "dma.store", "dma.sync", "dma.scalar"}));
}

// Four service classes on v4, 0 first (AWS trainium3_arch.rst; nki.isa: priority). Packets of
// Trn3: 8.4 ns + bytes / 38.4 B/ns.
TEST(DmaQueues, ServiceClassesGoFirst) {
  const auto ends = [](int first, int second) {
    Rig rig("trn3");
    Cost one = prepared_dma({16, 384}, 16);
    Cost other = one;
    one.dma.priority = first;
    other.dma.priority = second;
    rig.probe(kSync, one);
    rig.probe(kScalar, other);
    const auto run = rig.run();
    const auto payload = [&](std::size_t id) {
      return ns_from_ticks(run.events[id].busy_until) - 763 - kLoadBase;
    };
    return std::pair(payload(0), payload(1));
  };
  const double alone = 8.4 + 10;
  const auto near = [&](std::pair<double, double> seen, double a, double b) {
    EXPECT_NEAR(seen.first, a, 1e-4);
    EXPECT_NEAR(seen.second, b, 1e-4);
  };
  near(ends(0, 1), alone, 2 * alone);
  near(ends(3, 1), 2 * alone, alone);
  near(ends(2, 2), 2 * alone, 2 * alone);
  near(ends(-1, 2), 2 * alone, alone);  // nothing asked: the last class
  near(ends(-1, 3), 2 * alone, 2 * alone);
}

TEST(HbmBandwidth, ACoreDraws368BytesPerNs) {
  // 16 engines of 23 B/ns (AWS nki-dma-bandwidth-guide.rst); packets of 157.9 ns alone would make
  // 415.
  Rig rig;
  rig.probe(kSync, prepared_dma({128, 4096}, 16));
  const RunEvent event = rig.run().events[0];
  EXPECT_NEAR(ns_from_ticks(event.busy_until - event.start) - kLoadBase, 128 * 4096 / 368.0, 1e-4);
}

TEST(HbmBandwidth, QueuesOfOneCoreShareTheCap) {
  Rig rig;
  rig.probe(kSync, prepared_dma({128, 4096}, 16));
  rig.probe(kScalar, prepared_dma({128, 4096}, 16, true));
  const auto run = rig.run();
  EXPECT_NEAR(ns_from_ticks(run.events[0].busy_until) - 763 - kLoadBase, 2 * 128 * 4096 / 368.0,
              1e-4);
  EXPECT_NEAR(ns_from_ticks(run.events[1].busy_until) - 763 - kStoreBase, 2 * 128 * 4096 / 368.0,
              1e-4);
}

TEST(HbmBandwidth, TwoCoresShareTheirStack) {
  Machine narrow = machine_named("trn2");
  narrow.hbm.stack_gbs = 400;
  for (const auto& [machine, each] :
       {std::pair{machine_named("trn2"), 358.0}, std::pair{narrow, 200.0}}) {
    Rig rig(machine, 2);
    for (int core = 0; core < 2; ++core) {
      rig.append(core, std::make_unique<Probe>(kSync, prepared_dma({128, 4096}, 16)));
    }
    const auto run = rig.run();
    for (const RunEvent& event : run.events) {
      EXPECT_NEAR(ns_from_ticks(event.busy_until - event.start) - kLoadBase, 128 * 4096 / each,
                  1e-4);
    }
  }
}

TEST(HbmBandwidth, ACoreAloneIsNotHeldBackByItsIdleNeighbour) {
  Machine narrow = machine_named("trn2");
  narrow.hbm.stack_gbs = 400;
  Rig rig(narrow, 2);
  rig.append(0, std::make_unique<Probe>(kSync, prepared_dma({128, 4096}, 16)));
  const RunEvent event = rig.run().events[0];
  EXPECT_NEAR(ns_from_ticks(event.busy_until - event.start) - kLoadBase, 128 * 4096 / 368.0, 1e-4);
}

TEST(HbmBandwidth, CoresOnDifferentStacksDoNotMeet) {
  Machine narrow = machine_named("trn2");
  narrow.hbm.stack_gbs = 400;
  narrow.hbm.cores_per_stack = 1;
  Rig rig(narrow, 2);
  for (const int core : {0, 1}) {
    rig.append(core, std::make_unique<Probe>(kSync, prepared_dma({128, 4096}, 16)));
  }
  for (const RunEvent& event : rig.run().events) {
    EXPECT_NEAR(ns_from_ticks(event.busy_until - event.start) - kLoadBase, 128 * 4096 / 368.0,
                1e-4);
  }
}

TEST(DmaCounters, BytesDescriptorsAndActivity) {
  Rig rig;
  copy(rig, kLoad, 64);
  copy(rig, kStore, 32);
  const auto run = rig.run();
  const CoreRun& core = run.per_core[0];
  EXPECT_EQ(core.hbm_read_bytes, 128 * 64 * 4);
  EXPECT_EQ(core.hbm_write_bytes, 128 * 32 * 4);
  EXPECT_EQ(core.spilled_bytes, 0);
  EXPECT_EQ(core.dma_transfers, 2);
  EXPECT_EQ(core.descriptors, 256);
  // Union of [first packet, payload end]: the store is over before the load is.
  const Ticks first = std::min(run.events[0].start, run.events[1].start);
  const Ticks last = std::max(run.events[0].busy_until, run.events[1].busy_until);
  EXPECT_EQ(core.dma_active, last - first);
}

// Two cores.
TEST(Rendezvous, EverybodyStartsWhenTheLastArrives) {
  for (const Ticks late : {ns(5000), ns(5000) + 1}) {
    Rig rig("trn2", 2);
    const Tensor operand = rig.sbuf({128, 1}, DType::kFloat32, 1);
    rig.meet(0, kGpsimd, 7, engine_cost(ns(2000), ns(2000)));
    rig.append(0, std::make_unique<Probe>(kGpsimd, engine_cost(ns(10), ns(10))));
    rig.append(1, std::make_unique<Probe>(kVector, engine_cost(ns(10), late),
                                          std::vector<Touch>{writes(operand)}));
    rig.meet(1, kGpsimd, 7, engine_cost(ns(2000), ns(2000)), {reads(operand)});
    const auto run = rig.run({.schedule = SchedulePolicy::kProgram});
    const Ticks met = late + ns(100);  // an engine's gap
    EXPECT_EQ(run.events[0].start, met);
    EXPECT_EQ(run.events[3].start, met);
    EXPECT_EQ(run.events[1].start, met + ns(2000));  // the queue behind the one that waited
  }
}

TEST(Rendezvous, OrderIsKeptWhenALaterOneIsReadyFirst) {
  // Core 0 reaches meeting 1 late and meeting 2 early; taking 2 first would leave both waiting for
  // ever.
  for (const SchedulePolicy schedule : {SchedulePolicy::kList, SchedulePolicy::kProgram}) {
    Rig rig("trn2", 2);
    const Tensor operand = rig.sbuf({128, 1});
    rig.probe(kVector, engine_cost(ns(10), ns(3000)), {writes(operand)});
    rig.meet(0, kGpsimd, 1, engine_cost(ns(10), ns(20)), {reads(operand)});
    rig.meet(0, kGpsimd, 2, engine_cost(ns(10), ns(20)));
    rig.meet(1, kGpsimd, 1, engine_cost(ns(10), ns(20)));
    rig.meet(1, kGpsimd, 2, engine_cost(ns(10), ns(20)));
    const auto run = rig.run({.schedule = schedule});
    EXPECT_EQ(run.events[1].start, ns(3100));
    EXPECT_EQ(run.events[3].start, ns(3100));
    EXPECT_EQ(run.events[2].start, ns(3110));
    EXPECT_EQ(run.events[4].start, ns(3110));
  }
}

TEST(Rendezvous, CrossedMeetingsAreADeadlockWithBothLines) {
  Rig rig("trn2", 2);
  rig.meet(0, kGpsimd, 1, engine_cost(1, 1));
  rig.meet(0, kGpsimd, 2, engine_cost(1, 1));
  rig.meet(1, kGpsimd, 2, engine_cost(1, 1));
  rig.meet(1, kGpsimd, 1, engine_cost(1, 1));
  try {
    rig.run();
    FAIL() << "no deadlock was found";
  } catch (const Error& error) {
    EXPECT_EQ(error.id(), "deadlock");
    EXPECT_EQ(error.text().here,
              "core 0 waits at kernel.py:1 (probe); core 1 waits at kernel.py:1 (probe)");
  }
}

TEST(Rendezvous, WaitingIsAStallOfTheEarlyCore) {
  Rig rig("trn2", 2);
  rig.meet(0, kGpsimd, 7, engine_cost(ns(10), ns(10)));
  const Tensor operand = rig.sbuf({128, 1}, DType::kFloat32, 1);
  rig.append(1, std::make_unique<Probe>(kVector, engine_cost(ns(10), ns(900)),
                                        std::vector<Touch>{writes(operand)}));
  rig.meet(1, kGpsimd, 7, engine_cost(ns(10), ns(10)), {reads(operand)});
  const auto run = rig.run();
  EXPECT_EQ(run.events[0].stall, ns(1000));
  EXPECT_EQ(run.events[0].cause, 2);
}

}  // namespace
}  // namespace trena::core_test
