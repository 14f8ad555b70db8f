#include "trena/number/vector_math.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>

#include "trena/error.h"
#include "trena/number/simd_targets.h"
#include "trena/number/threads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trena/number/vector_math.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// Scalar code without branches or calls: each Highway target compiles the loops over it for its own
// vectors. Only +, -,
// *, / and sqrt of IEEE 754 and integer operations occur, each rounded by itself, so that the bytes
// agree.
HWY_BEFORE_NAMESPACE();
namespace trena::HWY_NAMESPACE {
namespace {

// In-place rows are allowed, so there is no dependence between iterations.
#define TRENA_INDEPENDENT _Pragma("GCC ivdep")
// A loop that is unrolled completely is no longer seen as a vector.
#define TRENA_AS_VECTOR _Pragma("GCC unroll 1")

constexpr std::size_t kVirtualLanes = 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Arithmetic and comparisons see denormals as zero (FlushDenormals); what only passes a value on,
// such as a maximum, does not.
HWY_INLINE float flush(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits & 0x7F800000U) == 0U ? bits & 0x80000000U : bits);
}

// CPUs differ in the NaN that they make.
HWY_INLINE float finish(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(flush(value));
  return std::bit_cast<float>((bits & 0x7FFFFFFFU) > 0x7F800000U ? 0x7FC00000U : bits);
}

// && and || without the branch that would keep a loop from becoming vector code.
HWY_INLINE bool both(bool a, bool b) { return (a & b) != 0; }
HWY_INLINE bool either(bool a, bool b) { return (a | b) != 0; }

HWY_INLINE float one_if(bool condition) { return condition ? 1.0F : 0.0F; }

HWY_INLINE double clamp(double x, double low, double high) {
  const double below = x > high ? high : x;
  return below < low ? low : below;  // NaN stays
}

HWY_INLINE double magnitude(double x) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & 0x7FFFFFFFFFFFFFFFU);
}

// |x| with the sign of y.
HWY_INLINE double with_sign(double x, double y) {
  return std::bit_cast<double>((std::bit_cast<std::uint64_t>(x) & 0x7FFFFFFFFFFFFFFFU) |
                               (std::bit_cast<std::uint64_t>(y) & 0x8000000000000000U));
}

// c[0] x^(n-1) + … + c[n-1]
template <std::size_t kTerms>
HWY_INLINE double polynomial(double x, const double (&c)[kTerms]) {
  double sum = c[0];
  for (std::size_t i = 1; i < kTerms; ++i) {
    sum = sum * x + c[i];
  }
  return sum;
}

// Adding this rounds a double of less than 2^51 to an integer, which then sits in the low bits.
constexpr double kRoundingConstant = 0x1.8p52;
constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kLn2High = 0x1.62e42feep-1;  // times an exponent: exact
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1;

struct Exponential {
  double scale;     // a power of two
  double fraction;  // exp(x) = scale · (1 + fraction)
};

// |x| ≤ 708. The fraction is a Taylor series to r^10/10!, r = x - n ln 2, |r| ≤ 0.35: relative
// error 2^-42.
HWY_INLINE Exponential exponential(double x) {
  constexpr double kSeries[] = {1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
                                1.0 / 120,     1.0 / 24,     1.0 / 6,     0.5,        1.0};
  const double shifted = x * (1.0 / kLn2) + kRoundingConstant;
  const double count = shifted - kRoundingConstant;
  const double r = (x - count * kLn2High) - count * kLn2Low;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(shifted);
  return {.scale = std::bit_cast<double>((bits + 1023U) << 52U),
          .fraction = r * polynomial(r, kSeries)};
}

HWY_INLINE double exp(double x) {
  const Exponential e = exponential(clamp(x, -708.0, 708.0));
  return e.scale + e.scale * e.fraction;
}

// exp(x) - 1 without cancellation, |x| ≤ 708.
HWY_INLINE double expm1(double x) {
  const Exponential e = exponential(x);
  return e.scale * e.fraction + (e.scale - 1.0);
}

// log((1+s)/(1-s)) for |s| ≤ 1/3; relative error 2^-40, and 2^-53 for |s| ≤ 0.172.
HWY_INLINE double twice_atanh(double s) {
  constexpr double kSeries[] = {2.0 / 23, 2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13,
                                2.0 / 11, 2.0 / 9,  2.0 / 7,  2.0 / 5,  2.0 / 3};
  const double square = s * s;
  return 2.0 * s + s * square * polynomial(square, kSeries);
}

