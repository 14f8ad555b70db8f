// Expected codes are read off the bit layouts of IEEE 754, OCP FP8 and OCP MX, not off the code
// under test.
#include "trena/number/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "trena/error.h"
#include "trena/number/threads.h"

namespace trena {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::uint32_t encoded(DType dtype, float value) {
  std::uint32_t code = 0;
  from_float(dtype, value, reinterpret_cast<std::byte*>(&code));
  return code;
}

float decoded(DType dtype, std::uint32_t code) {
  return to_float(dtype, reinterpret_cast<const std::byte*>(&code));
}

struct Case {
  DType dtype;
  float value;
  std::uint32_t code;
};

TEST(Convert, RoundsToNearestEven) {
  const Case cases[] = {
      {DType::kBfloat16, 1.0F, 0x3F80},
      {DType::kBfloat16, 1.00390625F, 0x3F80},         // 1 + 2^-8: tie, down to even
      {DType::kBfloat16, 1.01171875F, 0x3F82},         // 1 + 3·2^-8: tie, up to even
      {DType::kFloat16, 65504.0F, 0x7BFF},             // largest
      {DType::kFloat16, 65519.0F, 0x7BFF},             //
      {DType::kFloat16, 65520.0F, 0x7C00},             // tie with 2^16: Inf
      {DType::kFloat16, 0x1p-24F, 0x0001},             // smallest denormal
      {DType::kFloat16, 0x1p-25F, 0x0000},             // tie with zero
      {DType::kFloat16, -0x1.8p-24F, 0x8002},          // tie, to even
      {DType::kFloat8E4m3, 17.0F, 0x58},               // 16 or 18: even is 16
      {DType::kFloat8E4m3, 19.0F, 0x5A},               // 18 or 20: even is 20
      {DType::kFloat8E5m2, 0x1p-16F, 0x01},            //
      {DType::kFloat8E3m4, 15.5F, 0x6F},               // largest
      {DType::kTfloat32, 1.00048828125F, 0x3F800000},  // 1 + 2^-11: tie, down to even
      {DType::kTfloat32, 1.00146484375F, 0x3F804000},  // 1 + 3·2^-11: tie, up to even
      {DType::kFloat8E8m0fnu, 1.0F, 127},
      {DType::kFloat8E8m0fnu, 3.0F, 129},  // tie between 2 and 4
      {DType::kFloat8E8m0fnu, 0x1p-127F, 0},
  };
  for (const Case& each : cases) {
    EXPECT_EQ(encoded(each.dtype, each.value), each.code) << name(each.dtype) << " " << each.value;
  }
}

// hw.md §7 row 22: no saturation; hw.md §3.1: largest values.
TEST(Convert, Float8OverflowDoesNotSaturate) {
  const Case cases[] = {
      {DType::kFloat8E4m3, 240.0F, 0x77},       {DType::kFloat8E4m3, 247.0F, 0x77},
      {DType::kFloat8E4m3, 248.0F, 0x78},       {DType::kFloat8E4m3, -1e9F, 0xF8},
      {DType::kFloat8E4m3fn, 448.0F, 0x7E},     {DType::kFloat8E4m3fn, 464.0F, 0x7E},
      {DType::kFloat8E4m3fn, 465.0F, 0x7F},     {DType::kFloat8E4m3fn, -kInfinity, 0xFF},
      {DType::kFloat8E5m2, 57344.0F, 0x7B},     {DType::kFloat8E5m2, 61440.0F, 0x7C},
      {DType::kFloat8E8m0fnu, 0.0F, 0xFF},      {DType::kFloat8E8m0fnu, -1.0F, 0xFF},
      {DType::kFloat8E8m0fnu, kInfinity, 0xFF}, {DType::kFloat8E3m4, 16.0F, 0x70},
  };
  for (const Case& each : cases) {
    EXPECT_EQ(encoded(each.dtype, each.value), each.code) << name(each.dtype) << " " << each.value;
  }
}

TEST(Convert, DecodesSpecialCodes) {
  EXPECT_EQ(decoded(DType::kFloat8E4m3, 0x78), kInfinity);
  EXPECT_TRUE(std::isnan(decoded(DType::kFloat8E4m3, 0x79)));
  EXPECT_EQ(decoded(DType::kFloat8E4m3fn, 0x78), 256.0F);
  EXPECT_EQ(decoded(DType::kFloat8E4m3fn, 0x7E), 448.0F);
  EXPECT_TRUE(std::isnan(decoded(DType::kFloat8E4m3fn, 0xFF)));
  EXPECT_EQ(decoded(DType::kFloat8E8m0fnu, 0), 0x1p-127F);
  EXPECT_EQ(decoded(DType::kFloat16, 0x0001), 0x1p-24F);
  EXPECT_EQ(decoded(DType::kBfloat16, 0x0001), 0x1p-133F);
  EXPECT_TRUE(std::signbit(decoded(DType::kFloat16, 0x8000)));
}

TEST(Convert, EveryCodeSurvivesTheWayThroughFloat32) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat8E4m3,
                            DType::kFloat8E4m3fn, DType::kFloat8E5m2, DType::kFloat8E3m4,
                            DType::kFloat8E8m0fnu, DType::kInt8, DType::kUint16}) {
    for (std::uint32_t code = 0; code < 1U << (8 * size_bytes(dtype)); ++code) {
      const float value = decoded(dtype, code);
      if (!std::isnan(value)) {
        ASSERT_EQ(encoded(dtype, value), code) << name(dtype);
      }
    }
  }
}

