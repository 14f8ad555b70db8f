// tensor_tensor_scan, scalar_tensor_tensor, nc_stream_shuffle, tensor_copy_predicated, iota,
// affine_select. Times: hw.md §2.4 (measured, Trainium2) and §2.3 (documented cycles).
#include "isa_fixture.h"
#include "trena/isa/gpsimd/affine_select.h"
#include "trena/isa/gpsimd/iota.h"
#include "trena/isa/vector/nc_stream_shuffle.h"
#include "trena/isa/vector/scalar_tensor_tensor.h"
#include "trena/isa/vector/tensor_copy_predicated.h"
#include "trena/isa/vector/tensor_tensor_scan.h"

namespace trena {
namespace {

using namespace isa_test;
using enum DType;

TEST(TensorTensorScan, CarriesItsState) {
  Bench bench;
  const Tensor decay = bench.of({2, 4}, {2, 2, 2, 2, 0.5, 0.5, 0.5, 0.5});
  const Tensor input = bench.of({2, 4}, {1, 2, 3, 4, 8, 8, 8, 8}, kBfloat16);
  const Tensor out = bench.make({2, 4});
  bench.run<TensorTensorScan>(out, decay, input, Operand(0.0), ScanOperators{});
  EXPECT_EQ(values_of(out), (Values{1, 4, 11, 26, 8, 12, 14, 15}));
  const Tensor seed = bench.of({2, 1}, {10, 0});
  bench.run<TensorTensorScan>(out, decay, input, Operand(seed), ScanOperators{});
  EXPECT_EQ(values_of(out), (Values{21, 44, 91, 186, 8, 12, 14, 15}));
}

TEST(TensorTensorScan, ReversesItsOperators) {
  Bench bench;
  const Tensor a = bench.of({1, 3}, {1, 2, 3}), b = bench.of({1, 3}, {10, 20, 30});
  const Tensor out = bench.make({1, 3});
  const auto run = [&](ScanOperators operators) {
    bench.run<TensorTensorScan>(out, a, b, Operand(5.0), operators);
    return values_of(out);
  };
  // (a - s) + b: 1-5+10 = 6, 2-6+20 = 16, 3-16+30 = 17.
  EXPECT_EQ(run({AluOp::kSubtract, AluOp::kAdd, false, false}), (Values{6, 16, 17}));
  // (s - a) + b: 14, 32, 59.
  EXPECT_EQ(run({AluOp::kSubtract, AluOp::kAdd, true, false}), (Values{14, 32, 59}));
  // b - (a + s): 10-6 = 4, 20-6 = 14, 30-17 = 13.
  EXPECT_EQ(run({AluOp::kAdd, AluOp::kSubtract, false, true}), (Values{4, 14, 13}));
  // (s > a) + b: (5>1)+10 = 11, 21, 31.
  EXPECT_EQ(run({AluOp::kGreater, AluOp::kAdd, true, false}), (Values{11, 21, 31}));
}

TEST(TensorTensorScan, MayOverwriteItsInputs) {
  Bench bench;
  const Tensor t = bench.of({128, 5}, {1});
  bench.run<TensorTensorScan>(t, t, t, Operand(columns(t, 4, 1)), ScanOperators{});
  EXPECT_EQ(Values(values_of(t)).at(4), 6);
  EXPECT_EQ(Values(values_of(t)).back(), 6);
}

TEST(TensorTensorScan, RefusesBitvecAndTwoPsum) {
  Bench bench;
  const Tensor s = bench.make({128, 8}), p = bench.psum({128, 8});
  const auto id = [&](const Tensor& a, const Tensor& b, ScanOperators operators) {
    return bench.id<TensorTensorScan>(s, a, b, Operand(0.0), operators);
  };
  EXPECT_EQ(id(p, s, {}), "legal");
  EXPECT_EQ(id(p, p, {}), "two-psum-operands");
  EXPECT_EQ(id(s, s, {AluOp::kBitwiseAnd, AluOp::kAdd, false, false}), "operator-refused");
  EXPECT_EQ(id(s, s, {AluOp::kAdd, AluOp::kAbs, false, false}), "operator-refused");
}

TEST(TensorTensorScan, CostsTwoCyclesPerElement) {  // hw.md §2.4
  Bench bench;
  const Tensor t = bench.of({128, 512}, {1}), seed = bench.of({128, 1}, {1});
  const auto time = [&](const Operand& initial) {
    return bench.completion_ns(bench.run<TensorTensorScan>(
        t, t, t, initial, ScanOperators{AluOp::kMaximum, AluOp::kMinimum, false, false}));
  };
  EXPECT_NEAR(time(0.0), 157.7 + 2.0833 * 512, 12);
  EXPECT_NEAR(time(seed), 157.7 + 60 + 2.0833 * 512, 12);
  Bench trn1("trn1");
  const Tensor u = trn1.of({128, 512}, {1});
  EXPECT_NEAR(
      trn1.completion_ns(trn1.run<TensorTensorScan>(u, u, u, Operand(0.0), ScanOperators{})),
      (150 + 1024) / 1.12, 1);
}

TEST(ScalarTensorTensor, CombinesALaneAndATile) {
  Bench bench;
  const Tensor data = bench.of({2, 2}, {1, 2, 3, 4}), tile = bench.of({2, 2}, {10, 20, 30, 40});
  const Tensor lane = bench.of({2, 1}, {2, 3}, kBfloat16);
  const Tensor out = bench.make({2, 2});
  bench.run<ScalarTensorTensor>(out, data, ScalarStep{AluOp::kMultiply, lane}, AluOp::kSubtract,
                                tile, false);
  EXPECT_EQ(values_of(out), (Values{-8, -16, -21, -28}));
  bench.run<ScalarTensorTensor>(out, data, ScalarStep{AluOp::kSubtract, 10.0, true},
                                AluOp::kSubtract, tile, true);
  EXPECT_EQ(values_of(out), (Values{1, 12, 23, 34}));
  bench.run<ScalarTensorTensor>(tile, data, ScalarStep{AluOp::kAdd, 1.0}, AluOp::kMultiply, tile,
                                false);
  EXPECT_EQ(values_of(tile), (Values{20, 60, 120, 200}));
}

TEST(ScalarTensorTensor, ChecksAndCosts) {  // hw.md §2.3: about a tensor_tensor
  Bench bench;
  const Tensor t = bench.of({128, 512}, {1}), p = bench.of({128, 512}, {1}, kFloat32, Space::kPsum);
  const Tensor lane = bench.of({128, 1}, {1});
  EXPECT_EQ(bench.id<ScalarTensorTensor>(t, p, ScalarStep{AluOp::kAdd, 1.0}, AluOp::kAdd, p, false),
            "two-psum-operands");
  EXPECT_EQ(
      bench.id<ScalarTensorTensor>(t, t, ScalarStep{AluOp::kLeftShift, 1.0}, AluOp::kAdd, t, false),
      "operator-refused");
  const auto time = [&](const Operand& operand) {
    return bench.completion_ns(bench.run<ScalarTensorTensor>(t, t, ScalarStep{AluOp::kAdd, operand},
                                                             AluOp::kAdd, t, false));
  };
  EXPECT_NEAR(time(1.0), 158.7 + 1.0417 * 512, 7);
  EXPECT_NEAR(time(lane), 158.7 + 57 + 1.0417 * 512, 8);
}

std::vector<std::int64_t> mask(const std::function<std::int64_t(std::int64_t)>& entry) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < 32; ++i) {
    result.push_back(entry(i));
  }
  return result;
}

