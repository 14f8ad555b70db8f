// What every timed stream must satisfy, whatever the program: order, exclusive engines, and no time
// lost between an instruction's being ready, its engine's being free, and its start.
#include "trena/core/timeline/timeline.h"

#include "random_kernel.h"

namespace trena::core_test {
namespace {

constexpr int kDmaQueue = kEngineCount;   // queues from here on are DMA triggers
constexpr std::size_t kMostInFlight = 4;  // hw.md §2.7

// Published probes of Trn2 and AWS nki_perf_guide.rst (hw.md §2.5).
Ticks gap(const RunEvent& from, const RunEvent& to) {
  if (from.dma) {
    return 0;
  }
  return to.dma ? ns(893) : from.queue == to.queue ? ns(30) : ns(100);
}

struct Timed {
  Stream stream;
  Run run;
  std::vector<std::vector<std::uint32_t>> queues;  // items in order of issue

  Ticks ready(std::uint32_t item) const {
    Ticks time = 0;
    for (const Wait wait : stream.waits.of(item)) {
      const RunEvent& earlier = run.events[wait.item()];
      // A transfer counts as started once its first packet has moved; nothing waits for the start
      // of one here.
      time = std::max(
          time, wait.for_start() ? earlier.start : earlier.end + gap(earlier, run.events[item]));
    }
    return time;
  }
};

Timed timed(Kernel& kernel, SchedulePolicy schedule) {
  Timed timed{kernel.place(), {}, {}};
  timed.run.per_core.resize(1);
  timed.run.options.schedule = schedule;
  simulate(kernel.program(), kernel.program().machine(), {&timed.stream, 1}, timed.run);
  timed.queues.resize(kQueuesPerCore);
  for (std::uint32_t item = 0; item < timed.run.events.size(); ++item) {
    timed.queues[static_cast<std::size_t>(timed.run.events[item].queue)].push_back(item);
  }
  for (std::vector<std::uint32_t>& queue : timed.queues) {
    std::stable_sort(queue.begin(), queue.end(), [&](std::uint32_t a, std::uint32_t b) {
      return timed.run.events[a].issue < timed.run.events[b].issue;
    });
  }
  return timed;
}

void check_engine(const Timed& timed, const std::vector<std::uint32_t>& queue, bool in_order) {
  Ticks free_at = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const RunEvent& event = timed.run.events[queue[i]];
    ASSERT_GE(event.issue, free_at);
    ASSERT_EQ(event.issue, std::max(free_at, timed.ready(queue[i]))) << "item " << queue[i];
    ASSERT_GE(event.busy_until, event.start);
    if (in_order) {
      ASSERT_TRUE(i == 0 || queue[i - 1] < queue[i]);
    }
    // Of what was ready the earliest in the program was taken.
    for (std::size_t later = i + 1; later < queue.size(); ++later) {
      ASSERT_TRUE(queue[later] > queue[i] || timed.ready(queue[later]) > event.issue)
          << "item " << queue[later] << " was ready when " << queue[i] << " started";
    }
    free_at = event.busy_until;
  }
}

void check_dma(const Timed& timed, const std::vector<std::uint32_t>& queue) {
  Ticks free_at = 0;
  std::vector<Ticks> ends;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const RunEvent& event = timed.run.events[queue[i]];
    ASSERT_TRUE(i == 0 || queue[i - 1] < queue[i]);
    Ticks slot = 0;
    if (ends.size() >= kMostInFlight) {
      std::vector<Ticks> latest = ends;
      std::sort(latest.rbegin(), latest.rend());
      slot = latest[kMostInFlight - 1];
    }
    ASSERT_EQ(event.issue, std::max({free_at, timed.ready(queue[i]), slot})) << "item " << queue[i];
    ASSERT_GT(event.start, event.issue);
    ASSERT_GT(event.busy_until, event.start);
    ASSERT_GT(event.end, event.busy_until);
    if (i > 0) {
      ASSERT_GE(event.start, timed.run.events[queue[i - 1]].start);
    }
    free_at = event.issue +
              timed.stream.items[queue[i]].instruction->cost(machine_named("trn2")).interval;
    ends.push_back(event.end);
  }
}

class TimelineProperty : public testing::TestWithParam<SchedulePolicy> {};
INSTANTIATE_TEST_SUITE_P(Schedules, TimelineProperty,
                         testing::Values(SchedulePolicy::kList, SchedulePolicy::kProgram),
                         [](const auto& info) {
                           return info.param == SchedulePolicy::kList ? "List" : "Program";
                         });

