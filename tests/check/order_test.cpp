// The order relation as chains of waits.
#include "trena/check/order.h"

#include <gtest/gtest.h>

#include "../core/core_rig.h"

namespace trena::core_test {
namespace {

// Items 0 … 5; 1 and 4 are meetings. Waits: 1 ← 0, 3 ← 1, 3 ← 2, 4 ← 3, 5 ← 2.
struct Made {
  std::vector<std::unique_ptr<Probe>> probes;
  Stream stream;

  Made() {
    const std::vector<std::vector<std::uint32_t>> waits = {{}, {0}, {}, {1, 2}, {3}, {2}};
    for (std::size_t i = 0; i < waits.size(); ++i) {
      probes.push_back(std::make_unique<Probe>(EngineKind::kVector, engine_cost(1, 1)));
      stream.items.push_back({probes.back().get(), Insertion::kRecorded, EngineKind::kVector});
      for (const std::uint32_t earlier : waits[i]) {
        stream.waits.add(Wait::after_end(earlier));
      }
      stream.waits.close();
    }
    probes[1]->meeting = 70;
    probes[4]->meeting = 71;
  }
};

TEST(Order, FollowsChainsOfWaits) {
  Made made;
  Order order(made.stream);
  const auto keeps = [&](int earlier, int later) {
    return order.keeps(*made.probes[static_cast<std::size_t>(earlier)],
                       *made.probes[static_cast<std::size_t>(later)]);
  };
  EXPECT_TRUE(keeps(0, 1));
  EXPECT_TRUE(keeps(0, 4)) << "through 1 and 3";
  EXPECT_TRUE(keeps(2, 5));
  EXPECT_FALSE(keeps(0, 2));
  EXPECT_FALSE(keeps(1, 5)) << "the order of the program is none";
  EXPECT_FALSE(keeps(4, 3));
  EXPECT_TRUE(keeps(3, 3));
}

TEST(Order, TakingOverAnAddressKeepsNobodyElseInOrder) {
  Made made;
  made.stream.items.push_back({made.probes[0].get(), Insertion::kReload, EngineKind::kVector});
  auto last = std::make_unique<Probe>(EngineKind::kVector, engine_cost(1, 1));
  made.stream.items.push_back({last.get(), Insertion::kRecorded, EngineKind::kVector});
  made.stream.waits.close();
  made.stream.waits.add(Wait::after_end(0).for_address());
  made.stream.waits.add(Wait::after_start(2));
  made.stream.waits.close();
  Order order(made.stream);
  EXPECT_FALSE(order.keeps(*made.probes[0], *last));
  EXPECT_TRUE(order.keeps(*made.probes[2], *last));
}

TEST(Order, KnowsTheMeetingsAround) {
  Made made;
  Order order(made.stream);
  const auto after = [&](std::size_t i) { return order.first_meeting_after(*made.probes[i]); };
  const auto before = [&](std::size_t i) { return order.last_meeting_before(*made.probes[i]); };
  EXPECT_EQ(order.meetings(), (std::vector<std::int64_t>{70, 71}));
  EXPECT_EQ(after(0), 0);
  EXPECT_EQ(before(0), -1);
  EXPECT_EQ(after(2), 1);
  EXPECT_EQ(before(3), 0);
  EXPECT_EQ(after(3), 1);
  EXPECT_EQ(before(5), -1) << "it waits for no meeting";
  EXPECT_EQ(after(5), Order::kNever);
}

}  // namespace
}  // namespace trena::core_test
