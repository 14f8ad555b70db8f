// References: the C library in double precision, closed forms and literals.
#include "trena/number/vector_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include "trena/error.h"

namespace trena {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr double kPi = std::numbers::pi;

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * kPi); }

struct Reference {
  MathFunction function;
  float low, high;
  double ulps;
  std::function<double(double)> exact;
};

const std::vector<Reference>& references() {
  static const std::vector<Reference> table = {
      {MathFunction::kSquare, -1e10F, 1e10F, 0.51, [](double x) { return x * x; }},
      {MathFunction::kExp, -87.0F, 88.0F, 0.51, [](double x) { return std::exp(x); }},
      {MathFunction::kLog, 1e-30F, 1e30F, 0.51, [](double x) { return std::log(x); }},
      {MathFunction::kSqrt, 1e-30F, 1e30F, 0.51, [](double x) { return std::sqrt(x); }},
      {MathFunction::kRsqrt, 1e-30F, 1e30F, 0.51, [](double x) { return 1 / std::sqrt(x); }},
      {MathFunction::kReciprocal, 1e-30F, 1e30F, 0.51, [](double x) { return 1 / x; }},
      {MathFunction::kTanh, -20.0F, 20.0F, 0.51, [](double x) { return std::tanh(x); }},
      {MathFunction::kSigmoid, -80.0F, 80.0F, 0.51, sigmoid},
      {MathFunction::kSilu, -80.0F, 80.0F, 0.51, [](double x) { return x * sigmoid(x); }},
      {MathFunction::kSiluDx, 0.0F, 80.0F, 0.51,
       [](double x) { return sigmoid(x) * (1 + x * sigmoid(-x)); }},
      {MathFunction::kGelu, -12.0F, 30.0F, 0.51, [](double x) { return x * cdf(x); }},
      {MathFunction::kGeluDx, 0.0F, 30.0F, 0.51, [](double x) { return cdf(x) + x * density(x); }},
      {MathFunction::kGeluApprxTanh, 0.0F, 30.0F, 0.51,
       [](double x) {
         return 0.5 * x * (1 + std::tanh(std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x)));
       }},
      {MathFunction::kGeluApprxSigmoid, -40.0F, 40.0F, 0.51,
       [](double x) { return x * sigmoid(1.702 * x); }},
      {MathFunction::kGeluApprxSigmoidDx, 0.0F, 40.0F, 0.51,
       [](double x) { return sigmoid(1.702 * x) * (1 + 1.702 * x * sigmoid(-1.702 * x)); }},
      {MathFunction::kSoftplus, -80.0F, 80.0F, 0.51,
       [](double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }},
      {MathFunction::kMish, -80.0F, 80.0F, 0.51,
       [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
      {MathFunction::kErf, -6.0F, 6.0F, 0.51, [](double x) { return std::erf(x); }},
      {MathFunction::kErfDx, -9.0F, 9.0F, 0.51,
       [](double x) { return 2 / std::sqrt(kPi) * std::exp(-x * x); }},
      {MathFunction::kSin, -3.1415925F, 3.1415925F, 0.51, [](double x) { return std::sin(x); }},
      {MathFunction::kArctan, -100.0F, 100.0F, 0.51, [](double x) { return std::atan(x); }},
  };
  return table;
}

float applied(MathFunction function, float x) {
  float y = 0.0F;
  apply_row(function, &x, &y, 1);
  return y;
}

// Half uniform over the range, half log-uniform towards zero.
std::vector<float> inputs(float low, float high) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(low, high);
  std::uniform_real_distribution<float> shrink(0.0F, 20.0F);
  std::vector<float> values(20000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = uniform(random);
    const float small = values[i] * std::exp2(-shrink(random));
    values[i] = i % 2 == 0 && small >= low ? small : values[i];
  }
  return values;
}