TEST_P(TimelineProperty, NoTimeIsLostAndNothingOverlaps) {
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    Kernel kernel(small_machine(seed % 2 == 0 ? 256 : 16 * 1024));
    fill_randomly(kernel, seed);
    const Timed result = timed(kernel, GetParam());
    for (int queue = 0; queue < kQueuesPerCore; ++queue) {
      const std::vector<std::uint32_t>& items = result.queues[static_cast<std::size_t>(queue)];
      if (queue < kDmaQueue) {
        check_engine(result, items, GetParam() == SchedulePolicy::kProgram);
      } else {
        check_dma(result, items);
      }
      if (testing::Test::HasFatalFailure()) {
        return;
      }
    }
  }
}

TEST_P(TimelineProperty, StallsAndActivityAddUp) {
  for (std::uint32_t seed = 0; seed < 10; ++seed) {
    Kernel kernel(small_machine(256));
    fill_randomly(kernel, seed);
    const Timed result = timed(kernel, GetParam());
    for (std::size_t engine = 0; engine < static_cast<std::size_t>(kEngineCount); ++engine) {
      Ticks active = 0;
      Ticks reached = 0;
      Ticks free_at = 0;
      for (const std::uint32_t item : result.queues[engine]) {
        const RunEvent& event = result.run.events[item];
        const Ticks until = std::max(event.end, event.busy_until);
        active += std::max<Ticks>(0, until - std::max(event.start, reached));
        reached = std::max(reached, until);
        EXPECT_EQ(event.stall, event.cause == kNoCause ? 0 : event.issue - free_at);
        if (event.stall > 0) {
          const RunEvent& cause = result.run.events[static_cast<std::size_t>(event.cause)];
          EXPECT_EQ(cause.end + gap(cause, event), event.issue);
        }
        free_at = event.busy_until;
      }
      EXPECT_EQ(result.run.per_core[0].engines[engine].active, active);
    }
  }
}

// Two cores that meet again and again, on any engine, with other work in between and operands that
// come late: whatever order the engines take things in, everybody arrives, and at once.
TEST_P(TimelineProperty, CoresThatMeetInOneOrderNeverWaitForEver) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Rig rig("trn2", 2);
    constexpr EngineKind kEngines[] = {EngineKind::kVector, EngineKind::kScalar,
                                       EngineKind::kGpsimd};
    constexpr std::int64_t kMeetings = 12;
    std::map<std::int64_t, std::vector<std::pair<int, std::uint32_t>>> meetings;
    for (int core = 0; core < 2; ++core) {
      std::vector<Tensor> tensors;
      for (int i = 0; i < 4; ++i) {
        tensors.push_back(rig.sbuf({2, 8}, DType::kUint8, core));
      }
      const auto any = [&] { return tensors[static_cast<std::size_t>(random(0, 3))]; };
      for (std::int64_t meeting = 0; meeting < kMeetings; ++meeting) {
        for (std::int64_t count = random(0, 4); count > 0; --count) {
          rig.append(core, std::make_unique<Probe>(
                               kEngines[random(0, 2)],
                               engine_cost(ns(50), ns(static_cast<double>(random(100, 5000)))),
                               std::vector<Touch>{reads(any()), writes(any())}));
        }
        const std::uint32_t index = rig.meet(core, kEngines[random(0, 2)], meeting,
                                             engine_cost(ns(20), ns(30)), {reads(any())});
        meetings[meeting].emplace_back(core, index);
      }
    }
    const auto run = rig.run({.schedule = GetParam()});
    const std::size_t past = rig.program().instructions(0).size();
    Ticks before = 0;
    for (const auto& [meeting, arrivals] : meetings) {
      const Ticks first = run.events[arrivals[0].second].start;
      EXPECT_EQ(run.events[past + arrivals[1].second].start, first) << "meeting " << meeting;
      EXPECT_GE(first, before);
      before = first;
    }
  }
}

TEST(Timeline, MoreBandwidthAndFasterClocksNeverHurtAChain) {
  // A chain has no choices: every faster part makes it at most as long.
  const auto time = [](const Machine& machine) {
    Kernel kernel(machine);
    const Tensor a = kernel.load(400);
    const Tensor b = kernel.compute({a}, 400);
    kernel.store(kernel.compute({b}, 400));
    return run_program(kernel.program(), {}).time;
  };
  const Machine base = machine_named("trn2");
  Machine faster = base;
  faster.core.dma.packet_bytes_per_ns *= 2;
  EXPECT_LT(time(faster), time(base));
  faster = base;
  faster.core.dma.load.dispatch_ns -= 1;
  EXPECT_EQ(time(base) - time(faster), ns(1));
  faster = base;
  faster.core.sync.dma_issue_ns -= 1;
  EXPECT_EQ(time(base) - time(faster), ns(1));
}

}  // namespace
}  // namespace trena::core_test
