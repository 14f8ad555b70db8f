#include "trena/core/placement/idle_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "core_rig.h"

namespace trena::core_test {
namespace {

struct Known {
  Ranges::Range range;
  Idleness idleness;
};

// Looks at everything that is in the window, every time.
void expect_same(const IdleWindow& window, const std::deque<Known>& known) {
  std::int64_t bytes = 0;
  double transfers = 0;
  double idle = known.front().idleness.idle;
  double last_use = known.front().idleness.last_use;
  for (const Known& each : known) {
    bytes += each.range.length;
    transfers += each.idleness.transfers;
    idle = std::min(idle, each.idleness.idle);
    last_use = std::max(last_use, each.idleness.last_use);
  }
  EXPECT_EQ(window.start(), known.front().range.start);
  EXPECT_EQ(window.past(), known.back().range.start + known.back().range.length);
  EXPECT_EQ(window.bytes(), bytes);
  EXPECT_EQ(window.transfers(), transfers);
  EXPECT_EQ(window.idle(), idle);
  EXPECT_EQ(window.last_use(), last_use);
}

TEST(IdleWindow, KnowsWhatIsInItWhileItSlides) {
  Random random(7);
  IdleWindow window;
  std::deque<Known> known;
  std::int64_t past = 0;
  for (int step = 0; step < 2000; ++step) {
    const std::int64_t choice = random(0, 40);
    if (choice == 0) {
      past += random(0, 9);
      window.restart(past);
      known.clear();
    } else if (choice < 18 && known.size() > 1) {
      window.pop();
      known.pop_front();
    } else {
      // Few values, so that equal ones meet.
      const Known next = {{past, random(1, 9), {}, -1, -1},
                          {.idle = static_cast<double>(random(0, 12)),
                           .transfers = static_cast<double>(random(0, 2)),
                           .last_use = static_cast<double>(random(-1, 12))}};
      past += next.range.length;
      window.push(next.range, next.idleness);
      known.push_back(next);
    }
    if (!known.empty()) {
      expect_same(window, known);
    }
  }
}

}  // namespace
}  // namespace trena::core_test
