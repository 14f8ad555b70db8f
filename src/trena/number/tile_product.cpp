#include "trena/number/tile_product.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "trena/number/convert.h"
#include "trena/number/simd.h"
#include "trena/number/simd_targets.h"
#include "trena/number/threads.h"
#include "trena/number/tile_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trena/number/tile_product.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trena::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::uint32_t kNanBits = 0x7FC00000U;

#if HWY_NATIVE_FMA

using FloatTag = hn::CappedTag<float, tile::kColumnStep>;
using FloatVector = hn::Vec<FloatTag>;
constexpr std::size_t kRowsPerBlock = 6;

template <std::size_t kRows, std::size_t kVectors>
HWY_INLINE void multiply_step(const float* weights, const float* moving,
                              FloatVector (&sums)[kRows][kVectors]) {
  const FloatTag d;
  FloatVector columns[kVectors];
  for (std::size_t v = 0; v < kVectors; ++v) {
    columns[v] = hn::LoadU(d, moving + v * hn::Lanes(d));
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    const FloatVector weight = hn::Set(d, weights[r]);
    for (std::size_t v = 0; v < kVectors; ++v) {
      sums[r][v] = hn::MulAdd(weight, columns[v], sums[r][v]);
    }
  }
}

template <std::size_t kRows, std::size_t kVectors>
HWY_INLINE void block(const tile::PackedProduct& product, std::size_t row, std::size_t column,
                      float* out, std::ptrdiff_t out_pitch) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  const auto* stationary = reinterpret_cast<const float*>(product.stationary) + row;
  const auto* moving = reinterpret_cast<const float*>(product.moving) + column;
  FloatVector sums[kRows][kVectors];
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      sums[r][v] = product.accumulate
                       ? hn::LoadU(d, out + static_cast<std::ptrdiff_t>(r) * out_pitch + v * lanes)
                       : hn::Zero(d);
    }
  }
  for (std::size_t pair = 0; pair < product.pairs; ++pair) {
    // k = 1, 0, 3, 2, …: the order of vdpbf16ps (host.md §2).
    multiply_step<kRows, kVectors>(stationary + product.stationary_pitch,
                                   moving + tile::kPanelColumns, sums);
    multiply_step<kRows, kVectors>(stationary, moving, sums);
    stationary += 2 * product.stationary_pitch;
    moving += 2 * tile::kPanelColumns;
  }
  const FloatVector nan = hn::BitCast(d, hn::Set(hn::RebindToUnsigned<FloatTag>(), kNanBits));
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      hn::StoreU(hn::IfThenElse(hn::IsNaN(sums[r][v]), nan, sums[r][v]), d,
                 out + static_cast<std::ptrdiff_t>(r) * out_pitch + v * lanes);
    }
  }
}

// The last columns go through a buffer: only they may be stored.
template <std::size_t kRows>
HWY_INLINE void last_block(const tile::PackedProduct& product, std::size_t row,
                           std::size_t column) {
  float buffer[kRows * tile::kColumnStep] = {};
  const std::size_t left = product.columns - column;
  float* out = product.out + static_cast<std::ptrdiff_t>(row) * product.out_pitch + column;
  if (product.accumulate) {
    for (std::size_t r = 0; r < kRows; ++r) {
      std::copy_n(out + static_cast<std::ptrdiff_t>(r) * product.out_pitch, left,
                  buffer + r * tile::kColumnStep);
    }
  }
  block<kRows, 1>(product, row, column, buffer, tile::kColumnStep);
  for (std::size_t r = 0; r < kRows; ++r) {
    std::copy_n(buffer + r * tile::kColumnStep, left,
                out + static_cast<std::ptrdiff_t>(r) * product.out_pitch);
  }
}

