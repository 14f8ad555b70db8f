#include "trena/memory/region.h"

#include <gtest/gtest.h>

#include "support.h"
#include "trena/memory/views.h"

namespace trena {
namespace {

using test::make;

Tensor box(const Tensor& tensor,
           std::initializer_list<std::pair<std::int64_t, std::int64_t>> bounds) {
  Tensor view = tensor;
  int axis = 0;
  for (const auto& [start, stop] : bounds) {
    view = views::slice(view, axis++, start, stop);
  }
  return view;
}

TEST(Region, BoxOfATileCountsPartitionsAndBytes) {
  const Tensor tile = make(DType::kBfloat16, {128, 64}, {Space::kSbuf, 4096, 256});
  const Region region = region_of(box(tile, {{32, 64}, {8, 16}}));
  EXPECT_EQ(region.row_first, 32);
  EXPECT_EQ(region.row_last, 63);
  EXPECT_EQ(region.byte_first, 16);
  EXPECT_EQ(region.byte_last, 31);
}

TEST(Region, BoxInHbmCountsRowsOfTheLastDimension) {
  const Tensor hbm = make(DType::kFloat32, {4, 16, 32});
  const Region region = region_of(box(hbm, {{1, 3}, {2, 5}, {4, 8}}));
  EXPECT_EQ(region.row_first, 18);
  EXPECT_EQ(region.row_last, 36);
  EXPECT_EQ(region.byte_first, 16);
  EXPECT_EQ(region.byte_last, 31);
}

TEST(Region, RectanglesOfAnHbmTensorDoNotOverlap) {
  const Tensor hbm = make(DType::kFloat32, {4, 16, 32});
  const Tensor first = box(hbm, {{0, 4}, {0, 8}, {0, 16}});
  EXPECT_FALSE(overlaps(first, box(hbm, {{0, 4}, {8, 16}, {0, 16}})));
  EXPECT_FALSE(overlaps(first, box(hbm, {{0, 4}, {0, 8}, {16, 32}})));
  EXPECT_TRUE(overlaps(first, box(hbm, {{3, 4}, {7, 9}, {15, 17}})));
  EXPECT_TRUE(covers(region_of(first), region_of(box(hbm, {{1, 3}, {2, 8}, {3, 16}}))));
  EXPECT_FALSE(covers(region_of(first), region_of(box(hbm, {{1, 3}, {2, 9}, {3, 16}}))));
}

TEST(Region, GatherStandsForEveryRow) {
  const Tensor hbm = make(DType::kFloat32, {64, 32});
  const Tensor index = make(DType::kInt32, {8, 1}, {Space::kSbuf});
  const Tensor rows = views::vector_select(views::slice(hbm, 1, 0, 16), 0, index);
  EXPECT_TRUE(overlaps(rows, box(hbm, {{63, 64}, {0, 1}})));
  EXPECT_FALSE(overlaps(rows, box(hbm, {{0, 64}, {16, 32}})));
  EXPECT_FALSE(covers(region_of(rows), region_of(box(hbm, {{0, 1}, {0, 1}}))));
}

TEST(Region, ColumnsByIndexStandForTheWholePartition) {
  const Tensor tile = make(DType::kFloat32, {64, 32}, {Space::kSbuf});
  const Tensor index = make(DType::kUint16, {32, 1}, {Space::kSbuf});
  const Tensor gathered = views::indirect(box(tile, {{0, 32}}), index, {});
  EXPECT_TRUE(overlaps(gathered, box(tile, {{31, 32}, {31, 32}})));
  EXPECT_FALSE(overlaps(gathered, box(tile, {{32, 64}})));
}

TEST(Region, FillsItsBoxUnlessThereAreGaps) {
  const Tensor tile = make(DType::kFloat32, {64, 32}, {Space::kSbuf});
  const auto view = [&](std::vector<Dim> dims) {
    return region_of(tile.with(DType::kFloat32, 0, dims));
  };
  EXPECT_TRUE(region_of(tile).fills_box);
  EXPECT_TRUE(region_of(box(tile, {{8, 16}, {4, 12}})).fills_box);
  EXPECT_TRUE(region_of(box(tile, {{8, 9}, {31, 32}})).fills_box);
  EXPECT_FALSE(view({{64, 128}, {16, 8}}).fills_box) << "every second element";
  EXPECT_FALSE(view({{32, 256}, {32, 4}}).fills_box) << "every second row";
  EXPECT_FALSE(view({{1, 128}, {3, 8}, {3, 8}}).fills_box) << "nine times four bytes of 36, twice";
}

TEST(Region, WindowsOnOneArrayShareBytesWhereTheirAddressesMeet) {
  const auto window = [](std::int64_t offset_bytes, int partition, Space space = Space::kSbuf) {
    Tensor tile =
        make(DType::kFloat32, {32, 16}, {.space = space, .pitch_bytes = 1024, .values = false});
    tile.buffer()->address = Address{partition, offset_bytes};
    return tile;
  };
  EXPECT_TRUE(share_bytes(window(0, 0), window(60, 0)));
  EXPECT_FALSE(share_bytes(window(0, 0), window(64, 0)));
  EXPECT_FALSE(share_bytes(window(0, 0), window(0, 32)));
  EXPECT_TRUE(share_bytes(window(0, 0), window(0, 31)));
  EXPECT_FALSE(share_bytes(window(0, 0), window(0, 0, Space::kPsum)));
  EXPECT_FALSE(overlaps(window(0, 0), window(0, 0)));
  EXPECT_FALSE(share_bytes(make(DType::kFloat32, {4, 4}), make(DType::kFloat32, {4, 4})));
}

}  // namespace
}  // namespace trena
