#include "trena/number/tile_product.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "trena/number/convert.h"

namespace trena {
namespace {

struct Matrix {
  DType dtype;
  std::size_t rows, columns;
  std::vector<std::byte> bytes;

  Matrix(DType type, std::size_t row_count, std::size_t column_count,
         const std::vector<float>& values)
      : dtype(type),
        rows(row_count),
        columns(column_count),
        bytes(row_count * column_count * size_bytes(type)) {
    write_row(type, values.data(), bytes.data(), static_cast<std::ptrdiff_t>(size_bytes(type)),
              row_count * column_count);
  }
  TileOperand operand() const {
    const auto element = static_cast<std::ptrdiff_t>(size_bytes(dtype));
    return {dtype, bytes.data(), element * static_cast<std::ptrdiff_t>(columns), element};
  }
  float at(std::size_t row, std::size_t column) const {
    return to_float(dtype, bytes.data() + (row * columns + column) * size_bytes(dtype));
  }
};

std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) {
    value = normal(random);
  }
  return values;
}

// The definition, in the order of host.md §2. std::fma rounds once.
float defined_product(const Matrix& stationary, const Matrix& moving, std::size_t m, std::size_t n,
                      float start) {
  float sum = start;
  for (std::size_t pair = 0; pair < stationary.rows; pair += 2) {
    if (pair + 1 < stationary.rows) {
      sum = std::fma(stationary.at(pair + 1, m), moving.at(pair + 1, n), sum);
    }
    sum = std::fma(stationary.at(pair, m), moving.at(pair, n), sum);
  }
  return sum;
}

TEST(TileProduct, FollowsTheFixedOrder) {
  for (const DType dtype : {DType::kBfloat16, DType::kFloat32, DType::kFloat16, DType::kTfloat32,
                            DType::kFloat8E4m3, DType::kFloat8E5m2, DType::kFloat8E3m4}) {
    for (const auto& [k, m, n] :
         {std::array<std::size_t, 3>{128, 128, 100}, {37, 7, 65}, {1, 1, 1}, {300, 5, 17}}) {
      const Matrix stationary(dtype, k, m, random_values(k * m, 1));
      const Matrix moving(dtype, k, n, random_values(k * n, 2));
      std::vector<float> out(m * n, 0.25F);
      tile_product(stationary.operand(), moving.operand(), k, m, n, out.data(),
                   static_cast<std::ptrdiff_t>(n), true);
      for (std::size_t i = 0; i < out.size(); ++i) {
        ASSERT_EQ(out[i], defined_product(stationary, moving, i / n, i % n, 0.25F))
            << name(dtype) << " " << k << "x" << m << "x" << n << " at " << i;
      }
    }
  }
}

TEST(TileProduct, OverwritesUnlessAccumulating) {
  const Matrix ones(DType::kBfloat16, 4, 4, std::vector<float>(16, 1.0F));
  std::vector<float> out(16, std::numeric_limits<float>::quiet_NaN());
  tile_product(ones.operand(), ones.operand(), 4, 4, 4, out.data(), 4, false);
  EXPECT_EQ(out, std::vector<float>(16, 4.0F));
  tile_product(ones.operand(), ones.operand(), 4, 4, 4, out.data(), 4, true);
  EXPECT_EQ(out, std::vector<float>(16, 8.0F));
  tile_product(ones.operand(), ones.operand(), 0, 4, 4, out.data(), 4, false);
  EXPECT_EQ(out, std::vector<float>(16, 0.0F));
}

TEST(TileProduct, StridesAndMixedTypes) {
  const std::size_t k = 6;
  const Matrix stationary(DType::kFloat8E4m3, k, 3, random_values(k * 3, 3));
  const Matrix moving(DType::kBfloat16, 2 * k, 8, random_values(2 * k * 8, 4));
  // Every second row, every second column, starting from the last column and going backwards.
  const TileOperand operand = {DType::kBfloat16, moving.bytes.data() + 7 * 2, 2 * 8 * 2, -4};
  std::vector<float> picked(k * 4);
  for (std::size_t i = 0; i < picked.size(); ++i) {
    picked[i] = moving.at(i / 4 * 2, 7 - 2 * (i % 4));
  }
  const Matrix plain(DType::kFloat32, k, 4, picked);
  const Matrix plain_stationary(DType::kFloat32, k, 3, [&] {
    std::vector<float> values(k * 3);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = stationary.at(i / 3, i % 3);
    }
    return values;
  }());
  std::vector<float> out(3 * 10, -1.0F);
  tile_product(stationary.operand(), operand, k, 3, 4, out.data(), 10, false);
  for (std::size_t m = 0; m < 3; ++m) {
    for (std::size_t n = 0; n < 4; ++n) {
      EXPECT_EQ(out[m * 10 + n], defined_product(plain_stationary, plain, m, n, 0.0F));
    }
    EXPECT_EQ(out[m * 10 + 4], -1.0F);  // beyond the row
  }
}

TEST(TileProduct, DenormalsAreZeroAndNanHasOneForm) {
  const auto product = [](DType dtype, float a, float b, float start) {
    const Matrix left(dtype, 1, 1, {a});
    const Matrix right(dtype, 1, 1, {b});
    float out = start;
    tile_product(left.operand(), right.operand(), 1, 1, 1, &out, 1, true);
    return std::bit_cast<std::uint32_t>(out);
  };
  for (const DType dtype : {DType::kBfloat16, DType::kFloat32}) {
    EXPECT_EQ(product(dtype, 0x1p-127F, 0x1p100F, 0.0F), 0U);  // operand
    EXPECT_EQ(product(dtype, 0x1p-70F, 0x1p-60F, 0.0F), 0U);   // result
    EXPECT_EQ(product(dtype, 0.0F, 0.0F, 0x1p-130F), 0U);      // old value
    EXPECT_EQ(product(dtype, 0.0F, std::numeric_limits<float>::infinity(), 0.0F), 0x7FC00000U);
  }
}

TEST(TileProduct, TheFaultHookFlipsOneElement) {
  const Matrix ones(DType::kBfloat16, 2, 2, std::vector<float>(4, 1.0F));
  std::vector<float> out(4);
  set_product_fault(true);
  tile_product(ones.operand(), ones.operand(), 2, 2, 2, out.data(), 2, false);
  set_product_fault(false);
  EXPECT_EQ(out, (std::vector<float>{-2.0F, 2.0F, 2.0F, 2.0F}));
}

}  // namespace
}  // namespace trena