template <std::size_t kRows>
HWY_NOINLINE void row_block(const tile::PackedProduct& product, std::size_t row) {
  // 6 x 2 accumulators fill the 16 registers of AVX2, 6 x 4 those of AVX-512 and NEON.
  constexpr std::size_t kVectors = HWY_TARGET == HWY_AVX2 ? 2 : 4;
  const std::size_t lanes = hn::Lanes(FloatTag());
  std::size_t column = 0;
  float* out = product.out + static_cast<std::ptrdiff_t>(row) * product.out_pitch;
  for (; column + kVectors * lanes <= product.columns; column += kVectors * lanes) {
    block<kRows, kVectors>(product, row, column, out + column, product.out_pitch);
  }
  for (; column + lanes <= product.columns; column += lanes) {
    block<kRows, 1>(product, row, column, out + column, product.out_pitch);
  }
  if (column < product.columns) {
    last_block<kRows>(product, row, column);
  }
}

void MultiplyFloat32(const tile::PackedProduct& product) {
  tile::for_each_row_block<kRowsPerBlock>(
      product.rows, [&](auto count, std::size_t row) { row_block<count()>(product, row); });
}

#else

// fma(a, b, c) of a CPU without one: the product is exact in double, the sum is rounded to odd, so
// that the rounding to float32 is the only one (Boldo and Melquiond 2008).
HWY_INLINE float fused_multiply_add(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double addend = static_cast<double>(c);
  const double sum = product + addend;
  const double addend_part = sum - product;
  const double error = (product - (sum - addend_part)) + (addend - addend_part);
  const std::int64_t bits = std::bit_cast<std::int64_t>(sum);
  const std::int64_t away = (error > 0.0) == (sum > 0.0) ? 1 : -1;
  const bool adjust = (error > 0.0 || error < 0.0) && (bits & 1) == 0;
  return static_cast<float>(std::bit_cast<double>(adjust ? bits + away : bits));
}

void MultiplyFloat32(const tile::PackedProduct& product) {
  const auto* stationary = reinterpret_cast<const float*>(product.stationary);
  const auto* moving = reinterpret_cast<const float*>(product.moving);
  for (std::size_t row = 0; row < product.rows; ++row) {
    float* out = product.out + static_cast<std::ptrdiff_t>(row) * product.out_pitch;
    float sums[tile::kPanelColumns] = {};
    if (product.accumulate) {
      std::copy_n(out, product.columns, sums);
    }
    for (std::size_t step = 0; step < 2 * product.pairs; ++step) {
      const std::size_t k = step ^ 1U;
      const float weight = stationary[k * product.stationary_pitch + row];
      for (std::size_t n = 0; n < tile::kPanelColumns; ++n) {
        sums[n] = fused_multiply_add(weight, moving[k * tile::kPanelColumns + n], sums[n]);
      }
    }
    for (std::size_t n = 0; n < product.columns; ++n) {
      out[n] = sums[n] == sums[n] ? sums[n] : std::bit_cast<float>(kNanBits);
    }
  }
}

#endif

}  // namespace
}  // namespace trena::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trena {
namespace tile {
namespace {

HWY_EXPORT(MultiplyFloat32);

std::atomic<Bfloat16Dot> dot_choice{Bfloat16Dot::kFastest};
std::atomic<bool> product_fault{false};

// Work of this many multiply-accumulates is worth a second thread.
constexpr std::size_t kParallelMacsMin = 4'000'000;

bool exact_in_bfloat16(DType dtype) {
  return dtype == DType::kBfloat16 || is_float8(dtype) || dtype == DType::kInt8 ||
         dtype == DType::kUint8 || dtype == DType::kBool;
}

std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

// One operand's contraction rows [first, first + rows) and columns [column, column + columns).
struct Window {
  const TileOperand& operand;
  std::size_t first, rows;
  std::size_t column, columns;