TEST(VectorMath, IsWithinHalfAnUlp) {
  for (const Reference& reference : references()) {
    const std::vector<float> x = inputs(reference.low, reference.high);
    std::vector<float> y(x.size());
    apply_row(reference.function, x.data(), y.data(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = reference.exact(x[i]);
      const auto nearest = static_cast<float>(std::abs(exact));
      const double ulp = std::nextafter(nearest, kInfinity) - nearest;
      ASSERT_LE(std::abs(y[i] - exact), reference.ulps * ulp)
          << name(reference.function) << " of " << x[i];
    }
  }
}

// Near its zero crossing a derivative is as good as half a unit of float32 below 1/2.
TEST(VectorMath, DerivativesAreAccurateWhereTheyCrossZero) {
  for (float x = -30.0F; x < 0.0F; x += 0.01F) {
    EXPECT_NEAR(applied(MathFunction::kGeluDx, x), cdf(x) + x * density(x), 0x1p-25);
    EXPECT_NEAR(applied(MathFunction::kSiluDx, x), sigmoid(x) * (1 + x * sigmoid(-x)), 0x1p-25);
  }
}

TEST(VectorMath, SpecialInputsAreDefined) {
  EXPECT_EQ(applied(MathFunction::kExp, -kInfinity), 0.0F);
  EXPECT_EQ(applied(MathFunction::kExp, 89.0F), kInfinity);
  EXPECT_EQ(applied(MathFunction::kLog, 0.0F), -kInfinity);
  EXPECT_EQ(applied(MathFunction::kLog, kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(applied(MathFunction::kLog, -1.0F)));
  EXPECT_EQ(applied(MathFunction::kTanh, kInfinity), 1.0F);
  EXPECT_TRUE(std::signbit(applied(MathFunction::kTanh, -0.0F)));
  EXPECT_EQ(applied(MathFunction::kErf, -kInfinity), -1.0F);
  EXPECT_EQ(applied(MathFunction::kRelu, -3.0F), 0.0F);
  EXPECT_EQ(applied(MathFunction::kSign, -3.0F), -1.0F);
  EXPECT_EQ(applied(MathFunction::kReciprocal, -0.0F), -kInfinity);
  for (const MathFunction function :
       {MathFunction::kGelu, MathFunction::kSilu, MathFunction::kMish, MathFunction::kSoftplus,
        MathFunction::kGeluApprxTanh, MathFunction::kGeluApprxSigmoid}) {
    EXPECT_EQ(applied(function, -kInfinity), 0.0F) << name(function);
    EXPECT_EQ(applied(function, kInfinity), kInfinity) << name(function);
  }
  for (std::size_t i = 1; i < kMathFunctionCount; ++i) {
    const float y = applied(static_cast<MathFunction>(i), -kNan);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(y), 0x7FC00000U) << name(static_cast<MathFunction>(i));
  }
}

TEST(VectorMath, DenormalsAreZeroExceptForCopy) {
  const float denormal = std::bit_cast<float>(0x807FFFFFU);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(applied(MathFunction::kCopy, denormal)), 0x807FFFFFU);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(applied(MathFunction::kAbs, denormal)), 0U);
  EXPECT_EQ(applied(MathFunction::kExp, -88.0F), 0.0F);  // 6e-39
  EXPECT_EQ(applied(MathFunction::kReciprocal, 0x1p127F), 0.0F);
}

// hw.md §3.5: the device extrapolates its last cubic; sin(9.0) was printed as about 27.65.
TEST(VectorMath, SinHasNoRangeReduction) {
  EXPECT_NEAR(applied(MathFunction::kSin, 9.0F), 27.65F, 0.01F);
  EXPECT_NEAR(applied(MathFunction::kSin, -9.0F), -27.65F, 0.01F);
}

TEST(VectorMath, WorksInPlaceAndForEveryLength) {
  for (std::size_t count = 0; count < 70; ++count) {
    std::vector<float> row(count + 1, 2.0F);
    apply_row(MathFunction::kSquare, row.data(), row.data(), count);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(row[i], 4.0F);
    }
    ASSERT_EQ(row[count], 2.0F);
  }
  const float values[] = {-2.0F, 3.0F};
  float out[2] = {};
  prelu_row(values, 0.25F, out, 2);
  EXPECT_EQ(out[0], -0.5F);
  EXPECT_EQ(out[1], 3.0F);
}

float combined(AluOp op, float a, float b) {
  float out = 0.0F;
  binary_row(op, &a, 1, &b, 1, &out, 1);
  return out;
}

