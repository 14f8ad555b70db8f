#include "trena/isa/dma/dma_transpose.h"

#include "dma_support.h"
#include "trena/isa/dma/dma_copy.h"
#include "trena/memory/rows.h"

namespace trena {
namespace {

std::vector<std::uint16_t> counting(std::int64_t count) {
  std::vector<std::uint16_t> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<std::uint16_t>(i));
  }
  return values;
}

void transpose(Bench& bench, const Tensor& dst, const Tensor& src, DmaRequest request = {}) {
  bench.program.append(0, make_instruction(DmaTranspose{dst, src, std::nullopt, request}));
}

TEST(DmaTranspose, SwapsTwoDimensions) {
  Bench bench("trn2");
  const Tensor src = bench.hbm<std::uint16_t>(DType::kBfloat16, {2, 3}, counting(6));
  const Tensor dst = bench.make(Space::kSbuf, DType::kBfloat16, {3, 2});
  transpose(bench, dst, src);
  EXPECT_EQ(values_of<std::uint16_t>(dst), (std::vector<std::uint16_t>{0, 3, 1, 4, 2, 5}));
}

TEST(DmaTranspose, ReversesThreeAndKeepsTheMiddleOfFour) {
  Bench bench("trn2");
  // numpy: arange(12).reshape(2, 3, 2).transpose(2, 1, 0)
  const Tensor three = bench.hbm<std::uint16_t>(DType::kFloat16, {2, 3, 2}, counting(12));
  const Tensor out3 = bench.make(Space::kSbuf, DType::kFloat16, {2, 3, 2});
  transpose(bench, out3, three);
  EXPECT_EQ(values_of<std::uint16_t>(out3),
            (std::vector<std::uint16_t>{0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11}));
  // numpy: arange(16).reshape(2, 2, 2, 2).transpose(3, 1, 2, 0)
  const Tensor four = bench.hbm<std::uint16_t>(DType::kUint16, {2, 2, 2, 2}, counting(16));
  const Tensor out4 = bench.make(Space::kSbuf, DType::kUint16, {2, 2, 2, 2});
  transpose(bench, out4, four);
  EXPECT_EQ(values_of<std::uint16_t>(out4),
            (std::vector<std::uint16_t>{0, 8, 2, 10, 4, 12, 6, 14, 1, 9, 3, 11, 5, 13, 7, 15}));
}

TEST(DmaTranspose, GathersRowsDownTheColumnsOfTheIndex) {
  // flat_indices = indices.T.flatten(); dst = src[flat_indices].T (AWS nki.isa reference)
  Bench bench("trn2");
  const Tensor src = bench.hbm<std::uint16_t>(DType::kBfloat16, {300, 2}, counting(600));
  std::vector<std::uint32_t> picks(256);
  for (std::uint32_t p = 0; p < 128; ++p) {
    picks[2 * p] = 299 - p;  // column 0
    picks[2 * p + 1] = p;    // column 1
  }
  const Tensor index = bench.make(Space::kSbuf, DType::kUint32, {128, 2});
  bench.program.append(
      0, make_instruction(DmaCopy{index, bench.hbm<std::uint32_t>(DType::kUint32, {128, 2}, picks),
                                  DmaRequest{}}));
  const Tensor dst = bench.make(Space::kSbuf, DType::kBfloat16, {2, 256});
  transpose(bench, dst, rows_of(src, index, 256));
  const auto values = values_of<std::uint16_t>(dst);
  EXPECT_EQ(values[0], 598);          // row 299, column 0
  EXPECT_EQ(values[127], 2 * 172);    // row 299 - 127
  EXPECT_EQ(values[128], 0);          // row 0
  EXPECT_EQ(values[256 + 255], 255);  // row 127, column 1
}

