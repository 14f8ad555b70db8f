// tensor_tensor, memset, tensor_scalar, tensor_reduce. Expected times are literals of hw.md §2.4
// (measured laws of Trainium2) or of the documented cycle counts of Trainium1 (hw.md §2.3).
#include "isa_fixture.h"
#include "trena/isa/vector/memset.h"
#include "trena/isa/vector/tensor_copy.h"
#include "trena/isa/vector/tensor_reduce.h"
#include "trena/isa/vector/tensor_scalar.h"
#include "trena/isa/vector/tensor_tensor.h"
#include "trena/number/threads.h"

namespace trena {
namespace {

using namespace isa_test;
using enum DType;

EngineRequest any_engine() { return std::nullopt; }

TEST(TensorTensor, ComputesInFloat32AndRoundsOnce) {
  Bench bench;
  const Tensor a = bench.of({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor b = bench.of({2, 3}, {10, 20, 30, 40, 50, 60}, kBfloat16);
  const Tensor sum = bench.make({2, 3});
  bench.run<TensorTensor>(sum, a, b, AluOp::kAdd, any_engine());
  EXPECT_EQ(values_of(sum), (Values{11, 22, 33, 44, 55, 66}));
  const Tensor difference = bench.make({2, 3}, kInt8);
  bench.run<TensorTensor>(difference, a, b, AluOp::kSubtract, any_engine());
  EXPECT_EQ(values_of(difference), (Values{-9, -18, -27, -36, -45, -54}));
  // 1 + 2^-9 is not a bfloat16: half of an ulp (2^-7), and a quarter: down; 1 + 3 x 2^-9 up.
  const Tensor fine = bench.of({1, 2}, {1.0 / 512, 3.0 / 512});
  const Tensor one = bench.of({1, 2}, {1, 1});
  const Tensor rounded = bench.make({1, 2}, kBfloat16);
  bench.run<TensorTensor>(rounded, one, fine, AluOp::kAdd, any_engine());
  EXPECT_EQ(values_of(rounded), (Values{1, 1 + 1.0 / 128}));
}

TEST(TensorTensor, FloatToIntegerRoundsHalfToEvenAndSaturates) {
  Bench bench;
  const Tensor a = bench.of({1, 5}, {0.5, 1.5, 2.5, 300, -300});
  const Tensor zero = bench.of({1, 5}, {0});
  const Tensor out = bench.make({1, 5}, kInt8);
  bench.run<TensorTensor>(out, a, zero, AluOp::kAdd, any_engine());
  EXPECT_EQ(values_of(out), (Values{0, 2, 2, 127, -128}));
}

TEST(TensorTensor, IntegersAreExactOnGpsimdOnly) {  // nki.md §5.2-9
  Bench bench;
  const Tensor a = bench.of({1, 2}, {16777217, 2147483647}, kInt32);
  const Tensor b = bench.of({1, 2}, {2, 1}, kInt32);
  const Tensor out = bench.make({1, 2}, kInt32);
  const Instruction& exact = bench.run<TensorTensor>(out, a, b, AluOp::kAdd, any_engine());
  EXPECT_EQ(exact.engine(bench.machine()), EngineKind::kGpsimd);
  EXPECT_EQ(values_of(out), (Values{16777219, -2147483648.0}));
  const Instruction& lossy =
      bench.run<TensorTensor>(out, a, b, AluOp::kAdd, EngineRequest(EngineKind::kVector));
  EXPECT_EQ(lossy.engine(bench.machine()), EngineKind::kVector);
  EXPECT_EQ(values_of(out),
            (Values{16777218, 2147483647}));  // 2^24 + 1 becomes 2^24; 2^31 saturates
  const Tensor psum = bench.of({1, 2}, {16777217, 5}, kInt32, Space::kPsum);
  const Instruction& from_psum = bench.run<TensorTensor>(out, psum, b, AluOp::kAdd, any_engine());
  EXPECT_EQ(from_psum.engine(bench.machine()), EngineKind::kVector);
  EXPECT_EQ(values_of(out), (Values{16777218, 6}));
}

TEST(TensorTensor, UnsignedComparesAsUnsigned) {
  Bench bench;
  const Tensor a = bench.of({1, 2}, {4294967295.0, 1}, kUint32);
  const Tensor b = bench.of({1, 2}, {1, 4294967295.0}, kUint32);
  const Tensor out = bench.make({1, 2}, kUint32);
  bench.run<TensorTensor>(out, a, b, AluOp::kMaximum, any_engine());
  EXPECT_EQ(values_of(out), (Values{4294967295.0, 4294967295.0}));
}

TEST(TensorTensor, BitvecOperatorsSeeRawBits) {
  Bench bench;
  const Tensor a = bench.of({1, 3}, {0xF0F0F0F1, 0x80000000, 7}, kUint32);
  const Tensor b = bench.of({1, 3}, {0xFFFF0001, 4, 3}, kUint32);
  const Tensor out = bench.make({1, 3}, kUint32);
  const Instruction& both = bench.run<TensorTensor>(out, a, b, AluOp::kBitwiseAnd, any_engine());
  EXPECT_EQ(both.engine(bench.machine()), EngineKind::kVector);
  EXPECT_EQ(values_of(out), (Values{double(0xF0F00001), 0, 3}));
  const Tensor narrow = bench.of({1, 2}, {-1, -128}, kInt8);
  const Tensor shift = bench.of({1, 2}, {1, 7}, kInt8);
  const Tensor shifted = bench.make({1, 2}, kInt8);
  bench.run<TensorTensor>(shifted, narrow, shift, AluOp::kRightShift, any_engine());
  EXPECT_EQ(values_of(shifted), (Values{127, 1}));  // logical
}

TEST(TensorTensor, ReadsARowBeforeItWritesIt) {
  for (const std::int64_t rows : {1, 128}) {
    Bench bench;
    const Tensor t = bench.filled({rows, 40}, [](std::int64_t i) { return double(i % 40); });
    const Tensor left = columns(t, 0, 39), right = columns(t, 1, 39);
    bench.run<TensorTensor>(right, left, right, AluOp::kAdd, any_engine());
    Values expected = {0};
    for (int i = 1; i < 40; ++i) {
      expected.push_back(i + i - 1);
    }
    const Values found = values_of(t);
    EXPECT_EQ(Values(found.begin(), found.begin() + 40), expected) << rows;
    EXPECT_EQ(Values(found.end() - 40, found.end()), expected) << rows;
    bench.run<TensorTensor>(t, t, t, AluOp::kMultiply, any_engine());
    EXPECT_EQ(values_of(t)[15], 29.0 * 29.0);
  }
}

TEST(TensorTensor, WalksStridedAndHigherRankViews) {
  Bench bench;
  const Tensor base = bench.filled({64, 24}, [](std::int64_t i) { return double(i % 24); });
  // [64, 2, 3, 2]: steps 12, 4, 2 elements.
  const std::vector<Dim> dims = {base.dim(0), {2, 48}, {3, 16}, {2, 8}};
  const Tensor view = base.with(kFloat32, base.offset_bytes(), dims);
  const Tensor ones = bench.of({64, 12}, {1}, kFloat16);
  const Tensor out = bench.make({64, 12}, kFloat16);
  bench.run<TensorTensor>(out, view, ones, AluOp::kAdd, any_engine());
  const Values found = values_of(out);
  EXPECT_EQ(Values(found.end() - 12, found.end()),
            (Values{1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23}));
}

TEST(TensorTensor, RefusesWhatNoEngineDoes) {
  Bench bench;
  const Tensor a = bench.make({128, 8}), b = bench.make({128, 8});
  const Tensor p = bench.psum({128, 8}), q = bench.psum({128, 8});
  const auto id = [&](const Tensor& dst, const Tensor& x, const Tensor& y, AluOp op,
                      EngineRequest engine = std::nullopt) {
    return bench.id<TensorTensor>(dst, x, y, op, engine);
  };
  EXPECT_EQ(id(a, p, b, AluOp::kAdd), "legal");
  EXPECT_EQ(id(p, a, b, AluOp::kAdd), "legal");
  EXPECT_EQ(id(a, p, q, AluOp::kAdd), "two-psum-operands");
  EXPECT_EQ(id(a, p, b, AluOp::kPower), "memory-refused");
  EXPECT_EQ(id(a, a, b, AluOp::kPower), "legal");
  EXPECT_EQ(id(a, a, b, AluOp::kPower, EngineKind::kVector), "operator-refused");
  EXPECT_EQ(id(a, a, b, AluOp::kAbs), "operator-refused");
  EXPECT_EQ(id(a, a, b, AluOp::kBitwiseOr), "dtype-refused");
  EXPECT_EQ(id(a, a, b, AluOp::kAdd, EngineKind::kScalar), "engine-refused");
  EXPECT_EQ(id(a, a, bench.make({64, 8}), AluOp::kAdd), "partition-mismatch");
  EXPECT_EQ(id(a, a, bench.make({128, 4}), AluOp::kAdd), "element-mismatch");
  EXPECT_EQ(id(a, a, bench.make({128, 2, 4}), AluOp::kAdd), "legal");
  EXPECT_EQ(id(a, a, bench.make({128, 8}, kFloat8E4m3fn), AluOp::kAdd), "dtype-refused");
  EXPECT_EQ(id(partitions(a, 16, 32), partitions(a, 0, 32), partitions(b, 0, 32), AluOp::kAdd),
            "partition-start");
  const Tensor i = bench.make({128, 8}, kInt32);
  EXPECT_EQ(id(i, i, i, AluOp::kBitwiseOr, EngineKind::kGpsimd), "operator-refused");
  EXPECT_EQ(id(a, a, b, AluOp::kAbsMax), "operator-refused");
  Bench trn3("trn3");
  const Tensor c = trn3.make({128, 8}, kFloat8E4m3fn);
  EXPECT_EQ(trn3.id<TensorTensor>(c, c, c, AluOp::kAbsMax, any_engine()), "legal");
}

TEST(TensorTensor, CostsWhatWasMeasured) {  // hw.md §2.4
  const auto time = [](std::string_view machine, DType dtype, Space first, std::int64_t n) {
    Bench bench(machine);
    const Tensor a = bench.of({128, n}, {1}, dtype, first), b = bench.of({128, n}, {1}, dtype);
    return bench.completion_ns(
        bench.run<TensorTensor>(bench.make({128, n}, dtype), a, b, AluOp::kAdd, std::nullopt));
  };
  EXPECT_NEAR(time("trn2", kFloat32, Space::kSbuf, 512), 158.7 + 1.0417 * 512, 7);
  EXPECT_NEAR(time("trn2", kFloat32, Space::kSbuf, 8192), 158.7 + 1.0417 * 8192, 87);
  EXPECT_NEAR(time("trn2", kBfloat16, Space::kSbuf, 512), 161.5 + 0.5166 * 512, 5);
  EXPECT_NEAR(time("trn2", kFloat32, Space::kPsum, 512), 149 + 1.043 * 512, 7);
  // trn1: 2 N + 380 to 400 cycles at 1.12 GHz, from a profiler screenshot: 14,968–14,987 ns.
  EXPECT_NEAR(time("trn1", kFloat32, Space::kSbuf, 8192), 14977, 260);
  EXPECT_NEAR(time("trn1", kFloat32, Space::kPsum, 512), (150 + 512) / 1.12, 1);
  EXPECT_NEAR(time("trn1", kBfloat16, Space::kSbuf, 512), (150 + 512) / 1.12, 1);
  EXPECT_NEAR(time("trn1", kFloat16, Space::kSbuf, 512), (150 + 1024) / 1.12, 1);
  EXPECT_NEAR(time("trn3", kFloat32, Space::kSbuf, 512), (152 + 512) / 1.2, 1);
  EXPECT_NEAR(time("trn3", kFloat8E5m2, Space::kSbuf, 512), (155 + 256) / 1.2, 1);
  EXPECT_NEAR(time("trn2", kFloat8E5m2, Space::kSbuf, 512), (152 + 512) / 0.96, 1);
}

TEST(TensorTensor, IsTheSameForAnyThreadCount) {
  const auto run = [](int threads) {
    set_thread_count(threads);
    Bench bench;
    const Tensor a = bench.filled({128, 700}, [](std::int64_t i) { return std::sin(double(i)); });
    const Tensor out = bench.make({128, 700}, kBfloat16);
    bench.run<TensorTensor>(out, a, a, AluOp::kMultiply, std::nullopt);
    return values_of(out);
  };
  const int before = thread_count();
  const Values one = run(1);
  EXPECT_EQ(one, run(3));
  set_thread_count(before);
}

TEST(TensorCopy, KeepsBitsOfEqualTypesAndCastsOthers) {  // hw.md §3.3
  Bench bench;
  const Tensor bits = bench.of({1, 3}, {double(0x7FA12345), double(0x80000000), 16777217}, kUint32);
  const std::vector<Dim> dims = {bits.dim(0), bits.dim(1)};
  const Tensor floats = bits.with(kFloat32, 0, dims);  // a signalling NaN, -0, a denormal
  const Tensor out = bench.make({1, 3});
  for (const EngineKind engine : {EngineKind::kVector, EngineKind::kGpsimd, EngineKind::kScalar}) {
    bench.run<TensorCopy>(out, floats, engine);
    EXPECT_EQ(values_of(out.with(kUint32, 0, dims)), values_of(bits)) << name(engine);
  }
  const Tensor narrow = bench.make({1, 3}, kUint8);
  bench.run<TensorCopy>(narrow, bench.of({1, 3}, {2.5, 300, -1}), any_engine());
  EXPECT_EQ(values_of(narrow), (Values{2, 255, 0}));
  Bench trn1("trn1");
  const Tensor t = trn1.make({128, 8});
  EXPECT_EQ(trn1.id<TensorCopy>(t, t, EngineRequest(EngineKind::kScalar)), "engine-refused");
}

TEST(TensorCopy, ReadsARowBeforeItWritesIt) {
  Bench bench;
  const Tensor t = bench.of({1, 5}, {1, 2, 3, 4, 5});
  bench.run<TensorCopy>(columns(t, 1, 4), columns(t, 0, 4), any_engine());
  EXPECT_EQ(values_of(t), (Values{1, 1, 2, 3, 4}));
  // The same bytes seen as bfloat16: the first half of the row takes the whole row, rounded.
  const std::vector<Dim> dims = {t.dim(0), {5, 2}};
  const Tensor half = t.with(kBfloat16, 0, dims);
  bench.run<TensorCopy>(half, t, any_engine());
  EXPECT_EQ(values_of(half), (Values{1, 1, 2, 3, 4}));
}

TEST(TensorCopy, CostsWhatWasMeasured) {  // hw.md §2.4
  Bench bench;
  const auto time = [&](DType to, DType from, Space space, EngineRequest engine = std::nullopt) {
    const Tensor src = bench.of({128, 512}, {1}, from, space);
    return bench.completion_ns(bench.run<TensorCopy>(bench.make({128, 512}, to), src, engine));
  };
  EXPECT_NEAR(time(kFloat32, kFloat32, Space::kSbuf), 160.5 + 0.5207 * 512, 4.3);
  EXPECT_NEAR(time(kBfloat16, kBfloat16, Space::kSbuf), 155.7 + 0.2691 * 512, 4);
  EXPECT_NEAR(time(kBfloat16, kFloat32, Space::kSbuf), 155.5 + 0.529 * 512, 7);
  EXPECT_NEAR(time(kFloat32, kBfloat16, Space::kSbuf), 152.7 + 0.803 * 512, 5.6);
  EXPECT_NEAR(time(kBfloat16, kFloat32, Space::kPsum), 690, 14);  // INST-070
  EXPECT_NEAR(time(kFloat32, kFloat32, Space::kSbuf, EngineKind::kScalar), 191 + 0.833 * 512, 6.2);
  EXPECT_NEAR(time(kBfloat16, kFloat32, Space::kPsum, EngineKind::kScalar), 585, 12);  // INST-020
}

TEST(Memset, WritesItsValueInEveryType) {
  Bench bench;
  for (const DType dtype : {kFloat32, kBfloat16, kFloat16, kInt8, kUint16, kInt32, kFloat8E5m2}) {
    const Tensor t = bench.make({128, 3}, dtype);
    bench.run<Memset>(t, MemsetValue(std::int64_t{2}), any_engine());
    EXPECT_EQ(values_of(t), Values(384, 2.0)) << name(dtype);
  }
  const Tensor big = bench.make({1, 2}, kUint32);
  bench.run<Memset>(big, MemsetValue(std::int64_t{4294967295}), any_engine());
  EXPECT_EQ(values_of(big), Values(2, 4294967295.0));
  const Tensor low = bench.psum({1, 2});
  bench.run<Memset>(low, MemsetValue(-kInf), any_engine());
  EXPECT_EQ(values_of(low), Values(2, -kInf));
}

TEST(Memset, IsStrictAboutTypes) {  // nki.md §5.3-22
  Bench bench;
  const auto id = [&](const Tensor& t, MemsetValue value, EngineRequest engine = std::nullopt) {
    return bench.id<Memset>(t, value, engine);
  };
  EXPECT_EQ(id(bench.make({1, 1}, kInt32), 2.0), "memset-value");
  EXPECT_EQ(id(bench.make({1, 1}, kInt32), 0.0), "legal");
  EXPECT_EQ(id(bench.make({1, 1}, kInt8), std::int64_t{128}), "memset-value");
  EXPECT_EQ(id(bench.make({1, 1}, kInt8), std::int64_t{-128}), "legal");
  EXPECT_EQ(id(bench.make({1, 1}, kFloat32), std::int64_t{2}), "legal");
  EXPECT_EQ(id(bench.make({1, 1}, kFloat8E5m2X4), std::int64_t{1}), "memset-value");
  EXPECT_EQ(id(bench.make({1, 1}, kFloat8E5m2X4), 0.0), "legal");
  EXPECT_EQ(id(bench.psum({1, 1}), 0.0, EngineKind::kGpsimd), "memory-refused");
  EXPECT_EQ(id(bench.make({1, 1}), 0.0, EngineKind::kScalar), "engine-refused");
}

TEST(Memset, CostsWhatWasMeasured) {  // hw.md §2.4: 58 + 0.8325 N ns; trn1: N cycles, §2.3
  const auto time = [](std::string_view machine, DType dtype, double value) {
    Bench bench(machine);
    return bench.completion_ns(
        bench.run<Memset>(bench.make({128, 512}, dtype), MemsetValue(value), std::nullopt));
  };
  EXPECT_NEAR(time("trn2", kFloat32, 0), 58 + 0.8325 * 512, 5);
  EXPECT_NEAR(time("trn2", kBfloat16, 1), 58 + 0.8325 * 512, 5);
  EXPECT_NEAR(time("trn2", kBfloat16, 0), (56 + 256) / 0.96, 1);
  EXPECT_NEAR(time("trn1", kFloat32, 0), (56 + 512) / 1.12, 1);
}

TEST(TensorScalar, AppliesTwoOperatorsInOnePass) {
  Bench bench;
  const Tensor data = bench.of({2, 3}, {1, 2, 3, 4, 5, 6}, kInt32);
  const Tensor lanes = bench.of({2, 1}, {10, 100});
  const Tensor out = bench.make({2, 3});
  bench.run<TensorScalar>(out, data, ScalarStep{AluOp::kMultiply, 2.0},
                          ScalarStep{AluOp::kSubtract, lanes}, any_engine());
  EXPECT_EQ(values_of(out), (Values{-8, -6, -4, -92, -90, -88}));
  bench.run<TensorScalar>(out, data, ScalarStep{AluOp::kSubtract, 2.0, true},
                          ScalarStep{AluOp::kSubtract, lanes, true}, any_engine());
  EXPECT_EQ(values_of(out), (Values{9, 10, 11, 102, 103, 104}));
  bench.run<TensorScalar>(out, data, ScalarStep{AluOp::kGreater, 2.0}, std::nullopt, any_engine());
  EXPECT_EQ(values_of(out), (Values{0, 0, 1, 1, 1, 1}));
}

TEST(TensorScalar, TakesWideLanesOneByOne) {
  Bench bench;
  const Tensor data = bench.filled({128, 600}, [](std::int64_t i) { return double(i % 600); });
  const Tensor lanes = bench.filled({128, 1}, [](std::int64_t i) { return double(i); });
  const Tensor out = bench.make({128, 600});
  for (const std::int64_t columns_used : {1, 5, 600}) {
    bench.run<TensorScalar>(columns(out, 0, columns_used), columns(data, 0, columns_used),
                            ScalarStep{AluOp::kAdd, lanes}, std::nullopt, any_engine());
    const Values found = values_of(columns(out, 0, columns_used));
    EXPECT_EQ(found.front(), 0);
    EXPECT_EQ(found.back(), 127.0 + double(columns_used) - 1);
  }
}

TEST(TensorScalar, OperandsMayLieInItsResult) {
  Bench bench;
  const Tensor t = bench.of({1, 4}, {2, 3, 4, 5});
  bench.run<TensorScalar>(t, t, ScalarStep{AluOp::kMultiply, columns(t, 0, 1)},
                          ScalarStep{AluOp::kAdd, columns(t, 1, 1)}, any_engine());
  EXPECT_EQ(values_of(t), (Values{7, 9, 11, 13}));
  const Tensor one = bench.of({3, 1}, {2, 3, 4});
  bench.run<TensorScalar>(one, one, ScalarStep{AluOp::kMultiply, 10.0},
                          ScalarStep{AluOp::kAdd, one}, any_engine());
  EXPECT_EQ(values_of(one), (Values{22, 33, 44}));
}

TEST(TensorScalar, BitvecKeepsAllBits) {
  Bench bench;
  const Tensor data = bench.of({1, 2}, {-1, 0x12345678}, kInt32);
  const Tensor out = bench.make({1, 2}, kUint32);
  bench.run<TensorScalar>(out, data, ScalarStep{AluOp::kBitwiseXor, double(0xFFFFFFFF)},
                          ScalarStep{AluOp::kLeftShift, 4.0}, any_engine());
  EXPECT_EQ(values_of(out), (Values{0, double(0xDCBA9870)}));
  const Tensor lanes = bench.of({1, 1}, {0x00FFFF00}, kInt32);
  bench.run<TensorScalar>(out, data, ScalarStep{AluOp::kBitwiseAnd, lanes}, std::nullopt,
                          any_engine());
  EXPECT_EQ(values_of(out), (Values{double(0x00FFFF00), double(0x00345600)}));
}

TEST(TensorScalar, EnginesHaveTheirOperators) {  // hw.md §2.3, §3.3
  Bench bench;
  const Tensor t = bench.make({128, 8}), i = bench.make({128, 8}, kInt32), p = bench.psum({128, 8});
  const auto id = [&](Bench& where, const Tensor& x, AluOp op0, std::optional<ScalarStep> second,
                      EngineRequest engine = std::nullopt) {
    return where.id<TensorScalar>(x, x, ScalarStep{op0, 1.0}, second, engine);
  };
  const ScalarStep add{AluOp::kAdd, 1.0}, multiply{AluOp::kMultiply, 1.0};
  const ScalarStep shift{AluOp::kLeftShift, 1.0};
  EXPECT_EQ(id(bench, t, AluOp::kMultiply, add, EngineKind::kScalar), "legal");
  EXPECT_EQ(id(bench, t, AluOp::kAdd, std::nullopt, EngineKind::kScalar), "legal");
  EXPECT_EQ(id(bench, t, AluOp::kAdd, multiply, EngineKind::kScalar), "operator-refused");
  EXPECT_EQ(id(bench, t, AluOp::kMaximum, std::nullopt, EngineKind::kScalar), "operator-refused");
  EXPECT_EQ(id(bench, t, AluOp::kAdd, std::nullopt, EngineKind::kGpsimd), "operator-refused");
  EXPECT_EQ(id(bench, t, AluOp::kRsqrt, std::nullopt, EngineKind::kGpsimd), "legal");
  EXPECT_EQ(id(bench, t, AluOp::kRsqrt, std::nullopt, EngineKind::kVector), "operator-refused");
  EXPECT_EQ(id(bench, p, AluOp::kRsqrt, std::nullopt), "memory-refused");
  EXPECT_EQ(id(bench, i, AluOp::kAdd, shift), "operator-class");
  EXPECT_EQ(id(bench, t, AluOp::kLeftShift, shift), "dtype-refused");
  EXPECT_EQ(id(bench, i, AluOp::kLeftShift, ScalarStep{AluOp::kLeftShift, 0.5}), "bitvec-operand");
  EXPECT_EQ(id(bench, t, AluOp::kAdd, ScalarStep{AluOp::kAdd, bench.make({64, 1})}),
            "lane-operand");
  EXPECT_EQ(id(bench, t, AluOp::kAdd, ScalarStep{AluOp::kAdd, bench.make({128, 1}, kInt32)}),
            "dtype-refused");
  Bench trn1("trn1");
  EXPECT_EQ(id(trn1, trn1.make({128, 8}), AluOp::kMultiply, add, EngineKind::kScalar),
            "engine-refused");
}

TEST(TensorScalar, CostsWhatWasMeasured) {
  Bench bench;
  const Tensor t = bench.of({128, 512}, {1}), lane = bench.of({128, 1}, {1});
  const Tensor half = bench.of({128, 512}, {1}, kBfloat16),
               psum = bench.of({128, 512}, {1}, kFloat32, Space::kPsum);
  const auto time = [&](const Tensor& x, Operand operand, EngineRequest engine = std::nullopt) {
    return bench.completion_ns(
        bench.run<TensorScalar>(x, x, ScalarStep{AluOp::kAdd, operand}, std::nullopt, engine));
  };
  EXPECT_NEAR(time(t, 1.0), 160.3 + 0.5208 * 512, 4.3);   // hw.md §2.4
  EXPECT_NEAR(time(t, lane), 481, 10);                    // INST-087, hw.md §2.7
  EXPECT_NEAR(time(half, 1.0), 155.7 + 0.2691 * 512, 4);  // 16-bit, contiguous: 4 x
  EXPECT_NEAR(time(psum, 1.0), 158 + 1.041 * 512, 7);     // PSUM side: 1 per cycle
  EXPECT_NEAR(time(t, 1.0, EngineKind::kScalar), 191 + 0.8335 * 512, 6.2);
  const Tensor narrow = bench.of({128, 64}, {1});
  EXPECT_NEAR(bench.completion_ns(bench.run<TensorScalar>(
                  narrow, narrow, ScalarStep{AluOp::kRsqrt, 0.0}, std::nullopt, any_engine())),
              (210 + 4 * 64) / 1.2, 1);
  Bench trn1("trn1");
  const Tensor u = trn1.of({128, 512}, {1});
  EXPECT_NEAR(trn1.completion_ns(trn1.run<TensorScalar>(u, u, ScalarStep{AluOp::kAdd, 1.0},
                                                        std::nullopt, any_engine())),
              (150 + 512) / 1.12, 1);
}

TEST(TensorReduce, ReducesTrailingAxes) {  // nki.md §5.2-15
  Bench bench;
  const Tensor data = bench.filled({2, 3, 4}, [](std::int64_t i) { return double(i); });
  const Tensor rows = bench.make({2, 3}), all = bench.make({2, 1});
  bench.run<TensorReduce>(rows, AluOp::kAdd, data, std::vector<std::int64_t>{2}, false);
  EXPECT_EQ(values_of(rows), (Values{6, 22, 38, 54, 70, 86}));
  bench.run<TensorReduce>(all, AluOp::kMaximum, data, std::vector<std::int64_t>{1, 2}, true);
  EXPECT_EQ(values_of(all), (Values{-11, -23}));
  bench.run<TensorReduce>(all, AluOp::kMinimum, data, std::vector<std::int64_t>{2, 1}, false);
  EXPECT_EQ(values_of(all), (Values{0, 12}));
  const Tensor keep = bench.make({2, 3, 1}, kBfloat16);
  bench.run<TensorReduce>(keep, AluOp::kSubtract, data, std::vector<std::int64_t>{-1}, false);
  EXPECT_EQ(values_of(keep), (Values{-6, -14, -22, -30, -38, -46}));
}

TEST(TensorReduce, BitvecReducesBits) {
  Bench bench;
  const Tensor data = bench.of({1, 3}, {double(0x80000001), 2, 4}, kUint32);
  const Tensor out = bench.make({1, 1}, kUint32);
  bench.run<TensorReduce>(out, AluOp::kBitwiseOr, data, std::vector<std::int64_t>{1}, false);
  EXPECT_EQ(values_of(out), (Values{double(0x80000007)}));
}

TEST(TensorReduce, RefusesOtherAxesAndOperators) {
  Bench bench;
  const Tensor data = bench.make({128, 3, 4}), out = bench.make({128, 3});
  const auto id = [&](std::vector<std::int64_t> axes, AluOp op = AluOp::kAdd, bool negate = false) {
    return bench.id<TensorReduce>(out, op, data, axes, negate);
  };
  EXPECT_EQ(id({2}), "legal");
  EXPECT_EQ(id({1}), "reduce-axes");
  EXPECT_EQ(id({0, 1, 2}), "reduce-axes");
  EXPECT_EQ(id({}), "reduce-axes");
  EXPECT_EQ(id({2, 2}), "reduce-axes");
  EXPECT_EQ(id({1, 2}), "element-mismatch");
  EXPECT_EQ(id({2}, AluOp::kEqual), "operator-refused");
  EXPECT_EQ(id({2}, AluOp::kBitwiseOr), "dtype-refused");
}

TEST(TensorReduce, CostsItsInput) {
  Bench bench;
  const Tensor data = bench.of({128, 512}, {1}), out = bench.make({128, 1});
  const Tensor half = bench.of({128, 512}, {1}, kBfloat16),
               half_out = bench.make({128, 1}, kBfloat16);
  const std::vector<std::int64_t> last = {1};
  EXPECT_NEAR(bench.completion_ns(bench.run<TensorReduce>(out, AluOp::kAdd, data, last, false)),
              679,
              14);  // INST-077
  EXPECT_NEAR(bench.completion_ns(bench.run<TensorReduce>(out, AluOp::kAdd, half, last, false)),
              150 + 1.043 * 512, 8);  // bf16 to fp32: hw.md §2.4
  EXPECT_NEAR(
      bench.completion_ns(bench.run<TensorReduce>(half_out, AluOp::kMaximum, half, last, false)),
      (144 + 256) / 0.96, 1);
  Bench trn1("trn1");
  EXPECT_NEAR(trn1.completion_ns(trn1.run<TensorReduce>(trn1.make({128, 1}), AluOp::kAdd,
                                                        trn1.of({128, 512}, {1}), last, false)),
              (150 + 512) / 1.12, 1);
}

TEST(VectorInstructions, ExistOnEveryMachine) {
  for (const std::string& machine : test_machines()) {
    Bench bench(machine);
    const Tensor t = bench.of({128, 8}, {1}), lane = bench.of({128, 1}, {1});
    bench.run<Memset>(t, MemsetValue(2.0), any_engine());
    bench.run<TensorTensor>(t, t, t, AluOp::kAdd, any_engine());
    bench.run<TensorScalar>(t, t, ScalarStep{AluOp::kAdd, lane}, std::nullopt, any_engine());
    bench.run<TensorReduce>(lane, AluOp::kAdd, t, std::vector<std::int64_t>{1}, false);
    EXPECT_EQ(values_of(lane), Values(128, 40.0)) << machine;
    for (const auto& instruction : bench.program().instructions(0)) {
      EXPECT_GT(instruction->cost(bench.machine()).interval, 0) << machine;
      EXPECT_GT(instruction->cost(bench.machine()).completion, 0) << machine;
    }
  }
}

}  // namespace
}  // namespace trena