TEST(AluRow, OperatorsGiveTheirLiterals) {
  EXPECT_EQ(combined(AluOp::kSubtract, 5.0F, 3.0F), 2.0F);
  EXPECT_EQ(combined(AluOp::kMaximum, -1.0F, 2.0F), 2.0F);
  EXPECT_TRUE(std::isnan(combined(AluOp::kMaximum, kNan, 2.0F)));
  EXPECT_TRUE(std::isnan(combined(AluOp::kMinimum, 2.0F, kNan)));
  EXPECT_EQ(combined(AluOp::kAbsMax, -5.0F, 3.0F), -5.0F);  // documented: keeps the sign
  EXPECT_EQ(combined(AluOp::kAbsMax, 1.0F, -1.0F), -1.0F);  // documented: a tie gives y
  EXPECT_EQ(combined(AluOp::kAbsMin, 5.0F, -3.0F), -3.0F);
  EXPECT_EQ(combined(AluOp::kGreaterEqual, 2.0F, 2.0F), 1.0F);
  EXPECT_EQ(combined(AluOp::kNotEqual, kNan, kNan), 1.0F);
  EXPECT_EQ(combined(AluOp::kLogicalXor, 3.0F, 0.0F), 1.0F);
  EXPECT_EQ(combined(AluOp::kLogicalAnd, 3.0F, 0.0F), 0.0F);
  EXPECT_EQ(combined(AluOp::kBypass, 3.0F, 9.0F), 3.0F);
  EXPECT_EQ(combined(AluOp::kRsqrt, 4.0F, 0.0F), 0.5F);
  EXPECT_EQ(combined(AluOp::kRelu, -4.0F, 0.0F), 0.0F);
}

TEST(AluRow, PowerFollowsTheCLibrary) {
  const float values[] = {0.0F, -0.0F, 1.0F,  -1.0F, 2.0F,      -2.0F,      0.5F, 3.0F,
                          7.0F, -3.0F, 10.5F, 1e10F, kInfinity, -kInfinity, kNan, 16777216.0F};
  for (const float a : values) {
    for (const float b : values) {
      const auto wanted = static_cast<float>(std::pow(static_cast<double>(a), b));
      const float got = combined(AluOp::kPower, a, b);
      if (std::isnan(wanted)) {
        EXPECT_TRUE(std::isnan(got)) << a << " to the " << b;
      } else {
        EXPECT_FLOAT_EQ(got, wanted) << a << " to the " << b;
        EXPECT_EQ(std::signbit(got), std::signbit(wanted)) << a << " to the " << b;
      }
    }
  }
}

TEST(AluRow, AStrideOfZeroRepeatsOneValue) {
  std::vector<float> a(600);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(i);
  }
  const float two = 2.0F;
  std::vector<float> out(a.size());
  binary_row(AluOp::kSubtract, &two, 0, a.data(), 1, out.data(), a.size());
  EXPECT_EQ(out[599], -597.0F);
  binary_row(AluOp::kMultiply, a.data(), 1, &two, 0, a.data(), a.size());
  EXPECT_EQ(a[599], 1198.0F);
}

TEST(AluRow, IntegersAreExactAndWrap) {
  const std::int32_t a[] = {16777217, 2147483647, -7, 1};
  const std::int32_t b[] = {1, 1, 3, 33};
  std::int32_t out[4] = {};
  binary_row_int32(AluOp::kAdd, a, 1, b, 1, out, 4);
  EXPECT_EQ(out[0], 16777218);
  EXPECT_EQ(out[1], -2147483647 - 1);
  binary_row_int32(AluOp::kRightShift, a, 1, b, 1, out, 4);
  EXPECT_EQ(out[2], 0x1FFFFFFF);  // logical
  EXPECT_EQ(out[3], 0);
  binary_row_int32(AluOp::kInvert, a, 1, nullptr, 0, out, 4);
  EXPECT_EQ(out[2], 6);
  EXPECT_THROW(binary_row_int32(AluOp::kPower, a, 1, b, 1, out, 4), Error);
  float x = 1.0F;
  EXPECT_THROW(binary_row(AluOp::kBitwiseAnd, &x, 1, &x, 1, &x, 1), Error);
}

