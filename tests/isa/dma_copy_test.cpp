#include "trena/isa/dma/dma_copy.h"

#include "dma_support.h"
#include "trena/memory/rows.h"

namespace trena {
namespace {

void copy(Bench& bench, const Tensor& dst, const Tensor& src, DmaRequest request = {}) {
  bench.program.append(0, make_instruction(DmaCopy{dst, src, request}));
}

std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(i);
  }
  return values;
}

TEST(DmaCopy, MovesBetweenHbmAndSbufBothWays) {
  Bench bench("trn2");
  const Tensor input = bench.hbm<float>(DType::kFloat32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor tile = bench.make(Space::kSbuf, DType::kFloat32, {2, 3});
  const Tensor other = bench.make(Space::kSbuf, DType::kFloat32, {2, 3});
  const Tensor output = bench.make(Space::kHbm, DType::kFloat32, {2, 3});
  copy(bench, tile, input);
  copy(bench, other, tile);
  copy(bench, output, other);
  EXPECT_EQ(values_of<float>(output), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(DmaCopy, ComparesElementCountsNotShapes) {
  Bench bench("trn2");
  const Tensor input = bench.hbm<float>(DType::kFloat32, {6}, {1, 2, 3, 4, 5, 6});
  const Tensor tile = bench.make(Space::kSbuf, DType::kFloat32, {3, 2});
  copy(bench, tile, input);
  EXPECT_EQ(values_of<float>(tile), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  const Tensor small = bench.make(Space::kSbuf, DType::kFloat32, {5, 1});
  EXPECT_EQ(error_of([&] { copy(bench, small, input); }), "dma-element-count");
}

TEST(DmaCopy, WalksStridedViewsInElementOrder) {
  Bench bench("trn2");
  const Tensor input = bench.hbm<float>(DType::kFloat32, {3, 4}, counting(12));
  const Tensor tile = bench.make(Space::kHbm, DType::kFloat32, {4, 3});
  copy(bench, tile, view(input, {{4, 1}, {3, 4}}));  // transposed
  EXPECT_EQ(values_of<float>(tile), (std::vector<float>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
}

TEST(DmaCopy, StagesShapesThatDoNotDivide) {
  Bench bench("trn2");
  const Tensor input = bench.hbm<float>(DType::kFloat32, {2, 6}, counting(12));
  // dst dimensions 3 x 4 over rows of 5, src dimensions 2 x 6 with rows of 6 reversed in order.
  const Tensor target = bench.hbm<float>(DType::kFloat32, {3, 5}, std::vector<float>(15, -1));
  copy(bench, view(target, {{3, 5}, {4, 1}}), view(input, {{2, -6}, {6, 1}}, 6));
  EXPECT_EQ(values_of<float>(target),
            (std::vector<float>{6, 7, 8, 9, -1, 10, 11, 0, 1, -1, 2, 3, 4, 5, -1}));
}

TEST(DmaCopy, ReadsEverythingBeforeItWritesWhenTheTwoOverlap) {
  Bench bench("trn2");
  const Tensor data = bench.hbm<float>(DType::kFloat32, {4, 2}, counting(8));
  copy(bench, view(data, {{3, 2}, {1, 1}}, 2),
       view(data, {{3, 2}, {1, 1}}));  // first column, one row down
  EXPECT_EQ(values_of<float>(data), (std::vector<float>{0, 1, 0, 3, 2, 5, 4, 7}));
}

TEST(DmaCopy, BroadcastsAZeroStride) {
  Bench bench("trn2");
  const Tensor row = bench.hbm<float>(DType::kFloat32, {1, 2}, {7, 8});
  const Tensor tile = bench.make(Space::kSbuf, DType::kFloat32, {3, 2});
  copy(bench, tile, view(row, {{3, 0}, {2, 1}}));
  EXPECT_EQ(values_of<float>(tile), (std::vector<float>{7, 8, 7, 8, 7, 8}));
}

TEST(DmaCopy, CastsThroughFloat32AndMovesBitsOfEqualTypes) {
  Bench bench("trn2");
  // 1.00390625 is a tie in bfloat16: to even, 0x3f80. 3.0 is 0x4040.
  const Tensor input = bench.hbm<float>(DType::kFloat32, {2}, {1.00390625f, 3.0f});
  const Tensor output = bench.make(Space::kHbm, DType::kBfloat16, {2});
  copy(bench, output, input);
  EXPECT_EQ(values_of<std::uint16_t>(output), (std::vector<std::uint16_t>{0x3f80, 0x4040}));
  // A signalling NaN's payload survives.
  const Tensor bits = bench.hbm<std::uint32_t>(DType::kFloat32, {1}, {0x7f812345u});
  const Tensor same = bench.make(Space::kHbm, DType::kFloat32, {1});
  copy(bench, same, bits);
  EXPECT_EQ(values_of<std::uint32_t>(same), (std::vector<std::uint32_t>{0x7f812345u}));
  // int32 -> float32 -> uint32 loses what float32 cannot hold: 2^24 + 1 (hw.md §3.3).
  const Tensor integer = bench.hbm<std::int32_t>(DType::kInt32, {1}, {16777217});
  const Tensor unsigned_integer = bench.make(Space::kHbm, DType::kUint32, {1});
  copy(bench, unsigned_integer, integer);
  EXPECT_EQ(values_of<std::uint32_t>(unsigned_integer), (std::vector<std::uint32_t>{16777216}));
}

TEST(DmaCopy, LargeCopiesAreTheSameOnSeveralThreads) {
  Bench bench("trn2");
  std::vector<float> values = counting(1 << 20);
  const Tensor input = bench.hbm<float>(DType::kFloat32, {128, 8192}, values);
  const Tensor tile = bench.make(Space::kSbuf, DType::kFloat32, {128, 8192});
  copy(bench, tile, input);
  const Tensor flat = bench.make(Space::kHbm, DType::kFloat32, {1 << 20});
  copy(bench, flat, tile);
  EXPECT_EQ(values_of<float>(flat), values);
}

TEST(DmaCopy, CarriesUnwrittenBetweenHbmOnly) {
  Bench bench("trn2");
  const Tensor part = bench.make(Space::kHbm, DType::kFloat32, {4, 2});
  copy(bench, view(part, {{2, 2}, {2, 1}}, 2),
       bench.hbm<float>(DType::kFloat32, {2, 2}, {1, 2, 3, 4}));
  const Tensor twin = bench.make(Space::kHbm, DType::kFloat32, {4, 2});
  copy(bench, twin, part);
  EXPECT_TRUE(is_written(view(twin, {{2, 2}, {2, 1}}, 2)));
  EXPECT_FALSE(is_written(view(twin, {{1, 2}, {2, 1}}, 0)));
  EXPECT_FALSE(is_written(view(twin, {{1, 2}, {2, 1}}, 6)));
  copy(bench, twin, twin);  // public kernels copy a tensor onto itself before it is full
  const Tensor tile = bench.make(Space::kSbuf, DType::kFloat32, {4, 2});
  EXPECT_EQ(error_of([&] { copy(bench, tile, part); }), "unwritten-read");
}

TEST(DmaCopy, GathersRowsByIndex) {
  Bench bench("trn2");
  const Tensor table = bench.hbm<float>(DType::kFloat32, {4, 2}, {0, 1, 10, 11, 20, 21, 30, 31});
  const Tensor index = bench.make(Space::kSbuf, DType::kInt32, {3, 1});
  copy(bench, index, bench.hbm<std::int32_t>(DType::kInt32, {3, 1}, {3, 0, 3}));
  const Tensor tile = bench.make(Space::kSbuf, DType::kFloat32, {3, 2});
  copy(bench, tile, rows_of(table, index, 3));
  EXPECT_EQ(values_of<float>(tile), (std::vector<float>{30, 31, 0, 1, 30, 31}));
}

TEST(DmaCopy, ScattersRowsByIndexAndMarksOnlyThose) {
  Bench bench("trn2");
  const Tensor table = bench.make(Space::kHbm, DType::kFloat32, {4, 2});
  const Tensor index = bench.make(Space::kSbuf, DType::kUint32, {2, 1});
  copy(bench, index, bench.hbm<std::uint32_t>(DType::kUint32, {2, 1}, {2, 0}));
  const Tensor tile = bench.make(Space::kSbuf, DType::kFloat32, {2, 2});
  copy(bench, tile, bench.hbm<float>(DType::kFloat32, {2, 2}, {1, 2, 3, 4}));
  copy(bench, rows_of(table, index, 2), tile);
  EXPECT_EQ(values_of<float>(view(table, {{2, 1}}, 4)), (std::vector<float>{1, 2}));
  EXPECT_EQ(values_of<float>(view(table, {{2, 1}}, 0)), (std::vector<float>{3, 4}));
  EXPECT_FALSE(is_written(view(table, {{2, 1}}, 2)));
  EXPECT_FALSE(is_written(view(table, {{2, 1}}, 6)));
}

TEST(DmaCopy, NamesAnIndexOutsideTheTensorOrSkipsIt) {
  Bench bench("trn2");
  const Tensor table = bench.hbm<float>(DType::kFloat32, {4, 1}, {0, 1, 2, 3});
  const Tensor index = bench.make(Space::kSbuf, DType::kInt32, {3, 1});
  copy(bench, index, bench.hbm<std::int32_t>(DType::kInt32, {3, 1}, {1, 4, -1}));
  const Tensor tile = bench.make(Space::kSbuf, DType::kFloat32, {3, 1});
  copy(bench, tile, bench.hbm<float>(DType::kFloat32, {3, 1}, {-7, -8, -9}));
  std::string here;
  EXPECT_EQ(error_of([&] { copy(bench, tile, rows_of(table, index, 3)); }, &here), "out-of-bounds");
  EXPECT_NE(here.find("row 1"), std::string::npos) << here;
  EXPECT_NE(here.find("index 4"), std::string::npos) << here;
  EXPECT_NE(here.find("0 to 3"), std::string::npos) << here;
  EXPECT_EQ(values_of<float>(tile), (std::vector<float>{-7, -8, -9}));
  copy(bench, tile, rows_of(table, index, 3), {.oob = OobMode::kSkip});
  EXPECT_EQ(values_of<float>(tile), (std::vector<float>{1, -8, -9}));
}

TEST(DmaCopy, RefusesToGatherRowsNobodyWrote) {
  Bench bench("trn2");
  const Tensor table = bench.make(Space::kHbm, DType::kFloat32, {4, 1});
  copy(bench, view(table, {{2, 1}, {1, 1}}), bench.hbm<float>(DType::kFloat32, {2, 1}, {5, 6}));
  const Tensor index = bench.make(Space::kSbuf, DType::kInt32, {1, 1});
  const Tensor tile = bench.make(Space::kSbuf, DType::kFloat32, {1, 1});
  copy(bench, index, bench.hbm<std::int32_t>(DType::kInt32, {1, 1}, {1}));
  copy(bench, tile, rows_of(table, index, 1));
  EXPECT_EQ(values_of<float>(tile), (std::vector<float>{6}));
  copy(bench, index, bench.hbm<std::int32_t>(DType::kInt32, {1, 1}, {2}));
  EXPECT_EQ(error_of([&] { copy(bench, tile, rows_of(table, index, 1)); }), "unwritten-read");
}

TEST(DmaCopy, RefusesWhatTheGenerationCannotDo) {
  Bench v2("trn1");
  Bench v3("trn2");
  Bench v4("trn3");
  const auto pair_on = [](Bench& bench, DType dst, DType src) {
    return std::pair(bench.make(Space::kHbm, dst, {2, 1}), bench.make(Space::kHbm, src, {2, 1}));
  };
  const auto id = [&](Bench& bench, DmaRequest request, DType dst = DType::kFloat32) {
    const auto [to, from] = pair_on(bench, dst, DType::kFloat32);
    return error_of([&, to = to, from = from] { copy(bench, to, from, request); });
  };
  EXPECT_EQ(id(v2, {.mode = DgeMode::kHardware}), "dge-refused");
  EXPECT_EQ(id(v3, {.mode = DgeMode::kHardware}), "");
  EXPECT_EQ(id(v3, {.mode = DgeMode::kHardware}, DType::kBfloat16), "dge-refused");
  EXPECT_EQ(id(v3, {.mode = DgeMode::kHardware, .engine = EngineKind::kVector}), "engine-refused");
  EXPECT_EQ(id(v3, {.mode = DgeMode::kHardware, .engine = EngineKind::kScalar}), "");
  EXPECT_EQ(id(v3, {.mode = DgeMode::kSoftware, .engine = EngineKind::kSync}), "engine-refused");
  EXPECT_EQ(id(v3, {.priority = 0}), "dma-priority");
  EXPECT_EQ(id(v4, {.priority = 3}), "");
  EXPECT_EQ(id(v4, {.priority = 4}), "dma-priority");
  const Tensor bank = v3.make(Space::kPsum, DType::kFloat32, {2, 1});
  const Tensor tile = v3.make(Space::kSbuf, DType::kFloat32, {2, 1});
  EXPECT_EQ(error_of([&] { copy(v3, tile, bank); }), "memory-refused");
  EXPECT_EQ(error_of([&] { copy(v3, bank, tile); }), "memory-refused");
}

TEST(DmaCopy, GathersNeedSoftwareDescriptorsAndV3) {
  const auto id = [](std::string_view machine, DgeMode mode) {
    Bench bench(machine);
    const Tensor table = bench.hbm<float>(DType::kFloat32, {2, 1}, {1, 2});
    const Tensor index = bench.make(Space::kSbuf, DType::kInt32, {1, 1});
    copy(bench, index, bench.hbm<std::int32_t>(DType::kInt32, {1, 1}, {0}));
    return error_of([&] {
      copy(bench, bench.make(Space::kSbuf, DType::kFloat32, {1, 1}), rows_of(table, index, 1),
           {.mode = mode});
    });
  };
  EXPECT_EQ(id("trn1", DgeMode::kUnknown), "dma-indirect");
  EXPECT_EQ(id("trn2", DgeMode::kUnknown), "");
  EXPECT_EQ(id("trn2", DgeMode::kHardware), "dge-refused");
  EXPECT_EQ(id("trn2", DgeMode::kNone), "dge-refused");
}

TEST(DmaCopy, CountsDescriptorsOfATile) {
  // AWS nki-dma-overview.rst: a bf16 [4, 4096] tile is 32 KiB on one engine; [128, 1024] bf16 has
  // 128 rows of 2 KiB over 16 engines. Rows over the 4 KiB packet are cut.
  Bench bench("trn2");
  const auto load = [&](std::vector<std::int64_t> shape) {
    const Tensor src = bench.make(Space::kHbm, DType::kBfloat16, shape);
    const Tensor dst = bench.make(Space::kSbuf, DType::kBfloat16, shape);
    return make_instruction(DmaCopy{dst, src, {}})->cost(bench.program.machine());
  };
  const Cost few = load({4, 4096});
  EXPECT_EQ(few.dma.engines, 1);
  EXPECT_EQ(few.dma.descriptors, 8);
  EXPECT_EQ(few.dma.descriptor_bytes, 4096);
  EXPECT_EQ(few.dma.hbm_read_bytes, 32768);
  EXPECT_EQ(few.dma.hbm_write_bytes, 0);
  EXPECT_FALSE(few.dma.to_hbm);
  const Cost tile = load({128, 1024});
  EXPECT_EQ(tile.dma.engines, 16);
  EXPECT_EQ(tile.dma.descriptors, 128);
  EXPECT_EQ(tile.dma.descriptor_bytes, 2048);
}

TEST(DmaCopy, CutsRunsWhereEitherSideEnds) {
  Bench bench("trn2");
  const Machine& machine = bench.program.machine();
  const Tensor tile = bench.make(Space::kSbuf, DType::kFloat32, {2, 6});
  // Columns of an HBM matrix: every element is a run of its own.
  const Tensor matrix = bench.make(Space::kHbm, DType::kFloat32, {6, 2});
  const Cost columns =
      make_instruction(DmaCopy{tile, view(matrix, {{2, 1}, {6, 2}}), {}})->cost(machine);
  EXPECT_EQ(columns.dma.descriptors, 12);
  EXPECT_EQ(columns.dma.descriptor_bytes, 4);
  // HBM rows of 4 against partitions of 6: cuts at 4, 6, 8 and 12.
  const Tensor padded = bench.make(Space::kHbm, DType::kFloat32, {3, 8});
  const Cost mixed =
      make_instruction(DmaCopy{tile, view(padded, {{3, 8}, {4, 1}}), {}})->cost(machine);
  EXPECT_EQ(mixed.dma.descriptors, 4);
  EXPECT_EQ(mixed.dma.descriptor_bytes, 12);
  // HBM to HBM spreads over all engines: 1 MiB in packets of 4 KiB.
  const Tensor big = bench.make(Space::kHbm, DType::kFloat32, {262144});
  const Tensor twin = bench.make(Space::kHbm, DType::kFloat32, {262144});
  const Cost hbm = make_instruction(DmaCopy{twin, big, {}})->cost(machine);
  EXPECT_EQ(hbm.dma.engines, 16);
  EXPECT_EQ(hbm.dma.descriptors, 256);
  EXPECT_EQ(hbm.dma.hbm_read_bytes, 1048576);
  EXPECT_EQ(hbm.dma.hbm_write_bytes, 1048576);
  EXPECT_TRUE(hbm.dma.to_hbm);
}

TEST(DmaCopy, TriggersAsTheProfilesShow) {
  // voyager-compiler probes on Trn2: 599 ns between two loads on the GpSimd queue, 609 ns between
  // stores; AWS kernel-optimization.rst: INST-022, -029...031: hardware descriptors 518 to 559 ns
  // per 128 rows.
  Bench bench("trn2");
  const Machine& machine = bench.program.machine();
  const Tensor hbm = bench.make(Space::kHbm, DType::kFloat32, {128, 8});
  const Tensor tile = bench.make(Space::kSbuf, DType::kFloat32, {128, 8});
  const auto load = make_instruction(DmaCopy{tile, hbm, {}});
  EXPECT_EQ(load->engine(machine), EngineKind::kGpsimd);
  EXPECT_EQ(load->cost(machine).dma.dge, DgeMode::kSoftware);
  EXPECT_EQ(load->cost(machine).interval, ticks_from_ns(599));
  EXPECT_EQ(make_instruction(DmaCopy{hbm, tile, {}})->cost(machine).interval, ticks_from_ns(609));
  const auto hardware = make_instruction(DmaCopy{tile, hbm, {.engine = EngineKind::kScalar}});
  EXPECT_EQ(hardware->engine(machine), EngineKind::kScalar);
  EXPECT_EQ(hardware->cost(machine).dma.dge, DgeMode::kHardware);
  EXPECT_EQ(hardware->cost(machine).interval, ticks_from_ns(533));
  const Machine first = test_machine("trn1");
  EXPECT_EQ(load->cost(first).dma.dge, DgeMode::kNone);
  EXPECT_EQ(load->engine(first), EngineKind::kSync);
}

}  // namespace
}  // namespace trena
