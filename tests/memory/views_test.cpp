#include "trena/memory/views.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "support.h"
#include "trena/memory/rows.h"

namespace trena {
namespace {

using test::make;
using test::Place;
using views::Index;

std::string id_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.id();
  }
  return "";
}

void fill(const Tensor& tensor) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(tensor.element_count()));
  std::iota(numbers.begin(), numbers.end(), 0);
  write_bits(tensor, reinterpret_cast<const std::byte*>(numbers.data()));
  mark_written(tensor);
}

std::vector<std::int32_t> values(const Tensor& tensor) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(tensor.element_count()));
  read_bits(tensor, reinterpret_cast<std::byte*>(numbers.data()));
  return numbers;
}

// The kernel's numbers do not depend on the pitch of the memory behind a window.
TEST(Views, WindowCountsLikeADenseTensor) {
  const Tensor window = make(DType::kFloat32, {4, 8}, {Space::kSbuf, 1024, 96});
  EXPECT_EQ(views::strides(window), (std::vector<std::int64_t>{8, 1}));
  const Tensor part = views::slice(views::slice(window, 0, 2, 4), 1, 3, 5);
  EXPECT_EQ(views::offset(part), 2 * 8 + 3);
  EXPECT_EQ(part.offset_bytes(), 2 * 1024 + 12);
  const std::array<views::Step, 2> pattern = {{{8, 2}, {2, 3}}};
  const Tensor ap = views::ap(window, {.pattern = pattern, .offset = 8 + 1}).tensor;
  EXPECT_EQ(ap.offset_bytes(), 1024 + 4);
  EXPECT_EQ(ap.dim(0), (Dim{2, 1024}));
  EXPECT_EQ(ap.dim(1), (Dim{3, 8}));
}

// The 0.6 stub: an explicit offset is added to the view's; None inherits (nki.md §5.1-5).
TEST(Views, ApAddsItsOffsetAndSaysWhenThatIsContested) {
  const Tensor tile = make(DType::kInt32, {4, 8}, {Space::kSbuf});
  const Tensor shifted = views::slice(tile, 1, 4, 8);
  const std::array<views::Step, 2> pattern = {{{8, 4}, {1, 2}}};
  const views::ApView added = views::ap(shifted, {.pattern = pattern, .offset = 1});
  EXPECT_EQ(views::offset(added.tensor), 5);
  EXPECT_TRUE(added.offset_is_contested);
  EXPECT_FALSE(views::ap(shifted, {.pattern = pattern}).offset_is_contested);
  EXPECT_EQ(views::offset(views::ap(shifted, {.pattern = pattern}).tensor), 4);
  EXPECT_FALSE(views::ap(tile, {.pattern = pattern, .offset = 1}).offset_is_contested);
}

TEST(Views, NegativeStridesOfAnApReadBackwards) {
  const Tensor hbm = make(DType::kInt32, {4, 3});
  fill(hbm);
  const std::array<views::Step, 2> pattern = {{{-3, 2}, {-1, 3}}};
  const Tensor back = views::ap(hbm, {.pattern = pattern, .offset = 8}).tensor;
  EXPECT_EQ(values(back), (std::vector<std::int32_t>{8, 7, 6, 5, 4, 3}));
  const std::array<views::Step, 2> out = {{{-3, 4}, {-1, 3}}};
  const Tensor outside = views::ap(hbm, {.pattern = out, .offset = 8}).tensor;
  EXPECT_EQ(outside.shape(), (std::vector<std::int64_t>{4, 3}));  // refused where it is used
  EXPECT_TRUE(outside.indirection()->escape_is_static);
  EXPECT_EQ(id_of([&] { views::permute(outside, std::array{1, 0}); }), "out-of-bounds");
}

TEST(Views, FreePatternMergesWhatIsContiguousAndKeepsTheRest) {
  const Tensor tile = make(DType::kFloat32, {2, 3, 4, 5}, {Space::kSbuf});
  EXPECT_TRUE(tile.free_contiguous());
  EXPECT_EQ(tile.free_pattern().count, 60);
  const std::array<int, 4> order = {0, 2, 1, 3};
  const Tensor permuted = views::permute(tile, order);
  EXPECT_EQ(permuted.free_pattern().rank, 3);
  const Tensor column = views::slice(views::slice(tile, 2, 0, 1), 3, 0, 1);
  EXPECT_EQ(column.free_pattern().rank, 1);
  EXPECT_EQ(column.innermost_stride_bytes(), 80);
  // A broadcast repeats the same bytes: two broadcast dimensions are one.
  Tensor ones = views::slice(views::slice(tile, 2, 0, 1), 1, 0, 1);
  ones = views::broadcast(views::broadcast(ones, 1, 3), 2, 4);
  EXPECT_EQ(ones.free_pattern().rank, 2);
  EXPECT_EQ(ones.free_pattern().dims[0], (Dim{12, 0}));
  EXPECT_EQ(ones.free_pattern().count, 60);
  const Tensor one = views::slice(column, 1, 1, 2);
  EXPECT_EQ(one.free_pattern().rank, 1);
  EXPECT_EQ(one.free_size(), 1);
}