// x is a promoted float32, or ±0, Inf, NaN or negative.
HWY_INLINE double log(double x) {
  constexpr std::uint64_t kBias = 1024;
  // m in [sqrt(1/2), sqrt(2)), x = m · 2^(exponent - kBias)
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t exponent =
      (bits - std::bit_cast<std::uint64_t>(kSqrtHalf) + (kBias << 52U)) >> 52U;
  const double m = std::bit_cast<double>(bits - ((exponent - kBias) << 52U));
  const double count =
      std::bit_cast<double>(std::bit_cast<std::uint64_t>(kRoundingConstant) + exponent) -
      (kRoundingConstant + static_cast<double>(kBias));
  const double fraction = twice_atanh((m - 1.0) / (m + 1.0));
  double result = count * kLn2High + (fraction + count * kLn2Low);
  result = x == 0.0 ? -std::numeric_limits<double>::infinity() : result;
  result = x < 0.0 ? std::numeric_limits<double>::quiet_NaN() : result;
  // Inf and NaN map to themselves.
  return either(x > std::numeric_limits<float>::max(), x != x) ? x : result;
}

// log(1 + y) for 0 ≤ y ≤ 1
HWY_INLINE double log1p(double y) { return twice_atanh(y / (2.0 + y)); }

HWY_INLINE double tanh(double x) {
  const double e = expm1(2.0 * clamp(x, -20.0, 20.0));
  return with_sign(e / (e + 2.0), x);
}

HWY_INLINE double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

// Taylor series for |x| ≤ 1/2.
HWY_INLINE double erf_near_zero(double x) {
  constexpr double kTwoOverSqrtPi = 0x1.20dd750429b6dp0;
  constexpr double kSeries[] = {-1.0 / 6894720, 1.0 / 685440, -1.0 / 75600, 1.0 / 9360, -1.0 / 1320,
                                1.0 / 216,      -1.0 / 42,    0.1,          -1.0 / 3,   1.0};
  return kTwoOverSqrtPi * x * polynomial(x * x, kSeries);
}

// erfc(z) for z ≥ 0: exp(-z²) times a polynomial in q = 1/(z+2), interpolated at the Chebyshev
// nodes of q in [1/28, 1/2]; relative error 2^-36.
HWY_INLINE double erfc(double z) {
  constexpr double kFit[] = {
      -1952.6444623659568, 7882.421448463917,  -13949.905680141337,  13976.085958015958,
      -8469.921520598227,  3037.4962105954455, -593.8144508019134,   82.7166263915213,
      -17.472816680753475, -8.096450179151995, -0.08606394482459373, 2.6590745980830213,
      2.8222627730327026,  1.9746134303229508, 1.128380227600388,    0.5641895740188497};
  const double limited = clamp(z, 0.0, 26.0);
  const double q = 1.0 / (limited + 2.0);
  return q * polynomial(q, kFit) * exp(-(limited * limited));
}

HWY_INLINE double erf(double x) {
  const double size = magnitude(x);
  const double far = with_sign(1.0 - erfc(size), x);
  return size <= 0.5 ? erf_near_zero(x) : (x != x ? x : far);
}

// The distribution function of the normal distribution, and its density.
HWY_INLINE double normal_cdf(double x) {
  const double half_tail = 0.5 * erfc(magnitude(x) * kSqrtHalf);
  return x < 0.0 ? half_tail : 1.0 - half_tail;
}

HWY_INLINE double normal_density(double x) {
  constexpr double kOneOverSqrtTwoPi = 0x1.9884533d43651p-2;
  return kOneOverSqrtTwoPi * exp(-0.5 * (x * x));
}

// The functions below end in x · (something that vanishes): a lower limit keeps -Inf · 0 away.
// There the result is a denormal of float32 or less, hence 0.
HWY_INLINE double gelu(double x) { return clamp(x, -40.0, kInfinity) * normal_cdf(x); }

HWY_INLINE double gelu_dx(double x) {
  const double limited = clamp(x, -40.0, 40.0);
  return normal_cdf(limited) + limited * normal_density(limited);
}

HWY_INLINE double gelu_apprx_tanh(double x) {
  constexpr double kTwiceSqrtTwoOverPi = 0x1.988453365a8bcp0;
  const double limited = clamp(x, -40.0, kInfinity);
  const double cubic = limited * (1.0 + 0.044715 * (limited * limited));
  return limited * sigmoid(kTwiceSqrtTwoOverPi * cubic);  // (1 + tanh u)/2 = sigmoid(2u)
}

HWY_INLINE double scaled_silu(double x, double slope) {
  const double limited = clamp(x, -400.0, kInfinity);
  return limited * sigmoid(slope * limited);
}

HWY_INLINE double scaled_silu_dx(double x, double slope) {
  const double limited = clamp(x, -400.0, 400.0);
  const double scaled = slope * limited;
  const double s = sigmoid(scaled);
  return s + scaled * s * sigmoid(-scaled);
}

constexpr double kGeluSigmoidSlope = 1.702;

HWY_INLINE double softplus(double x) { return (x < 0.0 ? 0.0 : x) + log1p(exp(-magnitude(x))); }

HWY_INLINE double mish(double x) {
  const double limited = clamp(x, -400.0, kInfinity);
  const double e = exp(clamp(limited, -400.0, 40.0));
  const double n = e * (e + 2.0);  // tanh(log(1 + e)) = n / (n + 2)
  return limited * (n / (n + 2.0));
}

