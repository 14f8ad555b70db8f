// Tiles of a loop nest: every element once, never more partitions than the machine has.
#include "trena/graph/nest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

namespace trena {
namespace {

HbmView view(std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides) {
  HbmView result;
  result.sizes = std::move(sizes);
  for (const std::int64_t stride : strides) {
    result.strides_bytes.push_back(4 * stride);
  }
  return result;
}

// The byte offsets that the tiles touch in operand `index`, with how often.
std::map<std::int64_t, int> touched(std::span<const HbmView> operands, std::size_t index,
                                    const NestLimits& limits) {
  std::map<std::int64_t, int> counts;
  for_each_tile(collapse(operands), operands.size(), limits, [&](const NestTile& tile) {
    EXPECT_LE(tile.partitions(), limits.partitions);
    EXPECT_GE(tile.dims.size(), 2U);
    std::int64_t free = 1;
    for (std::size_t axis = 1; axis < tile.dims.size(); ++axis) {
      free *= tile.dims[axis].size;
    }
    EXPECT_LE(free, limits.free_elements);
    std::vector<std::int64_t> offsets = {tile.offsets_bytes[index]};
    for (const NestDim& dim : tile.dims) {
      std::vector<std::int64_t> next;
      for (const std::int64_t offset : offsets) {
        for (std::int64_t i = 0; i < dim.size; ++i) {
          next.push_back(offset + i * dim.strides_bytes[index]);
        }
      }
      offsets = std::move(next);
    }
    for (const std::int64_t offset : offsets) {
      ++counts[offset];
    }
  });
  return counts;
}

void expect_each_once(const std::map<std::int64_t, int>& counts, std::int64_t elements) {
  EXPECT_EQ(static_cast<std::int64_t>(counts.size()), elements);
  for (const auto& [offset, count] : counts) {
    EXPECT_EQ(count, 1) << offset;
  }
}

TEST(Nest, CoversEveryElementOnce) {
  const std::vector<std::vector<std::int64_t>> shapes = {
      {},        {1},       {7},       {1009},      {128, 2048}, {300, 70},
      {3, 9000}, {9000, 3}, {2, 3, 4}, {5, 200, 7}, {129, 2049}, {31, 33, 35}};
  for (const auto& shape : shapes) {
    std::vector<std::int64_t> strides(shape.size());
    std::int64_t count = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      strides[axis] = count;
      count *= shape[axis];
    }
    expect_each_once(touched(std::array{view(shape, strides)}, 0, {}), count);
  }
}

TEST(Nest, FollowsPermutedAndGappedStrides) {
  expect_each_once(touched(std::array{view({40, 50, 60}, {1, 2400, 40})}, 0, {}), 40 * 50 * 60);
  expect_each_once(touched(std::array{view({40, 50}, {1000, 3})}, 0, {}), 40 * 50);
}

TEST(Nest, BroadcastOperandsRepeat) {
  const std::array operands = {view({300, 70}, {70, 1}), view({300, 70}, {0, 1})};
  const auto counts = touched(operands, 1, {});
  EXPECT_EQ(counts.size(), 70U);
  EXPECT_EQ(counts.begin()->second, 300);
}

TEST(Nest, ContiguousOperandsMergeIntoOneDimension) {
  const std::array operands = {view({3, 4, 5}, {20, 5, 1}), view({3, 4, 5}, {20, 5, 1})};
  const std::vector<NestDim> nest = collapse(operands);
  ASSERT_EQ(nest.size(), 1U);
  EXPECT_EQ(nest[0].size, 60);
  const std::array broadcast = {view({3, 4, 5}, {20, 5, 1}), view({3, 4, 5}, {5, 0, 1})};
  EXPECT_EQ(collapse(broadcast).size(), 3U);
}

TEST(HbmView, BroadcastsFromTheRight) {
  const HbmView row = view({70}, {1}).broadcast_to(std::array<std::int64_t, 2>{300, 70});
  EXPECT_EQ(row.strides_bytes, (std::vector<std::int64_t>{0, 4}));
  EXPECT_THROW(view({3}, {1}).broadcast_to(std::array<std::int64_t, 1>{4}), Error);
}

}  // namespace
}  // namespace trena
