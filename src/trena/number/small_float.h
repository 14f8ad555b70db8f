// The bit layouts of hw.md §3.1 as straight-line integer code: constexpr, without branches so that
// compilers turn loops over it into vector code, and independent of rounding and denormal modes.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace trena::small_float {

inline constexpr std::uint32_t kFloat32Infinity = 0x7F800000U;
inline constexpr std::uint32_t kFloat32Nan = 0x7FC00000U;

// A format with sign, exponent and mantissa. kTopIsSpecial: the top exponent means Inf and NaN, as
// in IEEE 754.
template <int kExponentBits, int kMantissaBits, bool kTopIsSpecial, std::uint32_t kOverflowCode,
          std::uint32_t kNanCode>
struct Format {
  static constexpr int kMantissa = kMantissaBits;
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kSignShift = kExponentBits + kMantissaBits;
  static constexpr std::uint32_t kMagnitudeMask = (1U << kSignShift) - 1U;
  static constexpr std::uint32_t kTop = ((1U << kExponentBits) - 1U) << kMantissaBits;
  static constexpr std::uint32_t kOverflow = kOverflowCode;
  static constexpr std::uint32_t kNan = kNanCode;
  static constexpr bool kIeee = kTopIsSpecial;
  // Codes above this are no numbers.
  static constexpr std::uint32_t kLargest = kTopIsSpecial                ? kTop - 1U
                                            : kNanCode == kMagnitudeMask ? kMagnitudeMask - 1U
                                                                         : kMagnitudeMask;
};

using Float16 = Format<5, 10, true, 0x7C00U, 0x7E00U>;
using Float8E4m3 = Format<4, 3, true, 0x78U, 0x7CU>;
using Float8E4m3fn = Format<4, 3, false, 0x7FU, 0x7FU>;
using Float8E5m2 = Format<5, 2, true, 0x7CU, 0x7EU>;
using Float8E3m4 = Format<3, 4, true, 0x70U, 0x78U>;
// No Inf and no NaN: both saturate to 6, NaN becomes zero (ml_dtypes' float4_e2m1fn; its NaN is
// -0).
using Float4E2m1fn = Format<2, 1, false, 0x7U, 0x0U>;

// 2^exponent, exact, for exponents of normal float32 values.
constexpr float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
}

template <typename F>
constexpr std::uint32_t encode(float value) {
  constexpr int kShift = 23 - F::kMantissa;
  constexpr std::uint32_t kFirstNormal = static_cast<std::uint32_t>(128 - F::kBias) << 23;
  // Adding this constant leaves a denormal's rounded code in the low bits: its ulp is the
  // denormals' quantum.
  constexpr float kMagic = power_of_two(1 - F::kBias - F::kMantissa + 23);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  const std::uint32_t sign = (bits >> 31) << F::kSignShift;
  const std::uint32_t rounded =
      magnitude + ((1U << (kShift - 1)) - 1U) + ((magnitude >> kShift) & 1U);
  const std::uint32_t normal =
      (rounded - (static_cast<std::uint32_t>(127 - F::kBias) << 23)) >> kShift;
  const std::uint32_t denormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + kMagic) -
      std::bit_cast<std::uint32_t>(kMagic);
  std::uint32_t code = magnitude < kFirstNormal ? denormal : normal;
  code = magnitude >= kFirstNormal && normal > F::kLargest ? F::kOverflow : code;
  code = magnitude > kFloat32Infinity ? F::kNan : code;
  return code | sign;
}

template <typename F>
constexpr float decode(std::uint32_t code) {
  constexpr int kShift = 23 - F::kMantissa;
  const std::uint32_t sign = (code >> F::kSignShift) << 31;
  const std::uint32_t magnitude = code & F::kMagnitudeMask;
  const std::uint32_t normal =
      (magnitude << kShift) + (static_cast<std::uint32_t>(127 - F::kBias) << 23);
  const std::uint32_t denormal =
      std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(magnitude)) *
                                   power_of_two(1 - F::kBias - F::kMantissa));
  std::uint32_t bits = magnitude < (1U << F::kMantissa) ? denormal : normal;
  if constexpr (F::kIeee) {
    bits = magnitude == F::kTop ? kFloat32Infinity : bits;
  }
  bits = magnitude > F::kLargest && !(F::kIeee && magnitude == F::kTop) ? kFloat32Nan : bits;
  return std::bit_cast<float>(bits | sign);
}

constexpr std::uint32_t encode_bfloat16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  return (bits & 0x7FFFFFFFU) > kFloat32Infinity ? (bits >> 31 << 15) | 0x7FC0U : rounded;
}

constexpr float decode_bfloat16(std::uint32_t code) { return std::bit_cast<float>(code << 16); }

constexpr float round_tfloat32(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0xFFFU + ((bits >> 13) & 1U)) & ~0x1FFFU;
  const bool is_nan = (bits & 0x7FFFFFFFU) > kFloat32Infinity;
  return std::bit_cast<float>(is_nan ? (bits & 0x80000000U) | kFloat32Nan : rounded);
}

// Powers of two without zero or sign; a tie goes to the larger power as in ml_dtypes'
// float8_e8m0fnu (which rounds up the float32 denormals above 2^-127; here the nearer one wins).
constexpr std::uint32_t encode_e8m0(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t normal = (bits + 0x400000U) >> 23;
  // Code 0 is 2^-127, a float32 denormal, whose neighbours lie on a finer grid.
  const std::uint32_t denormal = bits >= 0x600000U ? 1U : 0U;
  const std::uint32_t code = bits < 0x800000U ? denormal : normal;
  return bits == 0U || bits >= kFloat32Infinity || code > 254U ? 0xFFU : code;
}

constexpr float decode_e8m0(std::uint32_t code) {
  std::uint32_t bits = code == 0U ? 0x400000U : code << 23;
  bits = code == 0xFFU ? kFloat32Nan : bits;
  return std::bit_cast<float>(bits);
}

// Round half to even, saturate, NaN -> 0 (hw.md §3.3).
template <typename Integer>
constexpr Integer to_integer(float value) {
  using Limits = std::numeric_limits<Integer>;
  constexpr auto kLow = static_cast<float>(Limits::min());
  constexpr float kLimit = power_of_two(Limits::digits);  // one more than the largest
  const float magnitude = value < 0.0F ? -value : value;
  // Above 2^23 every float32 is an integer.
  const float whole = (magnitude + 8388608.0F) - 8388608.0F;
  const float rounded_magnitude = magnitude < 8388608.0F ? whole : magnitude;
  const float rounded = value < 0.0F ? -rounded_magnitude : rounded_magnitude;
  const bool inside = rounded > kLow && rounded < kLimit;
  const auto converted = static_cast<Integer>(inside ? rounded : 0.0F);
  const Integer beyond =
      rounded >= kLimit ? Limits::max() : (rounded <= kLow ? Limits::min() : Integer(0));
  return inside ? converted : beyond;
}

}  // namespace trena::small_float