TEST(Views, RowsOfABroadcastRepeat) {
  const Tensor tile = make(DType::kFloat32, {2, 3}, {Space::kSbuf, 64, 16});
  const std::array<float, 6> numbers = {1, 2, 3, 4, 5, 6};
  write_bits(tile, reinterpret_cast<const std::byte*>(numbers.data()));
  const Tensor twice = views::broadcast(views::expand_dim(tile, 1), 1, 2);
  std::array<float, 6> row{};
  read_row(twice, 1, row.data());
  EXPECT_EQ(row, (std::array<float, 6>{4, 5, 6, 4, 5, 6}));
}

TEST(Views, ScalarOffsetIsReadScaledAndBounded) {
  const Tensor base = make(DType::kInt32, {6, 4, 2});
  fill(base);
  const Tensor index = make(DType::kUint32, {1, 1}, {Space::kSbuf});
  const std::array<views::Step, 1> pattern = {{{1, 2}}};
  const auto at = [&](std::uint32_t value, int dim) {
    write_bits(index, reinterpret_cast<const std::byte*>(&value));
    mark_written(index);
    return views::ap(base, {.pattern = pattern,
                            .scalar_offset = views::ScalarOffset{0, &index},
                            .indirect_dim = dim})
        .tensor;
  };
  EXPECT_EQ(id_of([&] { views::scalar_value(index, "index"); }), "unwritten-read");
  EXPECT_EQ(values(at(5, 0)), (std::vector<std::int32_t>{40, 41}));  // 5 * (4 * 2)
  EXPECT_EQ(values(at(3, 1)), (std::vector<std::int32_t>{6, 7}));    // 3 * 2
  // Outside: the instruction decides, by its oob_mode.
  EXPECT_FALSE(at(5, 0).indirection()->escape);
  EXPECT_TRUE(at(6, 0).indirection()->escape);
  EXPECT_TRUE(at(4, 1).indirection()->escape);
  const Tensor chosen = at(1, 0);
  ASSERT_NE(chosen.indirection(), nullptr);
  EXPECT_EQ(chosen.indirection()->kind, Indirection::Kind::kScalar);
  EXPECT_EQ(chosen.indirection()->index->buffer(), index.buffer());
}

TEST(Views, RunTimeIndexWithoutValuesIsNotModelled) {
  const Tensor base = make(DType::kInt32, {6, 4}, {.values = false});
  const Tensor index = make(DType::kInt32, {1, 1}, {.space = Space::kSbuf, .values = false});
  EXPECT_EQ(id_of([&] { views::select(base, 0, views::ScalarOffset{0, &index}); }), "not-modelled");
  EXPECT_EQ(views::offset(views::select(base, 0, views::ScalarOffset{2, nullptr})), 8);
}

TEST(Views, GatheredRowsComeDownThePartitionsOfTheIndex) {
  const Tensor base = make(DType::kInt32, {10, 2});
  fill(base);
  const Tensor index = make(DType::kInt32, {2, 2}, {Space::kSbuf});
  const std::array<std::int32_t, 4> rows = {7, 1, 9, 4};  // index.T.flatten() is 7 9 1 4
  write_bits(index, reinterpret_cast<const std::byte*>(rows.data()));
  const std::array<views::Step, 2> pattern = {{{2, 4}, {1, 2}}};
  const Tensor view = views::ap(base, {.pattern = pattern, .vector_offset = &index}).tensor;
  EXPECT_EQ(values(view), (std::vector<std::int32_t>{14, 15, 18, 19, 2, 3, 8, 9}));
  const std::int32_t outside = 10;
  std::memcpy(index.data(), &outside, sizeof outside);
  EXPECT_FALSE(views::in_bounds(view, views::gathered_index(view, 0)));
  EXPECT_EQ(id_of([&] { views::gathered_row(view, 0); }), "out-of-bounds");
  EXPECT_NO_THROW(views::gathered_row(view, 1));
}

TEST(Views, TensorIndirectionCarriesItsIndexAndRefusesFurtherViews) {
  const Tensor tile = make(DType::kBfloat16, {32, 64}, {Space::kSbuf});
  const Tensor index = make(DType::kUint16, {32, 4}, {Space::kSbuf});
  const Tensor view = views::indirect(tile, index, 100);
  EXPECT_EQ(view.shape(), (std::vector<std::int64_t>{32, 100}));
  EXPECT_EQ(view.indirection()->kind, Indirection::Kind::kColumns);
  EXPECT_EQ(views::indirect(tile, index, {}).size(1), 128);
  EXPECT_EQ(id_of([&] { views::indirect(tile, index, 129); }), "indirect-offset");
  EXPECT_EQ(id_of([&] { views::slice(view, 1, 0, 2); }), "indirect-view");
  EXPECT_EQ(id_of([&] { views::indirect(make(DType::kBfloat16, {32, 64}), index, {}); }),
            "indirect-space");
}

TEST(Views, WrittenBitsFollowTheView) {
  const Tensor tile = make(DType::kFloat32, {4, 8}, {Space::kSbuf, 64, 32});
  EXPECT_FALSE(is_written(tile));
  mark_written(views::slice(tile, 1, 2, 6));
  EXPECT_TRUE(is_written(views::slice(tile, 1, 2, 6)));
  EXPECT_TRUE(is_written(views::slice(views::slice(tile, 1, 3, 6, 2), 0, 1, 2)));
  EXPECT_FALSE(is_written(views::slice(tile, 1, 2, 7)));
  EXPECT_FALSE(is_written(tile));
  mark_written(tile);
  EXPECT_TRUE(is_written(tile));
}

}  // namespace
}  // namespace trena