// hw.md §3.3: fp -> int rounds to nearest even and saturates.
TEST(Convert, IntegersRoundHalfToEvenAndSaturate) {
  EXPECT_EQ(encoded(DType::kInt8, 2.5F), 2U);
  EXPECT_EQ(encoded(DType::kInt8, 3.5F), 4U);
  EXPECT_EQ(encoded(DType::kInt8, 1000.0F), 127U);
  EXPECT_EQ(encoded(DType::kInt8, -1000.0F), 0x80U);
  EXPECT_EQ(encoded(DType::kUint8, -0.5F), 0U);
  EXPECT_EQ(encoded(DType::kUint16, 65535.5F), 65535U);
  EXPECT_EQ(encoded(DType::kInt32, 2147483648.0F), 2147483647U);
  EXPECT_EQ(encoded(DType::kInt32, -kInfinity), 0x80000000U);
  EXPECT_EQ(encoded(DType::kUint32, 4294967040.0F), 4294967040U);
  EXPECT_EQ(encoded(DType::kInt32, kNan), 0U);
  EXPECT_EQ(encoded(DType::kBool, 0.25F), 1U);
  EXPECT_EQ(encoded(DType::kBool, -0.0F), 0U);
}

TEST(Convert, StridedRowsTouchOnlyTheirElements) {
  std::vector<std::uint16_t> storage(1000, 0xAAAA);
  std::vector<float> values(300);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i);
  }
  write_row(DType::kBfloat16, values.data(), reinterpret_cast<std::byte*>(storage.data()), 6, 300);
  EXPECT_EQ(storage[3 * 255], 0x437F);  // 255
  EXPECT_EQ(storage[1], 0xAAAA);
  EXPECT_EQ(storage[2], 0xAAAA);
  std::vector<float> back(300);
  read_row(DType::kBfloat16, reinterpret_cast<std::byte*>(&storage[3 * 255]), -6, 256, back.data());
  EXPECT_EQ(back[0], 255.0F);
  EXPECT_EQ(back[255], 0.0F);
  read_row(DType::kBfloat16, reinterpret_cast<std::byte*>(&storage[9]), 0, 300, back.data());
  EXPECT_EQ(back[299], 3.0F);
}

TEST(Convert, ExactIntegerRowsKeepWhatFloat32Cannot) {
  const std::int32_t values[] = {16777217, -16777217, 300, -5};
  std::int32_t back[4] = {};
  write_row_int32(DType::kInt32, values, reinterpret_cast<std::byte*>(back), 4, 4);
  EXPECT_EQ(back[0], 16777217);
  std::uint8_t small[4] = {};
  write_row_int32(DType::kUint8, values, reinterpret_cast<std::byte*>(small), 1, 4);
  EXPECT_EQ(small[2], 255);
  EXPECT_EQ(small[3], 0);
  const std::int64_t wide[] = {std::int64_t{1} << 40, -1};
  std::uint32_t narrow[2] = {};
  read_row_uint32(DType::kInt64, reinterpret_cast<const std::byte*>(wide), 8, 2, narrow);
  EXPECT_EQ(narrow[0], 0xFFFFFFFFU);
  EXPECT_EQ(narrow[1], 0U);
}

TEST(Convert, CastKeepsBitsOfEqualTypes) {
  const std::uint32_t signalling = 0x7F800001U;
  std::uint32_t out = 0;
  cast(DType::kFloat32, reinterpret_cast<const std::byte*>(&signalling), DType::kFloat32,
       reinterpret_cast<std::byte*>(&out), 1);
  EXPECT_EQ(out, signalling);
  const std::int64_t label = 123456789012;
  std::int64_t same = 0;
  cast(DType::kInt64, reinterpret_cast<const std::byte*>(&label), DType::kUint64,
       reinterpret_cast<std::byte*>(&same), 1);
  EXPECT_EQ(same, label);
}