HWY_INLINE double erf_dx(double x) {
  constexpr double kTwoOverSqrtPi = 0x1.20dd750429b6dp0;
  const double limited = clamp(x, -26.0, 26.0);
  return kTwoOverSqrtPi * exp(-(limited * limited));
}

// Beyond ±pi the cubic around ±pi goes on, as the hardware's last piece does: sin(9) = 27.65 (hw.md
// §3.5).
HWY_INLINE double sin(double x) {
  constexpr double kPi = 0x1.921fb54442d18p1;
  constexpr double kPiLow = 0x1.1a62633145c07p-53;
  constexpr double kSeries[] = {
      -1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880,
      -1.0 / 5040,          1.0 / 120,        -1.0 / 6,        1.0};
  const double size = magnitude(x);
  const double from_pi = (kPi - size) + kPiLow;
  const double y = size > 0.5 * kPi ? from_pi : size;
  const double inside = y * polynomial(y * y, kSeries);
  const double outside = from_pi * (1.0 - from_pi * from_pi * (1.0 / 6));
  const double result = size > kPi ? outside : inside;
  return x < 0.0 ? -result : (x == 0.0 ? x : result);
}

HWY_INLINE double arctan(double x) {
  constexpr double kHalfPi = 0x1.921fb54442d18p0;
  constexpr double kTanEighthPi = 0x1.a827999fcef32p-2;
  constexpr double kTanThreeEighthsPi = 0x1.3504f333f9de6p1;
  constexpr double kSeries[] = {1.0 / 29,  -1.0 / 27, 1.0 / 25,  -1.0 / 23, 1.0 / 21,
                                -1.0 / 19, 1.0 / 17,  -1.0 / 15, 1.0 / 13,  -1.0 / 11,
                                1.0 / 9,   -1.0 / 7,  1.0 / 5,   -1.0 / 3,  1.0};
  const double size = magnitude(x);
  const bool is_large = size > kTanThreeEighthsPi;
  const bool is_middle = size > kTanEighthPi;
  const double numerator = is_large ? -1.0 : (is_middle ? size - 1.0 : size);
  const double denominator = is_large ? size : (is_middle ? size + 1.0 : 1.0);
  const double base = is_large ? kHalfPi : (is_middle ? 0.5 * kHalfPi : 0.0);
  const double z = numerator / denominator;
  const double result = with_sign(base + z * polynomial(z * z, kSeries), x);
  return x != x ? x : result;
}

// pow of C: x^0 = 1^y = 1; a negative base needs an integer exponent, and keeps its sign for an odd
// one.
HWY_INLINE double power(double x, double y) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const double size = magnitude(x);
  double result = exp(y * log(size));
  result = either(size == 1.0, y == 0.0) ? 1.0 : result;
  // Exponents of 2^24 and more are even integers.
  const double exponent = magnitude(y) < 0x1p24 ? y : 0.0;
  const double half = 0.5 * exponent;
  const bool is_integer = (exponent + kRoundingConstant) - kRoundingConstant == exponent;
  const bool is_odd = both(is_integer, (half + kRoundingConstant) - kRoundingConstant != half);
  result = is_odd ? with_sign(result, x) : result;
  const bool is_root = both(x < 0.0, both(!is_integer, size <= std::numeric_limits<float>::max()));
  const bool has_nan = either(both(x != x, y != 0.0), both(y != y, x != 1.0));
  return either(is_root, has_nan) ? kNan : result;
}

template <typename Function>
HWY_INLINE void map_double(const float* x, float* y, std::size_t count, Function function) {
  TRENA_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) {
    y[i] = finish(static_cast<float>(function(static_cast<double>(x[i]))));
  }
}

template <typename Function>
HWY_INLINE void map_float(const float* x, float* y, std::size_t count, Function function) {
  TRENA_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) {
    y[i] = finish(function(x[i]));
  }
}

HWY_INLINE float absolute(float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFU);
}

HWY_INLINE float sign(float x) { return x > 0.0F ? 1.0F : (x < 0.0F ? -1.0F : x); }

HWY_INLINE float relu(float x) { return x <= 0.0F ? 0.0F : x; }

HWY_INLINE float rsqrt(float x) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x)));
}

