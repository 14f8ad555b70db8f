// The search by blocks of bytes, against one that looks at everything.
#include "trena/check/boxed.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace trena {
namespace {

Region region(std::mt19937& random) {
  const auto below = [&](int end) { return static_cast<std::int64_t>(random() % end); };
  Region result;
  result.row_first = below(8);
  result.row_last = result.row_first + below(4);
  result.byte_first = below(300);
  result.byte_last = result.byte_first + below(1 << below(9));  // of every level
  return result;
}

bool boxes_meet(const Region& a, const Region& b) {
  return a.row_first <= b.row_last && b.row_first <= a.row_last && a.byte_first <= b.byte_last &&
         b.byte_first <= a.byte_last;
}

TEST(Boxed, MeetsNewestFirstWhatAFullSearchMeets) {
  std::mt19937 random(7);
  Boxed<int> boxed;
  std::vector<std::pair<int, Region>> all;  // oldest first
  for (int number = 0; number < 3000; ++number) {
    const Region wanted = region(random);
    std::vector<int> expected;
    for (auto entry = all.rbegin(); entry != all.rend(); ++entry) {
      if (boxes_meet(entry->second, wanted)) {
        expected.push_back(entry->first);
      }
    }
    std::vector<int> met;
    boxed.search(wanted, [&](int item) {
      met.push_back(item);
      return true;
    });
    ASSERT_EQ(met, expected) << "search " << number;

    const auto is_old = [&](int item) { return item % 3 != 0; };
    if (number % 4 == 0) {
      boxed.erase(wanted, is_old);
      std::erase_if(all, [&](const auto& entry) {
        return boxes_meet(entry.second, wanted) && is_old(entry.first);
      });
    }
    const Region added = region(random);
    boxed.add(added, number);
    all.emplace_back(number, added);
  }
}

TEST(Boxed, StopsWhenToldTo) {
  Boxed<int> boxed;
  Region region;
  region.byte_last = region.row_last = 3;
  boxed.add(region, 1);
  boxed.add(region, 2);
  int calls = 0;
  boxed.search(region, [&](int item) {
    ++calls;
    return item != 2;
  });
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace trena
