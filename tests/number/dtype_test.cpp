#include "trena/number/dtype.h"

#include <gtest/gtest.h>

namespace trena {
namespace {

TEST(DType, SizesFollowHwMd31) {
  EXPECT_EQ(size_bytes(DType::kBool), 1U);
  EXPECT_EQ(size_bytes(DType::kBfloat16), 2U);
  EXPECT_EQ(size_bytes(DType::kTfloat32), 4U);
  EXPECT_EQ(size_bytes(DType::kFloat8E8m0fnu), 1U);
  EXPECT_EQ(size_bytes(DType::kFloat8E5m2X4), 4U);
  EXPECT_EQ(size_bytes(DType::kFloat4E2m1fnX4), 2U);
  EXPECT_EQ(info(DType::kFloat4E2m1fnX4).packed_elements, 4);
}

TEST(DType, EveryNameLeadsBackToItsType) {
  for (std::size_t index = 0; index < kDTypeCount; ++index) {
    const auto dtype = static_cast<DType>(index);
    EXPECT_EQ(dtype_from_name(name(dtype)), dtype) << name(dtype);
    EXPECT_NE(info(dtype).is_float, info(dtype).is_integer);
  }
  EXPECT_EQ(dtype_from_name("float8_e4m3fn"), DType::kFloat8E4m3fn);
  EXPECT_EQ(dtype_from_name("float7"), std::nullopt);
}

}  // namespace
}  // namespace trena