void ApplyRow(MathFunction function, const float* x, float* y, std::size_t count) {
  switch (function) {
    case MathFunction::kCopy:
      std::memmove(y, x, count * sizeof(float));
      return;
    case MathFunction::kAbs:
      return map_float(x, y, count, [](float v) { return absolute(v); });
    case MathFunction::kSign:
      return map_float(x, y, count, [](float v) { return sign(v); });
    case MathFunction::kSquare:
      return map_float(x, y, count, [](float v) { return v * v; });
    case MathFunction::kRelu:
    case MathFunction::kPrelu:
      return map_float(x, y, count, [](float v) { return relu(v); });
    case MathFunction::kSqrt:
      return map_float(x, y, count, [](float v) { return std::sqrt(v); });
    case MathFunction::kRsqrt:
      return map_float(x, y, count, [](float v) { return rsqrt(v); });
    case MathFunction::kReciprocal:
      return map_float(x, y, count, [](float v) { return 1.0F / v; });
    case MathFunction::kExp:
      return map_double(x, y, count, [](double v) { return exp(v); });
    case MathFunction::kLog:
      return map_double(x, y, count, [](double v) { return log(v); });
    case MathFunction::kTanh:
      return map_double(x, y, count, [](double v) { return tanh(v); });
    case MathFunction::kSigmoid:
      return map_double(x, y, count, [](double v) { return sigmoid(v); });
    case MathFunction::kSilu:
      return map_double(x, y, count, [](double v) { return scaled_silu(v, 1.0); });
    case MathFunction::kSiluDx:
      return map_double(x, y, count, [](double v) { return scaled_silu_dx(v, 1.0); });
    case MathFunction::kGelu:
      return map_double(x, y, count, [](double v) { return gelu(v); });
    case MathFunction::kGeluDx:
      return map_double(x, y, count, [](double v) { return gelu_dx(v); });
    case MathFunction::kGeluApprxTanh:
      return map_double(x, y, count, [](double v) { return gelu_apprx_tanh(v); });
    case MathFunction::kGeluApprxSigmoid:
      return map_double(x, y, count, [](double v) { return scaled_silu(v, kGeluSigmoidSlope); });
    case MathFunction::kGeluApprxSigmoidDx:
      return map_double(x, y, count, [](double v) { return scaled_silu_dx(v, kGeluSigmoidSlope); });
    case MathFunction::kSoftplus:
      return map_double(x, y, count, [](double v) { return softplus(v); });
    case MathFunction::kMish:
      return map_double(x, y, count, [](double v) { return mish(v); });
    case MathFunction::kErf:
      return map_double(x, y, count, [](double v) { return erf(v); });
    case MathFunction::kErfDx:
      return map_double(x, y, count, [](double v) { return erf_dx(v); });
    case MathFunction::kSin:
      return map_double(x, y, count, [](double v) { return sin(v); });
    case MathFunction::kArctan:
      return map_double(x, y, count, [](double v) { return arctan(v); });
  }
}

void PreluRow(const float* x, float slope, float* y, std::size_t count) {
  const float factor = flush(slope);
  map_float(x, y, count, [factor](float v) { return v < 0.0F ? factor * v : v; });
}

HWY_INLINE float maximum(float a, float b) {
  return a > b ? a : (b >= a ? b : std::numeric_limits<float>::quiet_NaN());
}

HWY_INLINE float minimum(float a, float b) {
  return a < b ? a : (b <= a ? b : std::numeric_limits<float>::quiet_NaN());
}

HWY_INLINE float nan_if_either(float a, float b, float result) {
  return either(a != a, b != b) ? std::numeric_limits<float>::quiet_NaN() : result;
}

// Calls visit(f) with the operator as a function of two floats.
template <typename Visit>
HWY_INLINE void visit_float(AluOp op, Visit visit) {
  switch (op) {
    case AluOp::kAdd:
      return visit([](float a, float b) { return a + b; });
    case AluOp::kSubtract:
      return visit([](float a, float b) { return a - b; });
    case AluOp::kMultiply:
      return visit([](float a, float b) { return a * b; });
    case AluOp::kMaximum:
      return visit([](float a, float b) { return maximum(a, b); });
    case AluOp::kMinimum:
      return visit([](float a, float b) { return minimum(a, b); });
    case AluOp::kAbsMax:
      return visit(
          [](float a, float b) { return nan_if_either(a, b, absolute(a) > absolute(b) ? a : b); });
    case AluOp::kAbsMin:
      return visit(
          [](float a, float b) { return nan_if_either(a, b, absolute(a) < absolute(b) ? a : b); });
    case AluOp::kEqual:
      return visit([](float a, float b) { return a == b ? 1.0F : 0.0F; });
    case AluOp::kNotEqual:
      return visit([](float a, float b) { return a != b ? 1.0F : 0.0F; });
    case AluOp::kGreaterEqual:
      return visit([](float a, float b) { return a >= b ? 1.0F : 0.0F; });
    case AluOp::kGreater:
      return visit([](float a, float b) { return a > b ? 1.0F : 0.0F; });
    case AluOp::kLessEqual:
      return visit([](float a, float b) { return a <= b ? 1.0F : 0.0F; });
    case AluOp::kLess:
      return visit([](float a, float b) { return a < b ? 1.0F : 0.0F; });
    case AluOp::kLogicalAnd:
      return visit([](float a, float b) { return one_if(both(a != 0.0F, b != 0.0F)); });
    case AluOp::kLogicalOr:
      return visit([](float a, float b) { return one_if(either(a != 0.0F, b != 0.0F)); });
    case AluOp::kLogicalXor:
      return visit([](float a, float b) { return one_if((a != 0.0F) != (b != 0.0F)); });
    case AluOp::kLogicalNot:
      return visit([](float a, float) { return a == 0.0F ? 1.0F : 0.0F; });
    case AluOp::kPower:
      return visit([](float a, float b) { return static_cast<float>(power(a, b)); });
    case AluOp::kAbs:
      return visit([](float a, float) { return absolute(a); });
    case AluOp::kSquare:
      return visit([](float a, float) { return a * a; });
    case AluOp::kRelu:
      return visit([](float a, float) { return relu(a); });
    case AluOp::kRsqrt:
      return visit([](float a, float) { return rsqrt(a); });
    case AluOp::kReciprocal:
      return visit([](float a, float) { return 1.0F / a; });
    default:
      return visit([](float a, float) { return a; });  // bypass; others are refused by the caller
  }
}

