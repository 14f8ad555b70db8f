// design: the same bytes for any thread count and SIMD target.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include "trena/error.h"
#include "trena/number/convert.h"
#include "trena/number/simd.h"
#include "trena/number/threads.h"
#include "trena/number/tile_product.h"
#include "trena/number/vector_math.h"

namespace trena {
namespace {

class Digest {
 public:
  void add(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < size; ++i) {
      hash_ = (hash_ ^ bytes[i]) * 0x100000001B3U;  // FNV-1a
    }
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xCBF29CE484222325U;
};

// Every kind of float: ordinary, tiny, huge, Inf, NaN.
std::vector<float> mixed_values(std::size_t count) {
  std::mt19937 random(11);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits = random();
    values[i] = i % 3 == 0 ? std::bit_cast<float>(bits)
                           : std::ldexp(static_cast<float>(static_cast<std::int32_t>(bits)),
                                        -31 - static_cast<int>(bits % (i % 3 == 1 ? 4 : 90)));
  }
  return values;
}

void add_rows(Digest& digest, const std::vector<float>& values) {
  std::vector<float> out(values.size());
  std::vector<float> other(values.rbegin(), values.rend());
  for (std::size_t i = 0; i < kMathFunctionCount; ++i) {
    apply_row(static_cast<MathFunction>(i), values.data(), out.data(), values.size());
    digest.add(out.data(), out.size() * sizeof(float));
  }
  for (std::size_t i = 0; i < kAluOpCount; ++i) {
    const auto op = static_cast<AluOp>(i);
    if (!is_bitvec(op) && op != AluOp::kAverage) {
      binary_row(op, values.data(), 1, other.data(), 1, out.data(), out.size());
      digest.add(out.data(), out.size() * sizeof(float));
    }
    if (is_reduction(op) && !is_bitvec(op)) {
      // Without the NaN, which would hide everything else.
      std::vector<float> finite;
      for (const float value : values) {
        if (std::abs(value) < 1e3F) {
          finite.push_back(value);
        }
      }
      const float sum = reduce_row(op, finite.data(), finite.size());
      digest.add(&sum, sizeof(sum));
    }
  }
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!is_packed_x4(dtype)) {
      std::vector<std::byte> bytes(values.size() * size_bytes(dtype));
      cast(DType::kFloat32, reinterpret_cast<const std::byte*>(values.data()), dtype, bytes.data(),
           values.size());
      digest.add(bytes.data(), bytes.size());
      cast(dtype, bytes.data(), DType::kFloat32, reinterpret_cast<std::byte*>(out.data()),
           out.size());
      digest.add(out.data(), out.size() * sizeof(float));
    }
  }
}

void add_products(Digest& digest, const std::vector<float>& values) {
  for (const DType dtype : {DType::kBfloat16, DType::kFloat32, DType::kFloat8E5m2}) {
    for (const auto& [k, m, n] : {std::array<std::size_t, 3>{128, 128, 512}, {33, 7, 77}}) {
      const auto element = static_cast<std::ptrdiff_t>(size_bytes(dtype));
      std::vector<float> finite(k * std::max(m, n));
      for (std::size_t i = 0; i < finite.size(); ++i) {
        const float value = values[i % values.size()];
        // A few columns see Inf and NaN.
        finite[i] = std::abs(value) < 1e3F || i % 101 == 0 ? value : 0.5F;
      }
      std::vector<std::byte> bytes(finite.size() * size_bytes(dtype));
      write_row(dtype, finite.data(), bytes.data(), element, finite.size());
      std::vector<float> out(m * n, 1e-39F);
      tile_product({dtype, bytes.data(), element * static_cast<std::ptrdiff_t>(m), element},
                   {dtype, bytes.data(), element * static_cast<std::ptrdiff_t>(n), element}, k, m,
                   n, out.data(), static_cast<std::ptrdiff_t>(n), true);
      digest.add(out.data(), out.size() * sizeof(float));
    }
  }
}

// Leaves the process as it was, whatever a test did.
class SameBytes : public ::testing::Test {
 protected:
  void TearDown() override {
    force_simd_target("");
    set_bfloat16_dot(Bfloat16Dot::kFastest);
    set_thread_count(threads_);
  }
  const int threads_ = thread_count();
};

// Found on x86-64 (AVX-512, AVX2, SSE4, baseline) and aarch64 (NEON) alike. Whoever changes a value
// on purpose changes them here.
constexpr std::uint64_t kRowsDigest = 3590102310951525740U;
constexpr std::uint64_t kProductsDigest = 4480560516424884319U;

TEST_F(SameBytes, RowsUnderEverySimdTarget) {
  const std::vector<float> values = mixed_values(9001);
  for (const std::string& target : simd_targets()) {
    force_simd_target(target);
    EXPECT_EQ(simd_target(), target);
    Digest digest;
    add_rows(digest, values);
    EXPECT_EQ(digest.value(), kRowsDigest) << target;
  }
}

TEST_F(SameBytes, ProductsUnderEverySimdTarget) {
  const std::vector<float> values = mixed_values(9001);
  for (const std::string& target : simd_targets()) {
    force_simd_target(target);
    for (const Bfloat16Dot dot : {Bfloat16Dot::kNever, Bfloat16Dot::kAlways}) {
      set_bfloat16_dot(dot);
      Digest digest;
      add_products(digest, values);
      EXPECT_EQ(digest.value(), kProductsDigest) << target;
    }
  }
}

TEST_F(SameBytes, ProductsForAnyThreadCount) {
  const std::vector<float> values = mixed_values(9001);
  for (const int threads : {1, 2, 8}) {
    set_thread_count(threads);
    EXPECT_EQ(thread_count(), threads);
    Digest digest;
    add_products(digest, values);
    EXPECT_EQ(digest.value(), kProductsDigest) << threads << " threads";
  }
}

TEST_F(SameBytes, AnUnknownTargetIsRefused) {
  try {
    force_simd_target("MMX");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.id(), "simd-target");
    EXPECT_NE(error.text().limit.find(simd_targets().front()), std::string::npos);
  }
}

TEST_F(SameBytes, RangesCoverEveryIndexOnceAndErrorsArrive) {
  set_thread_count(4);
  std::vector<std::atomic<int>> seen(128);
  parallel_for_partitions(128, 10'000'000, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      ++seen[i];
    }
  });
  for (const auto& count : seen) {
    EXPECT_EQ(count, 1);
  }
  EXPECT_THROW(parallel_for_partitions(128, 10'000'000,
                                       [](std::size_t begin, std::size_t) {
                                         if (begin == 0) {
                                           throw std::runtime_error("partition 0");
                                         }
                                       }),
               std::runtime_error);
}

TEST(FlushDenormals, EndsWithItsScope) {
  volatile float tiny = 0x1p-126F;
  {
    const FlushDenormals flush;
    EXPECT_EQ(tiny * 0.5F, 0.0F);
  }
  EXPECT_NE(tiny * 0.5F, 0.0F);
}

}  // namespace
}  // namespace trena