  const std::byte* row(std::size_t k) const {
    return operand.data + static_cast<std::ptrdiff_t>(first + k) * operand.row_stride_bytes +
           static_cast<std::ptrdiff_t>(column) * operand.column_stride_bytes;
  }
  void read(std::size_t k, float* out) const {
    if (k < rows) {
      read_row(operand.dtype, row(k), operand.column_stride_bytes, columns, out);
    } else {
      std::fill_n(out, columns, 0.0F);
    }
  }
};

// Columns of a window read at a time when packing.
constexpr std::size_t kPackColumns = 128;

void pack_float32(const Window& window, std::size_t pitch, std::byte* packed) {
  auto* out = reinterpret_cast<float*>(packed);
  read_rows(window.operand.dtype, window.row(0), window.operand.row_stride_bytes,
            window.operand.column_stride_bytes, window.rows, window.columns, out, pitch);
  if (window.rows % 2 == 1) {
    std::fill_n(out + window.rows * pitch, window.columns, 0.0F);
  }
}

void pack_bfloat16(const Window& window, std::size_t pitch, std::byte* packed) {
  static constexpr std::array<std::uint16_t, kPackColumns> kZeros = {};
  std::array<float, kPackColumns> even;
  std::array<float, kPackColumns> odd;
  const bool direct =
      window.operand.dtype == DType::kBfloat16 && window.operand.column_stride_bytes == 2;
  for (std::size_t begin = 0; begin < window.columns; begin += kPackColumns) {
    Window part = window;
    part.column += begin;
    part.columns = std::min(kPackColumns, window.columns - begin);
    for (std::size_t k = 0; k < window.rows; k += 2) {
      std::uint32_t* out = reinterpret_cast<std::uint32_t*>(packed) + k / 2 * pitch + begin;
      if (direct) {
        const auto* low = reinterpret_cast<const std::uint16_t*>(part.row(k));
        const auto* high = k + 1 < part.rows
                               ? reinterpret_cast<const std::uint16_t*>(part.row(k + 1))
                               : kZeros.data();
        pack_pairs_bfloat16(low, high, part.columns, out);
      } else {
        part.read(k, even.data());
        part.read(k + 1, odd.data());
        pack_pairs_float32(even.data(), odd.data(), part.columns, out);
      }
    }
  }
}

// The product over at most kContractionChunk contraction rows.
class Chunk {
 public:
  Chunk(const TileOperand& stationary, const TileOperand& moving, std::size_t first,
        std::size_t rows, std::size_t stationary_columns, bool use_dot)
      : moving_(moving),
        first_(first),
        rows_(rows),
        stationary_columns_(stationary_columns),
        use_dot_(use_dot),
        // An odd number of cache lines, so that successive rows fall into different cache sets.
        pitch_(round_up(stationary_columns, 32) + 16),
        packed_(std::make_unique_for_overwrite<std::byte[]>(
            pitch_ * round_up(rows, 2) * (use_dot ? sizeof(std::uint16_t) : sizeof(float)))) {
    pack({stationary, first, rows, 0, stationary_columns}, pitch_, packed_.get());
  }

  void multiply(std::size_t column, std::size_t columns, float* out, std::ptrdiff_t out_pitch,
                bool accumulate) const {
    alignas(64) std::array<std::byte, kPanelColumns * kContractionChunk * sizeof(float)> panel;
    if (columns < kPanelColumns) {
      panel.fill(std::byte{0});
    }
    pack({moving_, first_, rows_, column, columns}, kPanelColumns, panel.data());
    const PackedProduct product = {.stationary = packed_.get(),
                                   .stationary_pitch = pitch_,
                                   .moving = panel.data(),
                                   .pairs = round_up(rows_, 2) / 2,
                                   .rows = stationary_columns_,
                                   .columns = columns,
                                   .out = out + column,
                                   .out_pitch = out_pitch,
                                   .accumulate = accumulate};
    if (use_dot_) {
      multiply_bfloat16_dot(product);
    } else {
      const FlushDenormals flush;
      HWY_DYNAMIC_DISPATCH(MultiplyFloat32)(product);
    }
  }