void BinaryRow(AluOp op, const float* a, const float* b, float* out, std::size_t count) {
  visit_float(op, [&](auto function) {
    TRENA_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = finish(function(a[i], b[i]));
    }
  });
}

float ReduceRow(AluOp op, const float* values, std::size_t count, float start) {
  float result = start;
  visit_float(op, [&](auto function) {
    float lanes[kVirtualLanes];
    std::fill_n(lanes, kVirtualLanes, start);
    std::size_t i = 0;
    for (; i + kVirtualLanes <= count; i += kVirtualLanes) {
      TRENA_AS_VECTOR
      for (std::size_t lane = 0; lane < kVirtualLanes; ++lane) {
        lanes[lane] = function(lanes[lane], values[i + lane]);
      }
    }
    for (std::size_t lane = 0; i + lane < count; ++lane) {
      lanes[lane] = function(lanes[lane], values[i + lane]);
    }
    for (std::size_t width = kVirtualLanes / 2; width > 0; width /= 2) {
      for (std::size_t lane = 0; lane < width; ++lane) {
        lanes[lane] = function(lanes[lane], lanes[lane + width]);
      }
    }
    result = finish(lanes[0]);
  });
  return result;
}

HWY_INLINE float apply_scalar(AluOp op, float a, float b) {
  float result = a;
  visit_float(op, [&](auto function) { result = function(a, b); });
  return flush(result);
}

float ScanRow(AluOp op0, AluOp op1, const float* a, std::size_t a_stride, const float* b,
              std::size_t b_stride, float initial, float* out, std::size_t count) {
  float state = flush(initial);
  if (op0 == AluOp::kMultiply && op1 == AluOp::kAdd) {
    for (std::size_t i = 0; i < count; ++i) {
      state = flush(flush(flush(a[i * a_stride]) * state) + flush(b[i * b_stride]));
      out[i] = finish(state);
    }
    return finish(state);
  }
  for (std::size_t i = 0; i < count; ++i) {
    state = apply_scalar(op0, flush(a[i * a_stride]), state);
    state = apply_scalar(op1, state, flush(b[i * b_stride]));
    out[i] = finish(state);
  }
  return finish(state);
}

// Wraps modulo 2^32.
template <typename Integer, typename Function>
HWY_INLINE Integer wrapped(Integer a, Integer b, Function function) {
  return static_cast<Integer>(
      function(static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b)));
}

template <typename Integer>
HWY_INLINE Integer integer_magnitude(Integer a) {
  return a < 0 ? wrapped(Integer{0}, a, std::minus<>()) : a;
}

template <typename Integer>
HWY_INLINE std::uint32_t unsigned_magnitude(Integer a) {
  return static_cast<std::uint32_t>(integer_magnitude(a));
}