TEST(NcStreamShuffle, ShufflesEachQuadrant) {
  Bench bench;
  const Tensor t = bench.filled({64, 2}, [](std::int64_t i) { return double(i); }, kInt32);
  bench.run<NcStreamShuffle>(t, t, mask([](std::int64_t i) { return 31 - i; }));
  const Values found = values_of(t);
  EXPECT_EQ(found[0], 62);    // partition 0 took 31
  EXPECT_EQ(found[63], 1);    // partition 31 took 0
  EXPECT_EQ(found[64], 126);  // partition 32 took 63
  EXPECT_EQ(found[127], 65);
}

TEST(NcStreamShuffle, LeavesMaskedPartitionsAlone) {
  Bench bench;
  const Tensor src = bench.filled({32, 1}, [](std::int64_t i) { return double(i); });
  const Tensor dst = bench.make({32, 1});
  bench.run<NcStreamShuffle>(partitions(dst, 0, 16), partitions(src, 0, 1),
                             mask([](std::int64_t i) { return i == 3 ? 255 : 0; }));
  EXPECT_TRUE(is_written(partitions(dst, 0, 3)));
  EXPECT_FALSE(is_written(partitions(dst, 3, 1)));
  EXPECT_TRUE(is_written(partitions(dst, 4, 12)));
  EXPECT_FALSE(is_written(partitions(dst, 16, 1)));
  EXPECT_EQ(values_of(partitions(dst, 4, 2)), (Values{0, 0}));
}