 private:
  void pack(const Window& window, std::size_t pitch, std::byte* packed) const {
    if (use_dot_) {
      pack_bfloat16(window, pitch, packed);
    } else {
      pack_float32(window, pitch, packed);
    }
  }

  const TileOperand& moving_;
  std::size_t first_, rows_;
  std::size_t stationary_columns_;
  bool use_dot_;
  std::size_t pitch_;
  std::unique_ptr<std::byte[]> packed_;
};

double best_seconds(void (*multiply)(const PackedProduct&), const PackedProduct& product) {
  using Clock = std::chrono::steady_clock;
  double best = 1.0;
  for (int repetition = 0; repetition < 8; ++repetition) {
    const Clock::time_point start = Clock::now();
    multiply(product);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

bool dot_is_faster() {
  constexpr std::size_t kRows = 12;
  const std::vector<std::byte> zeros(kPanelColumns * kContractionChunk * sizeof(float));
  std::vector<float> out(kRows * kPanelColumns);
  const PackedProduct product = {.stationary = zeros.data(),
                                 .stationary_pitch = 16,
                                 .moving = zeros.data(),
                                 .pairs = kContractionChunk / 2,
                                 .rows = kRows,
                                 .columns = kPanelColumns,
                                 .out = out.data(),
                                 .out_pitch = kPanelColumns,
                                 .accumulate = false};
  const auto float32 = [](const PackedProduct& work) {
    HWY_DYNAMIC_DISPATCH(MultiplyFloat32)(work);
  };
  return best_seconds(multiply_bfloat16_dot, product) < best_seconds(float32, product);
}

}  // namespace

}  // namespace tile

void tile_product(const TileOperand& stationary, const TileOperand& moving, std::size_t contraction,
                  std::size_t stationary_columns, std::size_t moving_columns, float* out,
                  std::ptrdiff_t out_row_stride_floats, bool accumulate) {
  const bool use_dot = tile::exact_in_bfloat16(stationary.dtype) &&
                       tile::exact_in_bfloat16(moving.dtype) && uses_bfloat16_dot();
  const std::size_t panels =
      tile::round_up(moving_columns, tile::kPanelColumns) / tile::kPanelColumns;
  // An empty sum still writes zeros, so there is at least one pass.
  for (std::size_t first = 0; first == 0 || first < contraction; first += tile::kContractionChunk) {
    const std::size_t rows = std::min(tile::kContractionChunk, contraction - first);
    const tile::Chunk chunk(stationary, moving, first, rows, stationary_columns, use_dot);
    const bool add = accumulate || first > 0;
    const auto multiply_panels = [&](std::size_t begin, std::size_t end) {
      for (std::size_t panel = begin; panel < end; ++panel) {
        const std::size_t column = panel * tile::kPanelColumns;
        chunk.multiply(column, std::min(tile::kPanelColumns, moving_columns - column), out,
                       out_row_stride_floats, add);
      }
    };
    const std::size_t macs = rows * stationary_columns * moving_columns;
    if (macs < tile::kParallelMacsMin) {
      multiply_panels(0, panels);
    } else {
      parallel_for_partitions(panels, macs, multiply_panels);
    }
  }
  if (tile::product_fault.load(std::memory_order_relaxed) &&
      stationary_columns * moving_columns > 0) {
    out[0] = -out[0];
  }
}

void set_bfloat16_dot(Bfloat16Dot choice) { tile::dot_choice = choice; }

bool uses_bfloat16_dot() {
  const Bfloat16Dot choice = tile::dot_choice.load(std::memory_order_relaxed);
  if (choice == Bfloat16Dot::kNever || !cpu_has_bfloat16_dot()) {
    return false;
  }
  static const bool faster = tile::dot_is_faster();
  return choice == Bfloat16Dot::kAlways || faster;
}

void set_product_fault(bool on) { tile::product_fault = on; }

}  // namespace trena
#endif  // HWY_ONCE