template <typename Integer, typename Visit>
HWY_INLINE void visit_integer(AluOp op, Visit visit) {
  using I = Integer;
  using Bits = std::uint32_t;
  switch (op) {
    case AluOp::kAdd:
      return visit([](I a, I b) { return wrapped(a, b, std::plus<>()); });
    case AluOp::kSubtract:
      return visit([](I a, I b) { return wrapped(a, b, std::minus<>()); });
    case AluOp::kMultiply:
      return visit([](I a, I b) { return wrapped(a, b, std::multiplies<>()); });
    case AluOp::kMaximum:
      return visit([](I a, I b) { return a > b ? a : b; });
    case AluOp::kMinimum:
      return visit([](I a, I b) { return a < b ? a : b; });
    case AluOp::kAbsMax:
      return visit([](I a, I b) { return unsigned_magnitude(a) > unsigned_magnitude(b) ? a : b; });
    case AluOp::kAbsMin:
      return visit([](I a, I b) { return unsigned_magnitude(a) < unsigned_magnitude(b) ? a : b; });
    case AluOp::kEqual:
      return visit([](I a, I b) { return I{a == b}; });
    case AluOp::kNotEqual:
      return visit([](I a, I b) { return I{a != b}; });
    case AluOp::kGreaterEqual:
      return visit([](I a, I b) { return I{a >= b}; });
    case AluOp::kGreater:
      return visit([](I a, I b) { return I{a > b}; });
    case AluOp::kLessEqual:
      return visit([](I a, I b) { return I{a <= b}; });
    case AluOp::kLess:
      return visit([](I a, I b) { return I{a < b}; });
    case AluOp::kLogicalAnd:
      return visit([](I a, I b) { return I{both(a != 0, b != 0)}; });
    case AluOp::kLogicalOr:
      return visit([](I a, I b) { return I{either(a != 0, b != 0)}; });
    case AluOp::kLogicalXor:
      return visit([](I a, I b) { return I{(a != 0) != (b != 0)}; });
    case AluOp::kLogicalNot:
      return visit([](I a, I) { return I{a == 0}; });
    case AluOp::kAbs:
      return visit([](I a, I) { return integer_magnitude(a); });
    case AluOp::kSquare:
      return visit([](I a, I) { return wrapped(a, a, std::multiplies<>()); });
    case AluOp::kRelu:
      return visit([](I a, I) { return a > 0 ? a : I{0}; });
    case AluOp::kBitwiseAnd:
      return visit([](I a, I b) { return a & b; });
    case AluOp::kBitwiseOr:
      return visit([](I a, I b) { return a | b; });
    case AluOp::kBitwiseXor:
      return visit([](I a, I b) { return a ^ b; });
    case AluOp::kInvert:
      return visit([](I a, I) { return ~a; });
    case AluOp::kLeftShift:
      return visit([](I a, I b) {
        return wrapped(a, b, [](Bits x, Bits y) { return y < 32U ? x << (y & 31U) : 0U; });
      });
    case AluOp::kRightShift:
      return visit([](I a, I b) {
        return wrapped(a, b, [](Bits x, Bits y) { return y < 32U ? x >> (y & 31U) : 0U; });
      });
    default:
      return visit([](I a, I) { return a; });  // bypass; others are refused by the caller
  }
}

template <typename Integer>
HWY_INLINE void binary_integers(AluOp op, const Integer* a, const Integer* b, Integer* out,
                                std::size_t count) {
  visit_integer<Integer>(op, [&](auto function) {
    TRENA_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = function(a[i], b[i]);
    }
  });
}

void BinaryRowInt32(AluOp op, const std::int32_t* a, const std::int32_t* b, std::int32_t* out,
                    std::size_t count) {
  binary_integers(op, a, b, out, count);
}

void BinaryRowUint32(AluOp op, const std::uint32_t* a, const std::uint32_t* b, std::uint32_t* out,
                     std::size_t count) {
  binary_integers(op, a, b, out, count);
}

template <typename Integer>
HWY_INLINE Integer reduce_integers(AluOp op, const Integer* values, std::size_t count,
                                   Integer start) {
  Integer result = start;  // every reduction is associative, so the order does not matter
  visit_integer<Integer>(op, [&](auto function) {
    for (std::size_t i = 0; i < count; ++i) {
      result = function(result, values[i]);
    }
  });
  return result;
}

std::int32_t ReduceRowInt32(AluOp op, const std::int32_t* values, std::size_t count,
                            std::int32_t start) {
  return reduce_integers(op, values, count, start);
}

std::uint32_t ReduceRowUint32(AluOp op, const std::uint32_t* values, std::size_t count,
                              std::uint32_t start) {
  return reduce_integers(op, values, count, start);
}