TEST(Convert, DenormalsSurviveAFlushingThread) {
  const FlushDenormals flush;
  EXPECT_EQ(encoded(DType::kBfloat16, std::bit_cast<float>(0x00010000U)), 0x0001U);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(decoded(DType::kBfloat16, 0x8001)), 0x80010000U);
  EXPECT_EQ(decoded(DType::kFloat16, 0x0001), 0x1p-24F);
  EXPECT_EQ(encoded(DType::kBool, std::bit_cast<float>(1U)), 1U);
}

TEST(Convert, PackedTypesUnpackLowElementFirst) {
  const std::uint16_t code = 0x7F21;  // 1 -> 0.5, 2 -> 1, 15 -> -6, 7 -> 6
  float values[4] = {};
  unpack_x4_row(DType::kFloat4E2m1fnX4, reinterpret_cast<const std::byte*>(&code), 2, 1, values);
  EXPECT_EQ(values[0], 0.5F);
  EXPECT_EQ(values[1], 1.0F);
  EXPECT_EQ(values[2], -6.0F);
  EXPECT_EQ(values[3], 6.0F);
  const float wanted[4] = {0.3F, 1.25F, -100.0F, 5.1F};  // 1.25 ties to 1, 5.1 is nearer 6
  std::uint16_t packed = 0;
  pack_x4_row(DType::kFloat4E2m1fnX4, wanted, reinterpret_cast<std::byte*>(&packed), 2, 1);
  EXPECT_EQ(packed, 0x7F21);
  std::uint32_t word = 0;
  pack_x4_row(DType::kFloat8E4m3fnX4, wanted, reinterpret_cast<std::byte*>(&word), 4, 1);
  EXPECT_EQ(word & 0xFF00U, 0x3A00U);  // 1.25
  EXPECT_THROW(to_float(DType::kFloat8E5m2X4, reinterpret_cast<const std::byte*>(&word)), Error);
}

// Public test of the vendor (hw.md §3.4): fp16 1024 plus 2048 times 0.5 stays 1024 under nearest
// even and comes to about 2048 under stochastic rounding.
TEST(StochasticRounder, AddsUpWhatNearestEvenLoses) {
  StochasticRounder rounder(1);
  float sum = 1024.0F;
  float nearest = 1024.0F;
  for (int i = 0; i < 2048; ++i) {
    std::uint16_t code = 0;
    auto* bytes = reinterpret_cast<std::byte*>(&code);
    const float next = sum + 0.5F;
    rounder.write_row(DType::kFloat16, &next, bytes, 2, 1);
    sum = to_float(DType::kFloat16, bytes);
    from_float(DType::kFloat16, nearest + 0.5F, bytes);
    nearest = to_float(DType::kFloat16, bytes);
  }
  EXPECT_EQ(nearest, 1024.0F);
  EXPECT_NEAR(sum, 2048.0F, 70.0F);  // three standard deviations: sqrt(2048/4) · 3
}

TEST(StochasticRounder, RoundsUpInProportionToTheFraction) {
  // 1 + 2^-3 · 0.25: a quarter of the way from 1 to the next e4m3 value. Also a denormal, a quarter
  // of its quantum.
  for (const auto& [value, high] : {std::pair{1.03125F, 0x39U}, std::pair{0x1p-11F, 0x01U}}) {
    StochasticRounder rounder(7);
    const std::vector<float> values(20000, value);
    std::vector<std::uint8_t> codes(values.size());
    rounder.write_row(DType::kFloat8E4m3, values.data(), reinterpret_cast<std::byte*>(codes.data()),
                      1, codes.size());
    int ups = 0;
    for (const std::uint8_t code : codes) {
      ASSERT_TRUE(code == high || code == high - 1U);
      ups += code == high ? 1 : 0;
    }
    EXPECT_NEAR(ups, 5000, 184);  // three standard deviations
  }
}

TEST(StochasticRounder, RepeatsWithItsSeedAndLeavesExactValuesAlone) {
  const std::vector<float> values = {1.0F, -240.0F, 3.3F, 1e9F, kNan, 0.0F, -0.01F};
  std::vector<std::uint8_t> first(values.size());
  std::vector<std::uint8_t> second(values.size());
  StochasticRounder(3).write_row(DType::kFloat8E4m3, values.data(),
                                 reinterpret_cast<std::byte*>(first.data()), 1, values.size());
  StochasticRounder(3).write_row(DType::kFloat8E4m3, values.data(),
                                 reinterpret_cast<std::byte*>(second.data()), 1, values.size());
  EXPECT_EQ(first, second);
  EXPECT_EQ(first[0], 0x38);
  EXPECT_EQ(first[1], 0xF7);
  EXPECT_EQ(first[3], 0x78);
  EXPECT_EQ(first[4], 0x7C);
  EXPECT_EQ(first[5], 0x00);
}

}  // namespace
}  // namespace trena
