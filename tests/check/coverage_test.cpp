// Sets of bytes made of regions, against a bitmap.
#include "trena/check/coverage.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace trena {
namespace {

constexpr std::int64_t kRows = 8;
constexpr std::int64_t kRowBytes = 16;

BufferPtr sbuf_buffer() {
  auto buffer = std::make_shared<Buffer>();
  buffer->space = Space::kSbuf;
  buffer->rows = kRows;
  buffer->row_bytes = buffer->pitch_bytes = kRowBytes;
  return buffer;
}

// Rows [row, row + rows), every `step`-th of `count` bytes from `byte`.
struct Pick {
  std::int64_t row, rows, byte, count, step;

  Tensor view(const Tensor& whole) const {
    const std::array<Dim, 2> dims = {Dim{rows, kRowBytes}, Dim{count, step}};
    return whole.with(DType::kUint8, row * kRowBytes + byte, dims);
  }
  void mark(std::vector<bool>& bits) const {
    for (std::int64_t r = row; r < row + rows; ++r) {
      for (std::int64_t k = 0; k < count; ++k) {
        bits[static_cast<std::size_t>(r * kRowBytes + byte + k * step)] = true;
      }
    }
  }
  bool inside(const std::vector<bool>& bits) const {
    std::vector<bool> mine(bits.size(), false);
    mark(mine);
    for (std::size_t i = 0; i < bits.size(); ++i) {
      if (mine[i] && !bits[i]) {
        return false;
      }
    }
    return true;
  }
};

Pick random_pick(std::mt19937& random, std::int64_t largest_step) {
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(limit));
  };
  Pick pick{};
  pick.row = below(kRows);
  pick.rows = 1 + below(kRows - pick.row);
  pick.byte = below(kRowBytes);
  pick.step = 1 + below(largest_step);
  pick.count = 1 + below((kRowBytes - pick.byte + pick.step - 1) / pick.step);
  return pick;
}

class CoverageProperty : public testing::TestWithParam<std::int64_t> {};

TEST_P(CoverageProperty, HoldsWhatABitmapHolds) {
  std::mt19937 random(7);
  const std::array<std::int64_t, 2> shape = {kRows, kRowBytes};
  int held = 0;
  for (int round = 0; round < 400; ++round) {
    const Tensor whole(sbuf_buffer(), DType::kUint8, shape);
    Coverage coverage;
    std::vector<bool> bits(kRows * kRowBytes, false);
    for (int step = 0; step < 12; ++step) {
      const Pick question = random_pick(random, GetParam());
      const bool expected = question.inside(bits);
      EXPECT_EQ(coverage.holds(region_of(question.view(whole))), expected);
      held += expected;
      const Pick part = random_pick(random, GetParam());
      part.mark(bits);
      coverage.add(region_of(part.view(whole)));
    }
  }
  EXPECT_GT(held, 400) << "the question must be answered yes now and then";
}

INSTANTIATE_TEST_SUITE_P(Steps, CoverageProperty, testing::Values(1, 3));

TEST(Remainder, CutsWhatIsTakenOut) {
  const std::array<std::int64_t, 2> shape = {kRows, kRowBytes};
  const Tensor whole(sbuf_buffer(), DType::kUint8, shape);
  const auto box = [&](std::int64_t row, std::int64_t rows, std::int64_t byte, std::int64_t bytes) {
    return region_of(Pick{row, rows, byte, bytes, 1}.view(whole));
  };
  Remainder left(box(0, 8, 0, 16));
  left.remove(box(2, 4, 4, 8));
  EXPECT_FALSE(left.meets(box(3, 2, 5, 4)));
  EXPECT_TRUE(left.meets(box(3, 2, 3, 2)));
  EXPECT_TRUE(left.meets(box(0, 2, 5, 1)));
  left.remove(box(0, 2, 0, 16));
  left.remove(box(6, 2, 0, 16));
  left.remove(box(2, 4, 0, 4));
  EXPECT_FALSE(left.empty());
  left.remove(box(0, 8, 12, 4));
  EXPECT_TRUE(left.empty());
}

}  // namespace
}  // namespace trena
