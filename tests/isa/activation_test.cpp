// activation, activation_reduce, reciprocal. Times: hw.md §2.4 (measured, Trainium2).
#include "trena/isa/scalar/activation.h"

#include "isa_fixture.h"
#include "trena/isa/core_state.h"
#include "trena/isa/vector/reciprocal.h"

namespace trena {
namespace {

using namespace isa_test;
using enum DType;
using Bias = std::optional<Operand>;

Reduction idle() { return {}; }

Reduction reduction(ReduceCommand command, std::optional<Tensor> result = std::nullopt) {
  return {AluOp::kAdd, command, std::move(result), std::nullopt};
}

TEST(Activation, ScalesAddsAndApplies) {
  Bench bench;
  const Tensor data = bench.of({2, 2}, {0, 1, 2, 3});
  const Tensor bias = bench.of({2, 1}, {1, -1}, kBfloat16), scale = bench.of({2, 1}, {2, 4});
  const Tensor out = bench.make({2, 2});
  bench.run<Activation>(out, MathFunction::kSquare, ActivationInput{data, bias, scale}, idle());
  EXPECT_EQ(values_of(out), (Values{1, 9, 49, 121}));
  bench.run<Activation>(out, MathFunction::kRelu, ActivationInput{data, Bias(-2.0), 1.5}, idle());
  EXPECT_EQ(values_of(out), (Values{0, 0, 1, 2.5}));
  const Tensor half = bench.make({2, 2}, kBfloat16);
  bench.run<Activation>(half, MathFunction::kExp, ActivationInput{data, std::nullopt, 1.0}, idle());
  // e = 2.71828 is 2.71875 in bfloat16; e^2 = 7.389 is 7.375; e^3 = 20.0855 is 20.125.
  EXPECT_EQ(values_of(half), (Values{1, 2.71875, 7.375, 20.125}));
}

TEST(Activation, CopyIgnoresItsBias) {  // nki.md §5.3-19
  Bench bench;
  const Tensor data = bench.of({1, 2}, {3, 4});
  const Tensor out = bench.make({1, 2});
  bench.run<Activation>(out, MathFunction::kCopy, ActivationInput{data, Bias(100.0), 2.0}, idle());
  EXPECT_EQ(values_of(out), (Values{6, 8}));
}

TEST(Activation, WorksInPlaceWithItsOwnLanes) {
  Bench bench;
  const Tensor t = bench.of({2, 3}, {2, 3, 4, 5, 6, 7});
  bench.run<Activation>(t, MathFunction::kCopy, ActivationInput{t, std::nullopt, columns(t, 0, 1)},
                        idle());
  EXPECT_EQ(values_of(t), (Values{4, 6, 8, 25, 30, 35}));
}

TEST(Activation, AccumulatorsPersistAndCountOnce) {  // nki.md §5.3-19
  Bench bench;
  const Tensor data = bench.of({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor out = bench.make({2, 3}, kBfloat16), sum = bench.make({2, 1});
  const auto run = [&](ReduceCommand command, std::optional<Tensor> result = std::nullopt) {
    bench.run<Activation>(out, MathFunction::kSquare, ActivationInput{data, std::nullopt, 1.0},
                          reduction(command, result));
  };
  run(ReduceCommand::kResetReduce);
  run(ReduceCommand::kReduce, sum);
  EXPECT_EQ(values_of(sum), (Values{28, 154}));
  run(ReduceCommand::kIdle, sum);
  EXPECT_EQ(values_of(sum), (Values{28, 154}));
  run(ReduceCommand::kReset, sum);
  EXPECT_EQ(values_of(sum), (Values{0, 0}));
  run(ReduceCommand::kReduce, sum);
  EXPECT_EQ(values_of(sum), (Values{14, 77}));
}

TEST(Activation, AccumulatesInTheLaneOfItsPartition) {
  Bench bench;
  const Tensor t = bench.filled({128, 4}, [](std::int64_t i) { return double(i / 4); });
  const Tensor upper = partitions(t, 64, 32);
  bench.run<Activation>(upper, MathFunction::kCopy, ActivationInput{upper, std::nullopt, 1.0},
                        reduction(ReduceCommand::kResetReduce));
  EXPECT_EQ(bench.program().state(0).scalar_accumulators[63], 0.0F);
  EXPECT_EQ(bench.program().state(0).scalar_accumulators[64], 256.0F);
  EXPECT_EQ(bench.program().state(0).scalar_accumulators[95], 380.0F);
}

TEST(ActivationReduce, ResetsFirst) {
  Bench bench;
  const Tensor data = bench.of({1, 4}, {1, 2, 3, 4});
  const Tensor out = bench.make({1, 4}), sum = bench.make({1, 1});
  for (int i = 0; i < 2; ++i) {
    bench.program().append(0, make_instruction(activation_reduce(
                                  out, MathFunction::kCopy,
                                  ActivationInput{data, std::nullopt, 1.0}, AluOp::kAdd, sum)));
    EXPECT_EQ(values_of(sum), (Values{10}));
  }
  EXPECT_EQ(bench.program().instructions(0).back()->name(), "activation_reduce");
}

TEST(Activation, RefusesWhatTheEngineLacks) {
  Bench trn2("trn2"), trn1("trn1");
  const auto id = [](Bench& bench, MathFunction function, Bias bias, Operand scale = 1.0,
                     Reduction reduce = {}) {
    const Tensor t = bench.make({128, 8});
    return bench.id<Activation>(t, function, ActivationInput{t, bias, scale}, reduce);
  };
  EXPECT_EQ(id(trn2, MathFunction::kExp, 1.0), "legal");
  EXPECT_EQ(id(trn1, MathFunction::kExp, 1.0), "activation-bias");
  EXPECT_EQ(id(trn1, MathFunction::kExp, std::nullopt), "legal");
  EXPECT_EQ(id(trn1, MathFunction::kExp, trn1.make({128, 1})), "legal");
  EXPECT_EQ(id(trn1, MathFunction::kReciprocal, trn1.make({128, 1})), "activation-bias");
  EXPECT_EQ(id(trn2, MathFunction::kReciprocal, trn2.make({128, 1})), "legal");
  EXPECT_EQ(id(trn2, MathFunction::kExp, trn2.make({128, 1}, kTfloat32)), "dtype-refused");
  EXPECT_EQ(id(trn2, MathFunction::kExp, trn2.make({128, 2})), "lane-operand");
  EXPECT_EQ(id(trn2, MathFunction::kExp, std::nullopt, trn2.make({128, 1}, kBfloat16)),
            "dtype-refused");
  Reduction product{AluOp::kMultiply, ReduceCommand::kReduce, std::nullopt, std::nullopt};
  EXPECT_EQ(id(trn2, MathFunction::kExp, std::nullopt, 1.0, product), "operator-refused");
  EXPECT_EQ(id(trn2, MathFunction::kExp, std::nullopt, 1.0, reduction(ReduceCommand::kLoadReduce)),
            "reduce-cmd");
  EXPECT_EQ(id(trn2, MathFunction::kExp, std::nullopt, 1.0,
               reduction(ReduceCommand::kReduce, trn2.make({64, 1}))),
            "lane-operand");
}

TEST(Activation, CostsWhatWasMeasured) {  // hw.md §2.4
  Bench bench;
  const auto time = [&](MathFunction function, std::int64_t n, Operand scale = 1.0,
                        Space space = Space::kSbuf, DType dtype = kFloat32) {
    const Tensor data = bench.of({128, n}, {1}, dtype, space);
    return bench.completion_ns(bench.run<Activation>(
        bench.make({128, n}, dtype), function, ActivationInput{data, std::nullopt, scale}, idle()));
  };
  const Tensor lane = bench.of({128, 1}, {1});
  EXPECT_NEAR(time(MathFunction::kExp, 512), 293.4 + 0.8333 * 512, 7.2);
  EXPECT_NEAR(time(MathFunction::kExp, 4096, 1.0, Space::kSbuf, kBfloat16), 3710,
              37);  // screenshot
  EXPECT_NEAR(time(MathFunction::kSqrt, 1024), 286 + 0.841 * 1024, 15);
  EXPECT_NEAR(time(MathFunction::kCopy, 512), 202 + 0.8335 * 512, 6.3);
  EXPECT_NEAR(time(MathFunction::kCopy, 512, lane), 202 + 91 + 0.8335 * 512, 7.2);
  EXPECT_NEAR(time(MathFunction::kCopy, 512, 1.0, Space::kPsum), 162 + 0.869 * 512, 25);
  EXPECT_NEAR(time(MathFunction::kSilu, 128, 1.0, Space::kPsum), 260 + 1.327 * 128, 4.5);
  Bench trn1("trn1");
  const Tensor one = trn1.of({128, 1}, {1});
  EXPECT_NEAR(trn1.completion_ns(trn1.run<Activation>(
                  one, MathFunction::kExp, ActivationInput{one, std::nullopt, 1.0}, idle())),
              159, 1.6);
  Bench trn3("trn3");
  const Tensor eight = trn3.of({128, 512}, {1}, kFloat8E4m3fn);
  EXPECT_NEAR(trn3.completion_ns(trn3.run<Activation>(
                  eight, MathFunction::kExp, ActivationInput{eight, std::nullopt, 1.0}, idle())),
              (352 + 256) / 1.2, 1);
}

TEST(Activation, ReadsItsAccumulatorsWithASecondInstruction) {  // hw.md §2.4
  Bench bench;
  const Tensor data = bench.of({128, 512}, {1}), out = bench.make({128, 512});
  const Tensor sum = bench.make({128, 1});
  const ActivationInput input{data, std::nullopt, 1.0};
  const Instruction& kept =
      bench.run<Activation>(out, MathFunction::kExp, input, reduction(ReduceCommand::kResetReduce));
  EXPECT_NEAR(bench.completion_ns(kept), 294.5 + 0.8333 * 512, 7.2);
  const double interval = bench.interval_ns(kept);
  const Instruction& read = bench.run<Activation>(out, MathFunction::kExp, input,
                                                  reduction(ReduceCommand::kResetReduce, sum));
  EXPECT_NEAR(bench.completion_ns(read), 0.8333 * 512 + 200.7 + 279, 9);
  EXPECT_NEAR(bench.interval_ns(read) - interval, 185, 2);
}

TEST(Activation, NamesItsTable) {
  Bench bench;
  const Tensor t = bench.of({128, 8}, {1});
  const auto table = [&](MathFunction function) {
    return bench.run<Activation>(t, function, ActivationInput{t, std::nullopt, 1.0}, idle())
        .cost(bench.machine())
        .activation_table;
  };
  EXPECT_EQ(table(MathFunction::kExp), "exp");
  EXPECT_EQ(table(MathFunction::kCopy), table(MathFunction::kSquare));
  EXPECT_NE(table(MathFunction::kSilu), table(MathFunction::kSigmoid));
}

TEST(Activation, EveryFunctionHasATable) {
  for (const std::string& machine : test_machines()) {
    Bench bench(machine);
    const Tensor t = bench.make({128, 8});
    for (std::size_t i = 0; i < kMathFunctionCount; ++i) {
      const auto function = static_cast<MathFunction>(i);
      EXPECT_EQ(bench.id<Activation>(t, function, ActivationInput{t, std::nullopt, 1.0}, idle()),
                "legal")
          << machine << " " << name(function);
    }
  }
}

TEST(Reciprocal, DividesInFloat32) {
  Bench bench;
  const Tensor data = bench.of({1, 4}, {2, -4, 0, kInf}, kBfloat16);
  const Tensor out = bench.make({1, 4});
  bench.run<Reciprocal>(out, data);
  EXPECT_EQ(values_of(out), (Values{0.5, -0.25, kInf, 0}));
}

TEST(Reciprocal, CostsSixOrEightCyclesPerElement) {  // hw.md §2.4; nki.api.shared: 8 N on v2
  const auto time = [](std::string_view machine, std::int64_t n) {
    Bench bench(machine);
    const Tensor t = bench.of({128, n}, {1});
    return bench.completion_ns(bench.run<Reciprocal>(t, t));
  };
  EXPECT_NEAR(time("trn2", 512), 154.3 + 6.2493 * 512, 34);
  EXPECT_NEAR(time("trn2", 8), 202, 6);  // INST-074
  EXPECT_NEAR(time("trn1", 512), (150 + 8 * 512) / 1.12, 1);
}

}  // namespace
}  // namespace trena