#undef TRENA_INDEPENDENT
#undef TRENA_AS_VECTOR

}  // namespace
}  // namespace trena::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trena {
namespace {

HWY_EXPORT(ApplyRow);
HWY_EXPORT(PreluRow);
HWY_EXPORT(BinaryRow);
HWY_EXPORT(ReduceRow);
HWY_EXPORT(ScanRow);
HWY_EXPORT(BinaryRowInt32);
HWY_EXPORT(BinaryRowUint32);
HWY_EXPORT(ReduceRowInt32);
HWY_EXPORT(ReduceRowUint32);

constexpr std::array<std::string_view, kMathFunctionCount> kMathNames = {"copy",
                                                                         "abs",
                                                                         "sign",
                                                                         "square",
                                                                         "relu",
                                                                         "exp",
                                                                         "log",
                                                                         "sqrt",
                                                                         "rsqrt",
                                                                         "reciprocal",
                                                                         "tanh",
                                                                         "sigmoid",
                                                                         "silu",
                                                                         "silu_dx",
                                                                         "gelu",
                                                                         "gelu_dx",
                                                                         "gelu_apprx_tanh",
                                                                         "gelu_apprx_sigmoid",
                                                                         "gelu_apprx_sigmoid_dx",
                                                                         "softplus",
                                                                         "mish",
                                                                         "erf",
                                                                         "erf_dx",
                                                                         "sin",
                                                                         "arctan",
                                                                         "prelu"};

constexpr std::array<std::string_view, kAluOpCount> kAluNames = {
    "bypass",      "add",        "subtract",    "multiply",   "maximum",       "minimum",
    "abs_max",     "abs_min",    "equal",       "not_equal",  "greater_equal", "greater",
    "less_equal",  "less",       "logical_and", "logical_or", "logical_xor",   "power",
    "abs",         "square",     "relu",        "rsqrt",      "reciprocal",    "logical_not",
    "bitwise_and", "bitwise_or", "bitwise_xor", "invert",     "left_shift",    "right_shift",
    "average"};

[[noreturn]] void refuse(AluOp op, std::string_view rule, std::string_view type) {
  throw Error(ErrorKind::kIllegal, "alu-op-type",
              {.rule = std::string(rule),
               .here = std::string(name(op)) + " on a row of " + std::string(type),
               .limit = {},
               .device = {},
               .fix = {}});
}

void require_float_op(AluOp op) {
  if (is_bitvec(op)) {
    refuse(op, "a bitvec operator acts on raw integer bits", "float32");
  }
  if (op == AluOp::kAverage) {
    refuse(op, "average is a reduction over partitions, not an operator of two operands",
           "float32");
  }
}

void require_integer_op(AluOp op, std::string_view type) {
  if (op == AluOp::kPower || op == AluOp::kRsqrt || op == AluOp::kReciprocal ||
      op == AluOp::kAverage) {
    refuse(op, "this operator exists in float32 only", type);
  }
}

void require_reduction(AluOp op, std::string_view type) {
  if (!is_reduction(op)) {
    refuse(op, "only associative operators and subtract reduce", type);
  }
}

constexpr std::size_t kChunk = 256;

// Runs step(a, b, out, count) on rows without stride; a stride of 0 becomes a short row of equal
// values.
template <typename Element, typename Step>
void with_unit_strides(const Element* a, std::ptrdiff_t a_stride, const Element* b,
                       std::ptrdiff_t b_stride, Element* out, std::size_t count, Step step) {
  if (a_stride != 0 && b_stride != 0) {
    step(a, b, out, count);
    return;
  }
  std::array<Element, kChunk> a_values;
  std::array<Element, kChunk> b_values;
  if (a_stride == 0 && count > 0) {
    a_values.fill(a[0]);
  }
  if (b_stride == 0 && count > 0) {
    b_values.fill(b[0]);
  }
  for (std::size_t first = 0; first < count; first += kChunk) {
    const std::size_t length = std::min(kChunk, count - first);
    step(a_stride == 0 ? a_values.data() : a + first, b_stride == 0 ? b_values.data() : b + first,
         out + first, length);
  }
}

template <std::size_t kCount, typename Enum>
std::optional<Enum> find_name(const std::array<std::string_view, kCount>& names,
                              std::string_view wanted, Enum) {
  const auto found = std::find(names.begin(), names.end(), wanted);
  if (found == names.end()) {
    return std::nullopt;
  }
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::string_view name(MathFunction function) {
  return kMathNames[static_cast<std::size_t>(function)];
}

std::optional<MathFunction> math_function_from_name(std::string_view wanted) {
  return find_name(kMathNames, wanted, MathFunction{});
}

std::string_view name(AluOp op) { return kAluNames[static_cast<std::size_t>(op)]; }

std::optional<AluOp> alu_op_from_name(std::string_view wanted) {
  return find_name(kAluNames, wanted, AluOp{});
}

bool is_bitvec(AluOp op) { return op >= AluOp::kBitwiseAnd && op <= AluOp::kRightShift; }

bool is_unary(AluOp op) {
  return op == AluOp::kBypass || (op >= AluOp::kAbs && op <= AluOp::kLogicalNot) ||
         op == AluOp::kInvert;
}

bool is_reduction(AluOp op) {
  return (op >= AluOp::kAdd && op <= AluOp::kAbsMin) ||
         (op >= AluOp::kLogicalAnd && op <= AluOp::kLogicalXor) ||
         (op >= AluOp::kBitwiseAnd && op <= AluOp::kBitwiseXor);
}

float identity(AluOp op) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  switch (op) {
    case AluOp::kMultiply:
    case AluOp::kLogicalAnd:
      return 1.0F;
    case AluOp::kMaximum:
      return -kInfinity;
    case AluOp::kMinimum:
    case AluOp::kAbsMin:
      return kInfinity;
    default:
      return 0.0F;
  }
}

std::uint32_t identity_bits(AluOp op) {
  switch (op) {
    case AluOp::kMultiply:
    case AluOp::kLogicalAnd:
      return 1U;
    case AluOp::kBitwiseAnd:
    case AluOp::kMinimum:
    case AluOp::kAbsMin:
      return 0xFFFFFFFFU;
    default:
      return 0U;
  }
}

ValidRange valid_range(MathFunction function) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  switch (function) {
    case MathFunction::kLog:
      return {0x1p-64F, 0x1p64F};
    case MathFunction::kSin:
      return {-0x1.921fb6p1F, 0x1.921fb6p1F};
    case MathFunction::kArctan:
      return {-0x1.921fb6p0F, 0x1.921fb6p0F};
    case MathFunction::kSqrt:
      return {0x1p-116F, 0x1p118F};
    case MathFunction::kRsqrt:
      return {0x1p-87F, 0x1p97F};
    case MathFunction::kReciprocal:
      return {-0x1p42F, 0x1p42F};
    default:
      return {-kInfinity, kInfinity};
  }
}

