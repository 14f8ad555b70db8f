// tensor_scalar_reduce, tensor_scalar_cumulative, range_select, select_reduce (which share the
// accumulators of the vector engine), max8 and its kin, bn_stats, bn_aggr, tensor_partition_reduce.
#include "isa_fixture.h"
#include "trena/isa/gpsimd/tensor_partition_reduce.h"
#include "trena/isa/vector/bn_stats.h"
#include "trena/isa/vector/select.h"
#include "trena/isa/vector/tensor_scalar_cumulative.h"
#include "trena/isa/vector/tensor_scalar_reduce.h"
#include "trena/isa/vector/top8.h"

namespace trena {
namespace {

using namespace isa_test;
using enum DType;

Reduction reduction(AluOp op, ReduceCommand command, std::optional<Tensor> result = std::nullopt,
                    std::optional<Operand> initial = std::nullopt) {
  return {op, command, std::move(result), std::move(initial)};
}

TEST(TensorScalarReduce, ReducesItsResult) {
  Bench bench;
  const Tensor data = bench.of({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor out = bench.make({2, 3}, kBfloat16), sum = bench.make({2, 1});
  const auto run = [&](AluOp op, ReduceCommand command, std::optional<Operand> initial = {},
                       bool negate = false) {
    bench.run<TensorScalarReduce>(out, data, ScalarStep{AluOp::kMultiply, 10.0},
                                  reduction(op, command, sum, initial), negate);
    return values_of(sum);
  };
  EXPECT_EQ(run(AluOp::kAdd, ReduceCommand::kResetReduce), (Values{60, 150}));
  EXPECT_EQ(values_of(out), (Values{10, 20, 30, 40, 50, 60}));
  EXPECT_EQ(run(AluOp::kAdd, ReduceCommand::kReduce), (Values{120, 300}));
  EXPECT_EQ(run(AluOp::kAdd, ReduceCommand::kReduce, {}, true), (Values{-180, -450}));
  EXPECT_EQ(run(AluOp::kAdd, ReduceCommand::kReduce), (Values{240, 600}));
  EXPECT_EQ(run(AluOp::kMaximum, ReduceCommand::kResetReduce), (Values{30, 60}));
  EXPECT_EQ(run(AluOp::kMinimum, ReduceCommand::kLoadReduce, Operand(15.0)), (Values{10, 15}));
}

TEST(TensorScalarReduce, ChecksAndCosts) {  // hw.md §2.3: max(MIN_II, N) + MIN_II
  Bench bench;
  const Tensor t = bench.of({128, 512}, {1}), sum = bench.make({128, 1});
  const auto id = [&](ScalarStep step, Reduction reduce) {
    return bench.id<TensorScalarReduce>(t, t, step, reduce, false);
  };
  const Reduction fresh = reduction(AluOp::kAdd, ReduceCommand::kResetReduce, sum);
  EXPECT_EQ(id({AluOp::kAdd, 1.0}, fresh), "legal");
  EXPECT_EQ(id({AluOp::kAdd, 1.0, true}, fresh), "reverse-refused");
  EXPECT_EQ(id({AluOp::kBitwiseOr, 1.0}, fresh), "operator-refused");
  EXPECT_EQ(id({AluOp::kAdd, 1.0}, reduction(AluOp::kSubtract, ReduceCommand::kReduce)),
            "operator-refused");
  EXPECT_EQ(id({AluOp::kAdd, 1.0}, reduction(AluOp::kAdd, ReduceCommand::kIdle)), "reduce-cmd");
  EXPECT_EQ(id({AluOp::kAdd, 1.0}, reduction(AluOp::kAdd, ReduceCommand::kLoadReduce)),
            "reduce-init");
  EXPECT_NEAR(bench.completion_ns(
                  bench.run<TensorScalarReduce>(t, t, ScalarStep{AluOp::kAdd, 1.0}, fresh, false)),
              160.3 + 0.5208 * 512 + 64 / 0.96, 5);
}

TEST(TensorScalarCumulative, RunsAlongTheRow) {
  Bench bench;
  const Tensor data = bench.of({1, 4}, {1, 2, 3, 4});
  const Tensor out = bench.make({1, 4});
  const auto run = [&](AluOp op0, AluOp op1, ReduceCommand command,
                       std::optional<Operand> initial = {}) {
    bench.run<TensorScalarCumulative>(out, data, op0, Operand(2.0),
                                      reduction(op1, command, std::nullopt, initial));
    return values_of(out);
  };
  EXPECT_EQ(run(AluOp::kMultiply, AluOp::kAdd, ReduceCommand::kResetReduce),
            (Values{2, 6, 12, 20}));
  EXPECT_EQ(run(AluOp::kMultiply, AluOp::kAdd, ReduceCommand::kReduce), (Values{22, 26, 32, 40}));
  EXPECT_EQ(run(AluOp::kAdd, AluOp::kMultiply, ReduceCommand::kLoadReduce, Operand(1.0)),
            (Values{3, 12, 60, 360}));
  EXPECT_EQ(run(AluOp::kAdd, AluOp::kMaximum, ReduceCommand::kResetReduce), (Values{3, 4, 5, 6}));
  // reg = (x + 2) - reg: 3, 1, 4, 2.
  EXPECT_EQ(run(AluOp::kAdd, AluOp::kSubtract, ReduceCommand::kResetReduce), (Values{3, 1, 4, 2}));
}

TEST(TensorScalarCumulative, ChecksAndCosts) {
  Bench bench;
  const Tensor t = bench.of({128, 512}, {1}), i = bench.make({128, 512}, kInt32);
  const Reduction fresh = reduction(AluOp::kAdd, ReduceCommand::kResetReduce);
  EXPECT_EQ(bench.id<TensorScalarCumulative>(i, t, AluOp::kAdd, Operand(0.0), fresh),
            "dtype-refused");
  EXPECT_EQ(bench.id<TensorScalarCumulative>(t, t, AluOp::kAdd, Operand(0.0),
                                             reduction(AluOp::kEqual, ReduceCommand::kReduce)),
            "operator-refused");
  EXPECT_NEAR(bench.completion_ns(
                  bench.run<TensorScalarCumulative>(t, t, AluOp::kAdd, Operand(0.0), fresh)),
              (150 + 512) / 0.96, 1);
}

TEST(RangeSelect, SelectsIndicesBetweenItsBounds) {
  Bench bench;
  const Tensor data = bench.of({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor low = bench.of({2, 1}, {1, 10}), high = bench.of({2, 1}, {3, 20});
  const Tensor out = bench.make({2, 4}), most = bench.make({2, 1}),
               half = bench.make({2, 4}, kBfloat16);
  const IndexRange range{AluOp::kGreaterEqual, AluOp::kLess, low, high, 0};
  const Reduction fresh = reduction(AluOp::kMaximum, ReduceCommand::kResetReduce, most);
  bench.run<RangeSelect>(out, data, range, RangeSelect::kFill, fresh);
  const double fill = RangeSelect::kFill;
  EXPECT_EQ(values_of(out), (Values{fill, 2, 3, fill, fill, fill, fill, fill}));
  EXPECT_EQ(values_of(most), (Values{3, fill}));
  const IndexRange later{AluOp::kGreaterEqual, AluOp::kLess, low, high, 9};
  bench.run<RangeSelect>(half, data, later, RangeSelect::kFill, fresh);
  EXPECT_EQ(values_of(half), (Values{-kInf, -kInf, -kInf, -kInf, -kInf, 6, 7, 8}));  // hw.md §3.7
  EXPECT_EQ(bench.id<RangeSelect>(out, data, range, 0.0F, fresh), "select-fill");
  IndexRange far = range;
  far.start = (1 << 24) - 3;
  EXPECT_EQ(bench.id<RangeSelect>(out, data, far, RangeSelect::kFill, fresh), "select-range");
  Bench trn1("trn1");
  const Tensor t = trn1.make({128, 8}), lane = trn1.make({128, 1});
  EXPECT_EQ(trn1.id<RangeSelect>(t, t, IndexRange{AluOp::kLess, AluOp::kLess, lane, lane, 0},
                                 RangeSelect::kFill, Reduction{}),
            "not-on-this-machine");
}

TEST(SelectReduce, SelectsAndReduces) {
  Bench bench;
  const Tensor data = bench.of({2, 3}, {1, 2, 3, 4, 5, 6}, kBfloat16);
  const Tensor predicate = bench.of({2, 3}, {1, 0, -1, 0, 1, 0}, kInt8);
  const Tensor other = bench.of({2, 1}, {9, -9});
  const Tensor out = bench.make({2, 3}), most = bench.make({2, 1});
  bench.run<SelectReduce>(out, predicate, data, Operand(other),
                          reduction(AluOp::kMaximum, ReduceCommand::kResetReduce, most), false);
  EXPECT_EQ(values_of(out), (Values{1, 9, 3, -9, 5, -9}));
  EXPECT_EQ(values_of(most), (Values{9, 5}));
  bench.run<SelectReduce>(out, predicate, data, Operand(0.0), Reduction{}, true);
  EXPECT_EQ(values_of(out), (Values{0, 2, 0, 4, 0, 6}));
  EXPECT_EQ(bench.id<SelectReduce>(out, bench.make({2, 3}, kUint32), data, Operand(0.0),
                                   Reduction{}, false),
            "dtype-refused");
  EXPECT_EQ(bench.id<SelectReduce>(out, predicate, bench.make({2, 3}, kInt32), Operand(0.0),
                                   Reduction{}, false),
            "dtype-refused");
}

TEST(Top8, FindsLargestValuesInOrder) {
  Bench bench;
  const Tensor data = bench.of({1, 12}, {3, -1, 7, 7, 0, 12, 5, 2, 9, 1, 4, 8});
  const Tensor top = bench.make({1, 8}), at = bench.make({1, 8}, kUint32);
  bench.run<Max8>(top, data);
  EXPECT_EQ(values_of(top), (Values{12, 9, 8, 7, 7, 5, 4, 3}));
  bench.run<NcFindIndex8>(at, data, top);
  EXPECT_EQ(values_of(at), (Values{5, 8, 11, 2, 3, 6, 10, 0}));
  const Tensor wanted = bench.of({1, 8}, {7, 7, 7, 100, 0, 1, 2, 3});
  const Tensor narrow = bench.make({1, 8}, kUint16);
  bench.run<NcFindIndex8>(narrow, data, wanted);
  EXPECT_EQ(values_of(narrow), (Values{2, 3, 65535, 65535, 4, 9, 7, 0}));
}

TEST(Top8, ReplacesFromTheLastValueOn) {  // the example of the nki.isa reference
  Bench bench;
  const Tensor data = bench.of({1, 11}, {1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8});
  const Tensor values = bench.of({1, 8}, {3, 8, 8, 8, 8, 8, 8, 8});
  const Tensor out = bench.make({1, 11}), at = bench.make({1, 8}, kUint32);
  bench.run<NcMatchReplace8>(out, data, values, 0.0F, at);
  EXPECT_EQ(values_of(at), (Values{2, 10, 9, 8, 7, 6, 5, 4}));
  EXPECT_EQ(values_of(out), (Values{1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0}));
  const Tensor few = bench.of({1, 8}, {8, 8, 50, 50, 50, 50, 50, 50});
  bench.run<NcMatchReplace8>(data, data, few, -kInf, std::nullopt);
  EXPECT_EQ(values_of(data), (Values{1, 2, 3, 4, -kInf, -kInf, 8, 8, 8, 8, 8}));
}

TEST(Top8, ChecksAndCosts) {  // nki-library: N + 144 cycles
  Bench bench;
  const Tensor eight = bench.make({128, 8});
  EXPECT_EQ(bench.id<Max8>(eight, bench.make({128, 7})), "top8-size");
  EXPECT_EQ(bench.id<Max8>(eight, bench.make({128, 16385})), "top8-size");
  EXPECT_EQ(bench.id<Max8>(bench.make({128, 4}), eight), "top8-size");
  EXPECT_EQ(bench.id<NcFindIndex8>(eight, eight, eight), "dtype-refused");
  const Tensor data = bench.of({128, 512}, {1});
  EXPECT_NEAR(bench.completion_ns(bench.run<Max8>(eight, data)), (144 + 512) / 0.96, 1);
}

TEST(BnStats, AggregatesToMeanAndVariance) {
  Bench bench;
  const Tensor data = bench.of({1, 7}, {1, 2, 3, 4, 5, 6, 7});
  const Tensor statistics = bench.make({1, 12}), result = bench.make({1, 2});
  bench.run<BnStats>(columns(statistics, 0, 6), data);
  // 1, 3, 5, 7: mean 4, squares 9+1+1+9; 2, 4, 6: mean 4, squares 4+0+4.
  EXPECT_EQ(values_of(columns(statistics, 0, 6)), (Values{4, 4, 20, 3, 4, 8}));
  bench.run<BnAggregate>(result, columns(statistics, 0, 6));
  EXPECT_EQ(values_of(result), (Values{4, 4}));  // variance of 1 … 7 is 28 / 7
  const Tensor more = bench.of({1, 1}, {12});
  bench.run<BnStats>(columns(statistics, 6, 6), more);
  EXPECT_EQ(values_of(columns(statistics, 6, 6)), (Values{1, 12, 0, 0, 0, 0}));
  bench.run<BnAggregate>(result, statistics);
  EXPECT_EQ(values_of(result), (Values{5, 10.5}));  // (1+…+7+12)/8; (16+9+4+1+0+1+4+49)/8
}

TEST(BnStats, ChecksAndCosts) {  // hw.md §2.3
  Bench bench;
  const Tensor data = bench.of({128, 512}, {1}), six = bench.make({128, 6}),
               two = bench.make({128, 2});
  EXPECT_EQ(bench.id<BnStats>(six, bench.make({128, 513})), "bn-stats-size");
  EXPECT_EQ(bench.id<BnStats>(two, data), "bn-stats-size");
  EXPECT_EQ(bench.id<BnAggregate>(two, bench.make({128, 7})), "bn-stats-size");
  EXPECT_NEAR(bench.completion_ns(bench.run<BnStats>(six, data)), (150 + 512) / 0.96, 1);
  EXPECT_NEAR(bench.completion_ns(bench.run<BnAggregate>(two, six)), (150 + 26) / 0.96, 1);
}

TEST(TensorPartitionReduce, AddsUpPartitions) {
  Bench bench;
  const Tensor data = bench.filled({128, 2}, [](std::int64_t i) { return double(i); });
  const Tensor out = bench.make({1, 2});
  const auto run = [&](AluOp op) {
    bench.run<TensorPartitionReduce>(out, op, data);
    return values_of(out);
  };
  EXPECT_EQ(run(AluOp::kAdd), (Values{16256, 16384}));  // 2 x 127 x 128 / 2, and 128 more
  EXPECT_EQ(run(AluOp::kAverage), (Values{127, 128}));
  EXPECT_EQ(run(AluOp::kMaximum), (Values{254, 255}));
  const Tensor bits = bench.filled({4, 1}, [](std::int64_t i) { return double(1 << i); }, kInt32);
  const Tensor word = bench.make({1, 1}, kInt32);
  bench.run<TensorPartitionReduce>(word, AluOp::kBitwiseOr, bits);
  EXPECT_EQ(values_of(word), (Values{15}));
  const Tensor big = bench.of({2, 1}, {16777217, -1}, kInt32);
  bench.run<TensorPartitionReduce>(word, AluOp::kAdd, big);
  EXPECT_EQ(values_of(word), (Values{16777216}));
  bench.run<TensorPartitionReduce>(word, AluOp::kMaximum, big);
  EXPECT_EQ(values_of(word), (Values{16777217}));
  EXPECT_EQ(bench.id<TensorPartitionReduce>(out, AluOp::kMinimum, data), "operator-refused");
  EXPECT_EQ(bench.id<TensorPartitionReduce>(bench.make({2, 2}), AluOp::kAdd, data),
            "partition-mismatch");
  EXPECT_EQ(bench.id<TensorPartitionReduce>(out, AluOp::kAdd, bench.psum({128, 2})),
            "memory-refused");
}

}  // namespace
}  // namespace trena