TEST(NcStreamShuffle, RefusesWrongMasksAndPlaces) {
  Bench bench;
  const Tensor t = bench.make({128, 4}), other = bench.make({128, 4}, kInt32);
  const auto id = [&](const Tensor& dst, const Tensor& src, std::vector<std::int64_t> entries) {
    return bench.id<NcStreamShuffle>(dst, src, std::move(entries));
  };
  const std::vector<std::int64_t> zeros(32, 0), ones(32, 1);
  EXPECT_EQ(id(t, t, zeros), "legal");
  EXPECT_EQ(id(t, t, std::vector<std::int64_t>(31, 0)), "shuffle-mask");
  EXPECT_EQ(id(t, t, std::vector<std::int64_t>(32, 32)), "shuffle-mask");
  EXPECT_EQ(id(partitions(t, 32, 32), partitions(t, 0, 1), zeros), "legal");
  EXPECT_EQ(id(partitions(t, 32, 32), partitions(t, 0, 1), ones), "shuffle-mask");
  EXPECT_EQ(id(partitions(t, 0, 40), partitions(t, 96, 32), zeros), "partition-start");
  EXPECT_EQ(id(t, other, zeros), "dtype-refused");
}

TEST(NcStreamShuffle, CostsWhatWasMeasured) {  // hw.md §2.4
  Bench bench;
  const Tensor t = bench.of({128, 512}, {1}, kBfloat16);
  EXPECT_NEAR(
      bench.completion_ns(bench.run<NcStreamShuffle>(t, t, std::vector<std::int64_t>(32, 0))),
      143 + 1.0458 * 512, 7);
}

TEST(TensorCopyPredicated, CopiesWhereThePredicateHolds) {
  Bench bench;
  const Tensor predicate = bench.of({1, 4}, {0, 1, 0, 200}, kUint8);
  const Tensor src = bench.of({1, 4}, {1, 2, 3, 4}), dst = bench.of({1, 4}, {-1, -2, -3, -4});
  bench.run<TensorCopyPredicated>(dst, Operand(src), predicate, false);
  EXPECT_EQ(values_of(dst), (Values{-1, 2, -3, 4}));
  bench.run<TensorCopyPredicated>(dst, Operand(0.5), predicate, true);
  EXPECT_EQ(values_of(dst), (Values{0.5, 2, 0.5, 4}));
}

TEST(TensorCopyPredicated, WritesOnlyWhatItCopies) {
  Bench bench;
  const Tensor predicate = bench.of({2, 2}, {0, 1, 1, 0}, kUint16);
  const Tensor dst = bench.make({2, 2}, kBfloat16);
  bench.run<TensorCopyPredicated>(dst, Operand(3.0), predicate, false);
  EXPECT_FALSE(is_written(dst));
  EXPECT_TRUE(is_written(partitions(columns(dst, 1, 1), 0, 1)));
  bench.run<TensorCopyPredicated>(dst, Operand(4.0), predicate, true);
  EXPECT_TRUE(is_written(dst));
  EXPECT_EQ(values_of(dst), (Values{4, 3, 3, 4}));
}

TEST(TensorCopyPredicated, ChecksAndCosts) {
  Bench bench;
  const Tensor t = bench.of({128, 512}, {1}), p = bench.make({128, 512}, kUint8, Space::kPsum);
  const Tensor predicate = bench.of({128, 512}, {1}, kUint8);
  const auto id = [&](const Tensor& src, const Tensor& which) {
    return bench.id<TensorCopyPredicated>(t, Operand(src), which, false);
  };
  EXPECT_EQ(id(t, predicate), "legal");
  EXPECT_EQ(id(t, bench.make({128, 512}, kInt8)), "dtype-refused");
  EXPECT_EQ(id(bench.make({128, 512}, kInt32), predicate), "dtype-refused");
  EXPECT_EQ(id(bench.psum({128, 512}), p), "two-psum-operands");
  EXPECT_NEAR(
      bench.completion_ns(bench.run<TensorCopyPredicated>(t, Operand(1.0), predicate, false)),
      155.5 + 1.109 * 512, 7);
  Bench trn1("trn1");
  const Tensor u = trn1.of({128, 64}, {1}), which = trn1.of({128, 64}, {1}, kUint8);
  EXPECT_NEAR(trn1.completion_ns(trn1.run<TensorCopyPredicated>(u, Operand(u), which, false)),
              (150 + 128) / 1.12, 1);
}

