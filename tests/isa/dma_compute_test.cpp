#include "trena/isa/dma/dma_compute.h"

#include "dma_support.h"
#include "trena/isa/dma/dma_copy.h"
#include "trena/memory/rows.h"

namespace trena {
namespace {

void add(Bench& bench, const Tensor& dst, std::vector<Tensor> sources,
         OobMode oob = OobMode::kError) {
  bench.program.append(0, make_instruction(DmaCompute{dst, std::move(sources), AluOp::kAdd,
                                                      std::nullopt, true, oob}));
}

Tensor index_of(Bench& bench, std::vector<std::uint32_t> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  const Tensor index = bench.make(Space::kSbuf, DType::kUint32, {count, 1});
  bench.program.append(
      0, make_instruction(
             DmaCopy{index, bench.hbm<std::uint32_t>(DType::kUint32, {count, 1}, std::move(values)),
                     DmaRequest{}}));
  return index;
}

TEST(DmaCompute, AddsInFloat32AndRoundsOnce) {
  Bench bench("trn2");
  // bfloat16 has steps of 2 from 256 on: 256 + 1 is a tie that rounds back to 256, so rounding
  // after each addition would give 256.
  const Tensor a = bench.hbm<std::uint16_t>(DType::kBfloat16, {1}, {0x4380});  // 256
  const Tensor b = bench.hbm<std::uint16_t>(DType::kBfloat16, {1}, {0x3f80});  // 1
  const Tensor c = bench.hbm<std::int32_t>(DType::kInt32, {1}, {1});
  const Tensor out = bench.make(Space::kHbm, DType::kBfloat16, {1});
  add(bench, out, {a, b, c});
  EXPECT_EQ(values_of<std::uint16_t>(out), (std::vector<std::uint16_t>{0x4381}));  // 258
}

TEST(DmaCompute, AddsIntoOneOfItsSources) {
  Bench bench("trn2");
  const Tensor a = bench.hbm<float>(DType::kFloat32, {2, 2}, {1, 2, 3, 4});
  const Tensor b = bench.hbm<float>(DType::kFloat32, {4}, {10, 20, 30, 40});
  add(bench, a, {a, b});
  EXPECT_EQ(values_of<float>(a), (std::vector<float>{11, 22, 33, 44}));
}

TEST(DmaCompute, ScattersAndGathersWithAnIndex) {
  Bench bench("trn2");
  const Tensor table = bench.hbm<float>(DType::kFloat32, {3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor tile = bench.make(Space::kSbuf, DType::kFloat32, {2, 2});
  bench.program.append(
      0, make_instruction(DmaCopy{tile, bench.hbm<float>(DType::kFloat32, {2, 2}, {10, 20, 30, 40}),
                                  DmaRequest{}}));
  const Tensor rows = rows_of(table, index_of(bench, {2, 0}), 2);
  add(bench, rows, {rows, tile});
  EXPECT_EQ(values_of<float>(table), (std::vector<float>{31, 42, 3, 4, 15, 26}));
  add(bench, tile, {tile, rows});
  EXPECT_EQ(values_of<float>(tile), (std::vector<float>{25, 46, 61, 82}));
  EXPECT_EQ(error_of([&] {
              const Tensor twice = rows_of(table, index_of(bench, {1, 1}), 2);
              add(bench, twice, {twice, tile});
            }),
            "dma-duplicate-index");
  EXPECT_EQ(error_of([&] {
              const Tensor outside = rows_of(table, index_of(bench, {1, 3}), 2);
              add(bench, outside, {outside, tile});
            }),
            "out-of-bounds");
}

TEST(DmaCompute, RefusesWhatTheEnginesCannotCompute) {
  Bench bench("trn2");
  const Tensor a = bench.hbm<float>(DType::kFloat32, {2}, {1, 2});
  const auto id = [&](std::vector<Tensor> sources, AluOp op,
                      std::optional<std::vector<float>> scales) {
    return error_of([&] {
      bench.program.append(
          0, make_instruction(
                 DmaCompute{a, std::move(sources), op, std::move(scales), true, OobMode::kError}));
    });
  };
  EXPECT_EQ(id({a, a}, AluOp::kMultiply, std::nullopt), "operator-refused");
  EXPECT_EQ(id({a, a}, AluOp::kAdd, std::vector<float>{1, 0.5f}), "dma-compute-form");
  EXPECT_EQ(id(std::vector<Tensor>(17, a), AluOp::kAdd, std::nullopt), "dma-compute-form");
  EXPECT_EQ(id({a, bench.hbm<float>(DType::kFloat32, {3}, {1, 2, 3})}, AluOp::kAdd, std::nullopt),
            "dma-element-count");
}

TEST(DmaCompute, AccumulatesAtHalfRateOrInPlaceOnV4) {
  // AWS trainium3_arch.rst: 50 % of DMA throughput before; full rate into SBUF, matching bf16 or
  // fp32.
  const auto slowdown = [](std::string_view machine, DType dtype) {
    Bench bench(machine);
    const Tensor tile = bench.make(Space::kSbuf, dtype, {128, 64});
    const Tensor hbm = bench.make(Space::kHbm, dtype, {128, 64});
    return make_instruction(
               DmaCompute{tile, {tile, hbm}, AluOp::kAdd, std::nullopt, true, OobMode::kError})
        ->cost(bench.program.machine())
        .dma.slowdown;
  };
  EXPECT_DOUBLE_EQ(slowdown("trn2", DType::kFloat32), 2.0);
  EXPECT_DOUBLE_EQ(slowdown("trn3", DType::kFloat32), 1.0);
  EXPECT_DOUBLE_EQ(slowdown("trn3", DType::kFloat16), 2.0);
}

}  // namespace
}  // namespace trena