TEST(DmaTranspose, LeavesSkippedColumnsAlone) {
  Bench bench("trn2");
  const Tensor src = bench.hbm<std::uint16_t>(DType::kBfloat16, {4, 1}, {40, 41, 42, 43});
  std::vector<std::uint32_t> picks(16, 1);
  picks[3] = 4;
  const Tensor index = bench.make(Space::kSbuf, DType::kUint32, {16, 1});
  bench.program.append(
      0, make_instruction(DmaCopy{index, bench.hbm<std::uint32_t>(DType::kUint32, {16, 1}, picks),
                                  DmaRequest{}}));
  const Tensor dst = bench.make(Space::kSbuf, DType::kBfloat16, {1, 16});
  const Tensor view16 = rows_of(src, index, 16);
  EXPECT_EQ(error_of([&] { transpose(bench, dst, view16); }), "out-of-bounds");
  transpose(bench, dst, view16, {.oob = OobMode::kSkip});
  EXPECT_EQ(values_of<std::uint16_t>(dst)[2], 41);
  EXPECT_TRUE(is_written(view(dst, {{1, 16}, {3, 1}})));
  EXPECT_FALSE(is_written(view(dst, {{1, 16}, {1, 1}}, 3)));
}

TEST(DmaTranspose, RefusesWhatDescriptorsCannotExpress) {
  Bench bench("trn2");
  const auto id = [&](DType dtype, std::vector<std::int64_t> src, std::vector<std::int64_t> dst,
                      DgeMode mode) {
    const Tensor from = bench.hbm<std::uint16_t>(dtype, src, counting(65536));
    const Tensor to = bench.make(Space::kSbuf, dtype, dst);
    return error_of([&] { transpose(bench, to, from, {.mode = mode}); });
  };
  using enum DType;
  EXPECT_EQ(id(kBfloat16, {16, 64}, {64, 16}, DgeMode::kHardware), "");
  EXPECT_EQ(id(kBfloat16, {32, 64}, {64, 32}, DgeMode::kHardware), "dma-transpose-shape");
  EXPECT_EQ(id(kFloat32, {16, 64}, {64, 16}, DgeMode::kHardware), "dma-transpose-shape");
  EXPECT_EQ(id(kBfloat16, {4, 8, 64}, {64, 8, 4}, DgeMode::kHardware), "");
  EXPECT_EQ(id(kBfloat16, {4, 6, 64}, {64, 6, 4}, DgeMode::kHardware), "dma-transpose-shape");
  EXPECT_EQ(id(kFloat32, {32, 64}, {64, 32}, DgeMode::kUnknown), "");
  EXPECT_EQ(id(kBfloat16, {16, 64}, {64, 16}, DgeMode::kSoftware), "dge-refused");
  EXPECT_EQ(id(kUint8, {16, 64}, {64, 16}, DgeMode::kUnknown), "dtype-refused");
  EXPECT_EQ(id(kBfloat16, {16, 64}, {32, 32}, DgeMode::kUnknown), "dma-transpose-shape");
  EXPECT_EQ(id(kBfloat16, {16}, {16, 1}, DgeMode::kUnknown), "dma-transpose-axes");
  const Tensor hbm = bench.make(Space::kHbm, kBfloat16, {2, 2});
  EXPECT_EQ(error_of([&] { transpose(bench, hbm, hbm); }), "memory-refused");
}

TEST(DmaTranspose, IsSlowerThanACopy) {
  // AWS trainium2_arch.rst: up to 90 % of DMA throughput from HBM, 50 % within SBUF; 16 engines
  // share a block.
  Bench bench("trn2");
  const Tensor hbm = bench.make(Space::kHbm, DType::kBfloat16, {512, 128});
  const Tensor tile = bench.make(Space::kSbuf, DType::kBfloat16, {128, 512});
  const Cost cost =
      make_instruction(DmaTranspose{tile, hbm, std::nullopt, {}})->cost(bench.program.machine());
  EXPECT_DOUBLE_EQ(cost.dma.slowdown, 1 / 0.9);
  EXPECT_EQ(cost.dma.engines, 16);
  EXPECT_EQ(cost.dma.hbm_read_bytes, 131072);
  EXPECT_EQ(cost.dma.dge, DgeMode::kNone);
  const Tensor source = bench.make(Space::kSbuf, DType::kBfloat16, {64, 128});
  const Tensor turned = bench.make(Space::kSbuf, DType::kBfloat16, {128, 64});
  EXPECT_DOUBLE_EQ(make_instruction(DmaTranspose{turned, source, std::nullopt, {}})
                       ->cost(bench.program.machine())
                       .dma.slowdown,
                   2.0);
}

}  // namespace
}  // namespace trena