void apply_row(MathFunction function, const float* x, float* y, std::size_t count) {
  const FlushDenormals flush;
  HWY_DYNAMIC_DISPATCH(ApplyRow)(function, x, y, count);
}

void prelu_row(const float* x, float slope, float* y, std::size_t count) {
  const FlushDenormals flush;
  HWY_DYNAMIC_DISPATCH(PreluRow)(x, slope, y, count);
}

void binary_row(AluOp op, const float* a, std::ptrdiff_t a_stride, const float* b,
                std::ptrdiff_t b_stride, float* out, std::size_t count) {
  require_float_op(op);
  if (op == AluOp::kBypass && a_stride != 0) {
    std::memmove(out, a, count * sizeof(float));
    return;
  }
  const FlushDenormals flush;
  const bool unary = is_unary(op);
  with_unit_strides(a, a_stride, unary ? a : b, unary ? a_stride : b_stride, out, count,
                    [&](const float* x, const float* y, float* result, std::size_t length) {
                      HWY_DYNAMIC_DISPATCH(BinaryRow)(op, x, y, result, length);
                    });
}

void binary_row_int32(AluOp op, const std::int32_t* a, std::ptrdiff_t a_stride,
                      const std::int32_t* b, std::ptrdiff_t b_stride, std::int32_t* out,
                      std::size_t count) {
  require_integer_op(op, "int32");
  const bool unary = is_unary(op);
  with_unit_strides(
      a, a_stride, unary ? a : b, unary ? a_stride : b_stride, out, count,
      [&](const std::int32_t* x, const std::int32_t* y, std::int32_t* result, std::size_t length) {
        HWY_DYNAMIC_DISPATCH(BinaryRowInt32)(op, x, y, result, length);
      });
}

void binary_row_uint32(AluOp op, const std::uint32_t* a, std::ptrdiff_t a_stride,
                       const std::uint32_t* b, std::ptrdiff_t b_stride, std::uint32_t* out,
                       std::size_t count) {
  require_integer_op(op, "uint32");
  const bool unary = is_unary(op);
  with_unit_strides(
      a, a_stride, unary ? a : b, unary ? a_stride : b_stride, out, count,
      [&](const std::uint32_t* x, const std::uint32_t* y, std::uint32_t* result,
          std::size_t length) { HWY_DYNAMIC_DISPATCH(BinaryRowUint32)(op, x, y, result, length); });
}

float reduce_row(AluOp op, const float* values, std::size_t count) {
  require_float_op(op);
  require_reduction(op, "float32");
  const FlushDenormals flush;
  if (op == AluOp::kSubtract && count > 0) {
    const float rest =
        HWY_DYNAMIC_DISPATCH(ReduceRow)(AluOp::kAdd, values + 1, count - 1, identity(AluOp::kAdd));
    float result = 0.0F;
    HWY_DYNAMIC_DISPATCH(BinaryRow)(op, values, &rest, &result, 1);
    return result;
  }
  return HWY_DYNAMIC_DISPATCH(ReduceRow)(op, values, count, identity(op));
}

std::uint32_t reduce_row_uint32(AluOp op, const std::uint32_t* values, std::size_t count) {
  require_reduction(op, "uint32");
  const auto reduce = HWY_DYNAMIC_DISPATCH(ReduceRowUint32);
  if (op == AluOp::kSubtract && count > 0) {
    return values[0] - reduce(AluOp::kAdd, values + 1, count - 1, 0U);
  }
  return reduce(op, values, count, identity_bits(op));
}

std::int32_t reduce_row_int32(AluOp op, const std::int32_t* values, std::size_t count) {
  using Limits = std::numeric_limits<std::int32_t>;
  require_reduction(op, "int32");
  if (op == AluOp::kMaximum || op == AluOp::kMinimum || op == AluOp::kAbsMin) {
    const std::int32_t start = op == AluOp::kMaximum ? Limits::min() : Limits::max();
    return HWY_DYNAMIC_DISPATCH(ReduceRowInt32)(op, values, count, start);
  }
  if (op == AluOp::kAbsMax) {
    return HWY_DYNAMIC_DISPATCH(ReduceRowInt32)(op, values, count, 0);
  }
  // The other operators do not look at the sign.
  return static_cast<std::int32_t>(
      reduce_row_uint32(op, reinterpret_cast<const std::uint32_t*>(values), count));
}

float scan_row(AluOp op0, AluOp op1, const float* a, std::ptrdiff_t a_stride, const float* b,
               std::ptrdiff_t b_stride, float initial, float* out, std::size_t count) {
  require_float_op(op0);
  require_float_op(op1);
  const FlushDenormals flush;
  return HWY_DYNAMIC_DISPATCH(ScanRow)(op0, op1, a, static_cast<std::size_t>(a_stride), b,
                                       static_cast<std::size_t>(b_stride), initial, out, count);
}

}  // namespace trena
#endif  // HWY_ONCE