// host.md §2: lane i of 16 takes elements i, i+16, …; the lanes combine 8, 4, 2, 1 apart.
TEST(Reduction, HasTheOrderOfSixteenLanes) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (const std::size_t count : {1U, 15U, 16U, 17U, 100U, 1003U}) {
    std::vector<float> values(count);
    for (float& value : values) {
      value = normal(random);
    }
    float lanes[16] = {};
    for (std::size_t i = 0; i < count; ++i) {
      lanes[i % 16] += values[i];
    }
    for (int width = 8; width > 0; width /= 2) {
      for (int lane = 0; lane < width; ++lane) {
        lanes[lane] += lanes[lane + width];
      }
    }
    EXPECT_EQ(reduce_row(AluOp::kAdd, values.data(), count), lanes[0]);
  }
}

TEST(Reduction, IdentitiesFollowHwMd37) {
  EXPECT_EQ(identity(AluOp::kAdd), 0.0F);
  EXPECT_EQ(identity(AluOp::kMultiply), 1.0F);
  EXPECT_EQ(identity(AluOp::kMaximum), -kInfinity);
  EXPECT_EQ(identity(AluOp::kMinimum), kInfinity);
  const float values[] = {3.0F, -8.0F, 2.0F};
  EXPECT_EQ(reduce_row(AluOp::kMaximum, values, 3), 3.0F);
  EXPECT_EQ(reduce_row(AluOp::kMinimum, values, 3), -8.0F);
  EXPECT_EQ(reduce_row(AluOp::kMultiply, values, 3), -48.0F);
  EXPECT_EQ(reduce_row(AluOp::kAbsMax, values, 3), -8.0F);
  EXPECT_EQ(reduce_row(AluOp::kSubtract, values, 3), 9.0F);
  EXPECT_EQ(reduce_row(AluOp::kAdd, values, 0), 0.0F);
  const std::uint32_t bits[] = {0xF0U, 0x3CU};
  EXPECT_EQ(reduce_row_uint32(AluOp::kBitwiseAnd, bits, 2), 0x30U);
  EXPECT_EQ(reduce_row_uint32(AluOp::kBitwiseXor, bits, 2), 0xCCU);
  const std::int32_t integers[] = {-5, 16777217};
  EXPECT_EQ(reduce_row_int32(AluOp::kAdd, integers, 2), 16777212);
  EXPECT_EQ(reduce_row_int32(AluOp::kMinimum, integers, 2), -5);
  EXPECT_THROW(reduce_row(AluOp::kGreater, values, 3), Error);
}

TEST(Scan, CarriesItsState) {
  const float a[] = {2.0F, 3.0F, 0.5F};
  const float b[] = {1.0F, -1.0F, 4.0F};
  float out[3] = {};
  EXPECT_EQ(scan_row(AluOp::kMultiply, AluOp::kAdd, a, 1, b, 1, 1.0F, out, 3), 8.0F);
  EXPECT_EQ(out[0], 3.0F);
  EXPECT_EQ(out[1], 8.0F);
  const float zero = 0.0F;
  scan_row(AluOp::kMaximum, AluOp::kAdd, a, 1, &zero, 0, -1.0F, out, 3);
  EXPECT_EQ(out[0], 2.0F);
  EXPECT_EQ(out[2], 3.0F);
}

TEST(Names, LeadBack) {
  for (std::size_t i = 0; i < kAluOpCount; ++i) {
    EXPECT_EQ(alu_op_from_name(name(static_cast<AluOp>(i))), static_cast<AluOp>(i));
  }
  for (std::size_t i = 0; i < kMathFunctionCount; ++i) {
    EXPECT_EQ(math_function_from_name(name(static_cast<MathFunction>(i))),
              static_cast<MathFunction>(i));
  }
  EXPECT_EQ(math_function_from_name("gelu_apprx_tanh"), MathFunction::kGeluApprxTanh);
  EXPECT_EQ(alu_op_from_name("right_shift"), AluOp::kRightShift);
  EXPECT_EQ(alu_op_from_name("divide"), std::nullopt);
}

}  // namespace
}  // namespace trena