TEST(Iota, CountsThroughItsPattern) {
  Bench bench;
  const Tensor t = bench.make({2, 2, 3}, kInt32);
  bench.run<Iota>(t, AffinePattern{{{10, 2}, {1, 3}}, 5, 100});
  EXPECT_EQ(values_of(t), (Values{5, 6, 7, 15, 16, 17, 105, 106, 107, 115, 116, 117}));
  const Tensor half = bench.make({2, 2}, kBfloat16);
  bench.run<Iota>(half, AffinePattern{{{-257, 2}}, 0, 1});
  EXPECT_EQ(values_of(half), (Values{0, -256, 1, -256}));  // -257 lies half way: to even
  EXPECT_EQ(bench.id<Iota>(t, AffinePattern{{{1, 5}}, 0, 0}), "affine-pattern");
  EXPECT_EQ(bench.id<Iota>(t, AffinePattern{{{1, 6}}, std::int64_t{1} << 31, 0}), "affine-pattern");
  EXPECT_EQ(bench.id<Iota>(bench.psum({2, 6}), AffinePattern{{{1, 6}}, 0, 0}), "memory-refused");
}

TEST(Iota, CostsStartUpAndOneCyclePerElement) {  // hw.md §2.3: 150 + N, and 60 of drain
  for (const auto& [machine, ghz] : {std::pair{"trn1", 1.4}, {"trn2", 1.2}}) {
    Bench bench(machine);
    EXPECT_NEAR(bench.completion_ns(bench.run<Iota>(bench.make({128, 512}, kInt32),
                                                    AffinePattern{{{1, 512}}, 0, 0})),
                (210 + 512) / ghz, 1)
        << machine;
  }
}

TEST(AffineSelect, MakesACausalMask) {
  Bench bench;
  const Tensor scores = bench.filled({3, 3}, [](std::int64_t i) { return double(i + 1); });
  const Tensor out = bench.make({3, 3}, kBfloat16);
  // row - column >= 0
  bench.run<AffineSelect>(out, AffinePattern{{{-1, 3}}, 0, 1}, scores, -100.0F,
                          AluOp::kGreaterEqual);
  EXPECT_EQ(values_of(out), (Values{1, -100, -100, 4, 5, -100, 7, 8, 9}));
  bench.run<AffineSelect>(scores, AffinePattern{{{-1, 3}}, 0, 1}, scores, 0.0F, AluOp::kEqual);
  EXPECT_EQ(values_of(scores), (Values{1, 0, 0, 0, 5, 0, 0, 0, 9}));
}

TEST(AffineSelect, KeepsBitsOfEqualTypes) {
  Bench bench;
  const Tensor t = bench.of({1, 2}, {16777217, 16777217}, kInt32);
  bench.run<AffineSelect>(t, AffinePattern{{{1, 2}}, 0, 0}, t, 7.0F, AluOp::kEqual);
  EXPECT_EQ(values_of(t), (Values{16777217, 7}));
}

TEST(AffineSelect, ChecksAndCosts) {  // hw.md §2.4
  Bench bench;
  const Tensor t = bench.of({128, 512}, {1});
  const AffinePattern pattern{{{1, 512}}, 0, 0};
  EXPECT_EQ(bench.id<AffineSelect>(t, pattern, bench.psum({128, 512}), 0.0F, AluOp::kEqual),
            "memory-refused");
  EXPECT_EQ(bench.id<AffineSelect>(t, pattern, t, 0.0F, AluOp::kAdd), "operator-refused");
  EXPECT_NEAR(bench.completion_ns(bench.run<AffineSelect>(t, pattern, t, 0.0F, AluOp::kEqual)),
              176.9 + 0.8458 * 512, 12);
}

}  // namespace
}  // namespace trena
