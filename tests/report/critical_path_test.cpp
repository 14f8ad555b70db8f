// Expected values are worked out by hand from hand_made_run.h.
#include "trena/report/critical_path.h"

#include <gtest/gtest.h>

#include "hand_made_run.h"

namespace trena {
namespace {

Ticks total(const std::vector<PathPart>& parts) {
  Ticks sum = 0;
  for (const PathPart& part : parts) {
    sum += part.time;
  }
  return sum;
}

TEST(CriticalPath, FollowsWhatEveryEventWaitedFor) {
  const std::vector<PathPart> parts = critical_path(hand_made_run());
  ASSERT_EQ(parts.size(), 4U);
  // load 0 → 3050, product → 6250, copy → 6950, store → 8300
  EXPECT_EQ(parts[0].name, "nc_matmul");
  EXPECT_EQ(parts[0].line.line, 9);
  EXPECT_EQ(parts[0].time, ticks_from_ns(6250 - 3050));
  EXPECT_EQ(parts[1].row, "dma.load");
  EXPECT_EQ(parts[1].time, ticks_from_ns(3050));
  EXPECT_EQ(parts[2].row, "dma.store");
  EXPECT_EQ(parts[2].time, ticks_from_ns(8300 - 6950));
  EXPECT_EQ(parts[3].time, ticks_from_ns(6950 - 6250));
  EXPECT_EQ(total(parts), ticks_from_ns(8300));
}

TEST(CriticalPath, AQueueIsACauseToo) {
  trena::Run run;
  run.files = {"kernel.py"};
  run.events = {event("nc_matmul", EngineKind::kTensor, 3, 0, 100, 170),
                event("nc_matmul", EngineKind::kTensor, 3, 100, 200, 270),
                event("nc_matmul", EngineKind::kTensor, 4, 200, 300, 370)};
  const std::vector<PathPart> parts = critical_path(run);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].time, ticks_from_ns(200));
  EXPECT_EQ(parts[0].count, 2);
  EXPECT_EQ(parts[1].time, ticks_from_ns(170));
}

TEST(CriticalPath, NothingRanNothingWaited) { EXPECT_TRUE(critical_path(trena::Run()).empty()); }

}  // namespace
}  // namespace trena
