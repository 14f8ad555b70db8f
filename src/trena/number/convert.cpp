#include "trena/number/convert.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "trena/error.h"
#include "trena/number/simd_targets.h"
#include "trena/number/small_float.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trena/number/convert.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// Plain loops: each Highway target compiles them for its own vectors.
HWY_BEFORE_NAMESPACE();
namespace trena::HWY_NAMESPACE {
namespace {

namespace sf = small_float;

template <typename Storage, typename Decode>
HWY_INLINE void read_as(const std::byte* source, std::size_t count, float* out, Decode decode) {
  for (std::size_t i = 0; i < count; ++i) {
    Storage code;
    std::memcpy(&code, source + i * sizeof(Storage), sizeof(Storage));
    out[i] = decode(code);
  }
}

template <typename Storage, typename Encode>
HWY_INLINE void write_as(const float* values, std::size_t count, std::byte* destination,
                         Encode encode) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto code = static_cast<Storage>(encode(values[i]));
    std::memcpy(destination + i * sizeof(Storage), &code, sizeof(Storage));
  }
}

template <typename Integer>
HWY_INLINE void read_integer(const std::byte* source, std::size_t count, float* out) {
  read_as<Integer>(source, count, out, [](Integer value) { return static_cast<float>(value); });
}

template <typename Integer>
HWY_INLINE void write_integer(const float* values, std::size_t count, std::byte* destination) {
  write_as<Integer>(values, count, destination, sf::to_integer<Integer>);
}

template <typename F, typename Storage>
HWY_INLINE void read_small(const std::byte* source, std::size_t count, float* out) {
  read_as<Storage>(source, count, out, [](Storage code) { return sf::decode<F>(code); });
}

template <typename F, typename Storage>
HWY_INLINE void write_small(const float* values, std::size_t count, std::byte* destination) {
  write_as<Storage>(values, count, destination, sf::encode<F>);
}

void ReadContiguous(DType dtype, const std::byte* source, std::size_t count, float* out) {
  using std::uint8_t, std::uint16_t, std::uint32_t;
  switch (dtype) {
    case DType::kBool:
      return read_as<uint8_t>(source, count, out,
                              [](uint8_t value) { return value != 0 ? 1.0F : 0.0F; });
    case DType::kInt8:
      return read_integer<std::int8_t>(source, count, out);
    case DType::kUint8:
      return read_integer<uint8_t>(source, count, out);
    case DType::kInt16:
      return read_integer<std::int16_t>(source, count, out);
    case DType::kUint16:
      return read_integer<uint16_t>(source, count, out);
    case DType::kInt32:
      return read_integer<std::int32_t>(source, count, out);
    case DType::kUint32:
      return read_integer<uint32_t>(source, count, out);
    case DType::kInt64:
      return read_integer<std::int64_t>(source, count, out);
    case DType::kUint64:
      return read_integer<std::uint64_t>(source, count, out);
    case DType::kFloat16:
      return read_small<sf::Float16, uint16_t>(source, count, out);
    case DType::kBfloat16:
      return read_as<uint16_t>(source, count, out, sf::decode_bfloat16);
    case DType::kFloat32:
      std::memcpy(out, source, count * sizeof(float));
      return;
    case DType::kTfloat32:
      return read_as<float>(source, count, out, sf::round_tfloat32);
    case DType::kFloat64:
      return read_integer<double>(source, count, out);
    case DType::kFloat8E4m3:
      return read_small<sf::Float8E4m3, uint8_t>(source, count, out);
    case DType::kFloat8E4m3fn:
      return read_small<sf::Float8E4m3fn, uint8_t>(source, count, out);
    case DType::kFloat8E5m2:
      return read_small<sf::Float8E5m2, uint8_t>(source, count, out);
    case DType::kFloat8E3m4:
      return read_small<sf::Float8E3m4, uint8_t>(source, count, out);
    case DType::kFloat8E8m0fnu:
      return read_as<uint8_t>(source, count, out, sf::decode_e8m0);
    case DType::kFloat8E4m3fnX4:
    case DType::kFloat8E5m2X4:
    case DType::kFloat4E2m1fnX4:
      return;  // refused by the caller
  }
}

void ReadRows(DType dtype, const std::byte* source, std::ptrdiff_t row_stride, std::size_t rows,
              std::size_t columns, float* out, std::size_t out_pitch) {
  for (std::size_t row = 0; row < rows; ++row) {
    ReadContiguous(dtype, source + static_cast<std::ptrdiff_t>(row) * row_stride, columns,
                   out + row * out_pitch);
  }
}

void WriteContiguous(DType dtype, const float* values, std::size_t count, std::byte* destination) {
  using std::uint8_t, std::uint16_t, std::uint32_t;
  switch (dtype) {
    case DType::kBool:
      return write_as<uint8_t>(values, count, destination, [](float value) {
        return (std::bit_cast<uint32_t>(value) & 0x7FFFFFFFU) != 0U ? 1U : 0U;
      });
    case DType::kInt8:
      return write_integer<std::int8_t>(values, count, destination);
    case DType::kUint8:
      return write_integer<uint8_t>(values, count, destination);
    case DType::kInt16:
      return write_integer<std::int16_t>(values, count, destination);
    case DType::kUint16:
      return write_integer<uint16_t>(values, count, destination);
    case DType::kInt32:
      return write_integer<std::int32_t>(values, count, destination);
    case DType::kUint32:
      return write_integer<uint32_t>(values, count, destination);
    case DType::kInt64:
      return write_integer<std::int64_t>(values, count, destination);
    case DType::kUint64:
      return write_integer<std::uint64_t>(values, count, destination);
    case DType::kFloat16:
      return write_small<sf::Float16, uint16_t>(values, count, destination);
    case DType::kBfloat16:
      return write_as<uint16_t>(values, count, destination, sf::encode_bfloat16);
    case DType::kFloat32:
      std::memcpy(destination, values, count * sizeof(float));
      return;
    case DType::kTfloat32:
      return write_as<float>(values, count, destination, sf::round_tfloat32);
    case DType::kFloat64:
      return write_as<double>(values, count, destination, [](float value) { return value; });
    case DType::kFloat8E4m3:
      return write_small<sf::Float8E4m3, uint8_t>(values, count, destination);
    case DType::kFloat8E4m3fn:
      return write_small<sf::Float8E4m3fn, uint8_t>(values, count, destination);
    case DType::kFloat8E5m2:
      return write_small<sf::Float8E5m2, uint8_t>(values, count, destination);
    case DType::kFloat8E3m4:
      return write_small<sf::Float8E3m4, uint8_t>(values, count, destination);
    case DType::kFloat8E8m0fnu:
      return write_as<uint8_t>(values, count, destination, sf::encode_e8m0);
    case DType::kFloat8E4m3fnX4:
    case DType::kFloat8E5m2X4:
    case DType::kFloat4E2m1fnX4:
      return;  // refused by the caller
  }
}

}  // namespace
}  // namespace trena::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trena {
namespace {

HWY_EXPORT(ReadContiguous);
HWY_EXPORT(ReadRows);
HWY_EXPORT(WriteContiguous);

// Elements per step of a strided row; the copy stays in the first-level cache.
constexpr std::size_t kChunk = 256;
constexpr std::size_t kElementBytesMax = 8;
using Chunk = std::array<std::byte, kChunk * kElementBytesMax>;

void refuse_packed(DType dtype) {
  if (is_packed_x4(dtype)) {
    throw Error(ErrorKind::kIllegal, "dtype-packed",
                {.rule = "an x4 element holds four values and can only be moved, quantised to or "
                         "multiplied by the MX matrix product",
                 .here = "a cast involves " + std::string(name(dtype)),
                 .limit = {},
                 .device = {},
                 .fix = {}});
  }
}

template <std::size_t kBytes>
void copy_strided(const std::byte* source, std::ptrdiff_t source_stride, std::byte* destination,
                  std::ptrdiff_t destination_stride, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(destination, source, kBytes);
    source += source_stride;
    destination += destination_stride;
  }
}

// Calls step(chunk_source, first, count) on contiguous pieces of a strided source.
template <typename Step>
void gather_chunks(std::size_t element_bytes, const std::byte* source, std::ptrdiff_t stride,
                   std::size_t count, Step step) {
  if (stride == static_cast<std::ptrdiff_t>(element_bytes)) {
    step(source, std::size_t{0}, count);
    return;
  }
  Chunk chunk;
  for (std::size_t first = 0; first < count; first += kChunk) {
    const std::size_t length = std::min(kChunk, count - first);
    copy_row(element_bytes, source + static_cast<std::ptrdiff_t>(first) * stride, stride,
             chunk.data(), static_cast<std::ptrdiff_t>(element_bytes), length);
    step(chunk.data(), first, length);
  }
}

// Calls step(chunk_destination, first, count), then scatters what it wrote.
template <typename Step>
void scatter_chunks(std::size_t element_bytes, std::byte* destination, std::ptrdiff_t stride,
                    std::size_t count, Step step) {
  if (stride == static_cast<std::ptrdiff_t>(element_bytes)) {
    step(destination, std::size_t{0}, count);
    return;
  }
  Chunk chunk;
  for (std::size_t first = 0; first < count; first += kChunk) {
    const std::size_t length = std::min(kChunk, count - first);
    step(chunk.data(), first, length);
    copy_row(element_bytes, chunk.data(), static_cast<std::ptrdiff_t>(element_bytes),
             destination + static_cast<std::ptrdiff_t>(first) * stride, stride, length);
  }
}

template <typename Storage>
Storage load(const std::byte* source, std::size_t index) {
  Storage value;
  std::memcpy(&value, source + index * sizeof(Storage), sizeof(Storage));
  return value;
}

template <typename Storage>
void store(Storage value, std::byte* destination, std::size_t index) {
  std::memcpy(destination + index * sizeof(Storage), &value, sizeof(Storage));
}

template <typename To, typename From>
To saturate(From value) {
  using Limits = std::numeric_limits<To>;
  if (std::cmp_less(value, Limits::min())) {
    return Limits::min();
  }
  return std::cmp_greater(value, Limits::max()) ? Limits::max() : static_cast<To>(value);
}

// Calls visit(Storage{}) with the C++ type of an integer dtype; false for floats.
template <typename Visit>
bool visit_integer(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUint8:
      visit(std::uint8_t{});
      return true;
    case DType::kInt8:
      visit(std::int8_t{});
      return true;
    case DType::kInt16:
      visit(std::int16_t{});
      return true;
    case DType::kUint16:
      visit(std::uint16_t{});
      return true;
    case DType::kInt32:
      visit(std::int32_t{});
      return true;
    case DType::kUint32:
      visit(std::uint32_t{});
      return true;
    case DType::kInt64:
      visit(std::int64_t{});
      return true;
    case DType::kUint64:
      visit(std::uint64_t{});
      return true;
    default:
      return false;
  }
}

template <typename Integer>
void read_integers(DType dtype, const std::byte* source, std::ptrdiff_t stride, std::size_t count,
                   Integer* out) {
  refuse_packed(dtype);
  gather_chunks(size_bytes(dtype), source, stride, count,
                [&](const std::byte* chunk, std::size_t first, std::size_t length) {
                  Integer* result = out + first;
                  const bool done = visit_integer(dtype, [&](auto storage) {
                    for (std::size_t i = 0; i < length; ++i) {
                      result[i] = saturate<Integer>(load<decltype(storage)>(chunk, i));
                    }
                  });
                  if (done) {
                    return;
                  }
                  for (std::size_t i = 0; i < length; ++i) {
                    const float value = to_float(dtype, chunk + i * size_bytes(dtype));
                    result[i] = small_float::to_integer<Integer>(value);
                  }
                });
}

template <typename Integer>
void write_integers(DType dtype, const Integer* values, std::byte* destination,
                    std::ptrdiff_t stride, std::size_t count) {
  refuse_packed(dtype);
  scatter_chunks(size_bytes(dtype), destination, stride, count,
                 [&](std::byte* chunk, std::size_t first, std::size_t length) {
                   const Integer* input = values + first;
                   if (dtype == DType::kBool) {
                     for (std::size_t i = 0; i < length; ++i) {
                       store<std::uint8_t>(input[i] != 0 ? 1 : 0, chunk, i);
                     }
                     return;
                   }
                   const bool done = visit_integer(dtype, [&](auto storage) {
                     for (std::size_t i = 0; i < length; ++i) {
                       store(saturate<decltype(storage)>(input[i]), chunk, i);
                     }
                   });
                   if (done) {
                     return;
                   }
                   for (std::size_t i = 0; i < length; ++i) {
                     std::byte* element = chunk + i * size_bytes(dtype);
                     if (dtype == DType::kFloat64) {
                       store(static_cast<double>(input[i]), chunk, i);
                     } else {
                       from_float(dtype, static_cast<float>(input[i]), element);
                     }
                   }
                 });
}

}  // namespace

float to_float(DType dtype, const std::byte* source) {
  float value = 0.0F;
  read_row(dtype, source, static_cast<std::ptrdiff_t>(size_bytes(dtype)), 1, &value);
  return value;
}

void from_float(DType dtype, float value, std::byte* destination) {
  write_row(dtype, &value, destination, static_cast<std::ptrdiff_t>(size_bytes(dtype)), 1);
}

void read_row(DType dtype, const std::byte* source, std::ptrdiff_t stride_bytes, std::size_t count,
              float* out) {
  refuse_packed(dtype);
  if (stride_bytes == 0 && count > 0) {
    HWY_DYNAMIC_DISPATCH(ReadContiguous)(dtype, source, 1, out);
    std::fill(out + 1, out + count, out[0]);
    return;
  }
  gather_chunks(size_bytes(dtype), source, stride_bytes, count,
                [&](const std::byte* chunk, std::size_t first, std::size_t length) {
                  HWY_DYNAMIC_DISPATCH(ReadContiguous)(dtype, chunk, length, out + first);
                });
}

void read_rows(DType dtype, const std::byte* source, std::ptrdiff_t row_stride_bytes,
               std::ptrdiff_t column_stride_bytes, std::size_t rows, std::size_t columns,
               float* out, std::size_t out_pitch) {
  refuse_packed(dtype);
  if (column_stride_bytes == static_cast<std::ptrdiff_t>(size_bytes(dtype))) {
    HWY_DYNAMIC_DISPATCH(ReadRows)(dtype, source, row_stride_bytes, rows, columns, out, out_pitch);
    return;
  }
  for (std::size_t row = 0; row < rows; ++row) {
    read_row(dtype, source + static_cast<std::ptrdiff_t>(row) * row_stride_bytes,
             column_stride_bytes, columns, out + row * out_pitch);
  }
}

void write_row(DType dtype, const float* values, std::byte* destination,
               std::ptrdiff_t stride_bytes, std::size_t count) {
  refuse_packed(dtype);
  scatter_chunks(size_bytes(dtype), destination, stride_bytes, count,
                 [&](std::byte* chunk, std::size_t first, std::size_t length) {
                   HWY_DYNAMIC_DISPATCH(WriteContiguous)(dtype, values + first, length, chunk);
                 });
}

void read_row_int32(DType dtype, const std::byte* source, std::ptrdiff_t stride_bytes,
                    std::size_t count, std::int32_t* out) {
  read_integers(dtype, source, stride_bytes, count, out);
}

void write_row_int32(DType dtype, const std::int32_t* values, std::byte* destination,
                     std::ptrdiff_t stride_bytes, std::size_t count) {
  write_integers(dtype, values, destination, stride_bytes, count);
}

void read_row_uint32(DType dtype, const std::byte* source, std::ptrdiff_t stride_bytes,
                     std::size_t count, std::uint32_t* out) {
  read_integers(dtype, source, stride_bytes, count, out);
}

void write_row_uint32(DType dtype, const std::uint32_t* values, std::byte* destination,
                      std::ptrdiff_t stride_bytes, std::size_t count) {
  write_integers(dtype, values, destination, stride_bytes, count);
}

void read_row_bits(std::size_t element_bytes, const std::byte* source, std::ptrdiff_t stride_bytes,
                   std::size_t count, std::uint32_t* out) {
  gather_chunks(element_bytes, source, stride_bytes, count,
                [&](const std::byte* chunk, std::size_t first, std::size_t length) {
                  for (std::size_t i = 0; i < length; ++i) {
                    out[first + i] = element_bytes == 1   ? load<std::uint8_t>(chunk, i)
                                     : element_bytes == 2 ? load<std::uint16_t>(chunk, i)
                                                          : load<std::uint32_t>(chunk, i);
                  }
                });
}

void write_row_bits(std::size_t element_bytes, const std::uint32_t* values, std::byte* destination,
                    std::ptrdiff_t stride_bytes, std::size_t count) {
  scatter_chunks(element_bytes, destination, stride_bytes, count,
                 [&](std::byte* chunk, std::size_t first, std::size_t length) {
                   for (std::size_t i = 0; i < length; ++i) {
                     const std::uint32_t value = values[first + i];
                     if (element_bytes == 1) {
                       store(static_cast<std::uint8_t>(value), chunk, i);
                     } else if (element_bytes == 2) {
                       store(static_cast<std::uint16_t>(value), chunk, i);
                     } else {
                       store(value, chunk, i);
                     }
                   }
                 });
}

void copy_row(std::size_t element_bytes, const std::byte* source,
              std::ptrdiff_t source_stride_bytes, std::byte* destination,
              std::ptrdiff_t destination_stride_bytes, std::size_t count) {
  const auto contiguous = static_cast<std::ptrdiff_t>(element_bytes);
  if (source_stride_bytes == contiguous && destination_stride_bytes == contiguous) {
    std::memcpy(destination, source, count * element_bytes);
    return;
  }
  switch (element_bytes) {
    case 1:
      return copy_strided<1>(source, source_stride_bytes, destination, destination_stride_bytes,
                             count);
    case 2:
      return copy_strided<2>(source, source_stride_bytes, destination, destination_stride_bytes,
                             count);
    case 4:
      return copy_strided<4>(source, source_stride_bytes, destination, destination_stride_bytes,
                             count);
    default:
      return copy_strided<8>(source, source_stride_bytes, destination, destination_stride_bytes,
                             count);
  }
}

void unpack_x4_row(DType dtype, const std::byte* source, std::ptrdiff_t stride_bytes,
                   std::size_t count, float* out) {
  gather_chunks(size_bytes(dtype), source, stride_bytes, count,
                [&](const std::byte* chunk, std::size_t first, std::size_t length) {
                  float* result = out + 4 * first;
                  if (dtype == DType::kFloat4E2m1fnX4) {
                    for (std::size_t i = 0; i < 4 * length; ++i) {
                      const auto pair = load<std::uint8_t>(chunk, i / 2);
                      const std::uint32_t code = i % 2 == 0 ? pair & 0xFU : pair >> 4U;
                      result[i] = small_float::decode<small_float::Float4E2m1fn>(code);
                    }
                    return;
                  }
                  const DType part =
                      dtype == DType::kFloat8E5m2X4 ? DType::kFloat8E5m2 : DType::kFloat8E4m3fn;
                  HWY_DYNAMIC_DISPATCH(ReadContiguous)(part, chunk, 4 * length, result);
                });
}

void pack_x4_row(DType dtype, const float* values, std::byte* destination,
                 std::ptrdiff_t stride_bytes, std::size_t count) {
  scatter_chunks(size_bytes(dtype), destination, stride_bytes, count,
                 [&](std::byte* chunk, std::size_t first, std::size_t length) {
                   const float* input = values + 4 * first;
                   if (dtype == DType::kFloat4E2m1fnX4) {
                     for (std::size_t i = 0; i < 2 * length; ++i) {
                       const std::uint32_t low =
                           small_float::encode<small_float::Float4E2m1fn>(input[2 * i]);
                       const std::uint32_t high =
                           small_float::encode<small_float::Float4E2m1fn>(input[2 * i + 1]);
                       store(static_cast<std::uint8_t>(low | high << 4U), chunk, i);
                     }
                     return;
                   }
                   const DType part =
                       dtype == DType::kFloat8E5m2X4 ? DType::kFloat8E5m2 : DType::kFloat8E4m3fn;
                   HWY_DYNAMIC_DISPATCH(WriteContiguous)(part, input, 4 * length, chunk);
                 });
}

namespace {

// 64-bit integers never pass through an engine, so they keep their value where the other type can
// hold it.
bool cast_host_integers(DType source_dtype, const std::byte* source, DType destination_dtype,
                        std::byte* destination, std::size_t count) {
  if (!is_host_only(source_dtype) && !is_host_only(destination_dtype)) {
    return false;
  }
  bool done = false;
  visit_integer(source_dtype, [&](auto from) {
    done = visit_integer(destination_dtype, [&](auto to) {
      for (std::size_t i = 0; i < count; ++i) {
        const auto value = load<decltype(from)>(source, i);
        store(destination_dtype == DType::kBool ? static_cast<decltype(to)>(value != 0)
                                                : saturate<decltype(to)>(value),
              destination, i);
      }
    });
  });
  return done;
}

}  // namespace

void cast(DType source_dtype, const std::byte* source, DType destination_dtype,
          std::byte* destination, std::size_t count) {
  if (source_dtype == destination_dtype) {
    std::memcpy(destination, source, count * size_bytes(source_dtype));
    return;
  }
  if (cast_host_integers(source_dtype, source, destination_dtype, destination, count)) {
    return;
  }
  const auto source_bytes = static_cast<std::ptrdiff_t>(size_bytes(source_dtype));
  const auto destination_bytes = static_cast<std::ptrdiff_t>(size_bytes(destination_dtype));
  std::array<float, kChunk> values;
  for (std::size_t first = 0; first < count; first += kChunk) {
    const std::size_t length = std::min(kChunk, count - first);
    read_row(source_dtype, source + first * size_bytes(source_dtype), source_bytes, length,
             values.data());
    write_row(destination_dtype, values.data(), destination + first * size_bytes(destination_dtype),
              destination_bytes, length);
  }
}

float round_to_tfloat32(float value) { return small_float::round_tfloat32(value); }

namespace {

// The code of |value| in F, rounded up from the code below when `draw` (in [0, 1)) is less than the
// fraction between.
template <typename F>
std::uint32_t encode_stochastic(float value, double draw) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude >= small_float::kFloat32Infinity) {
    return small_float::encode<F>(value);
  }
  constexpr int kLowestExponent = 1 - F::kBias;
  const int stored_exponent = std::max(static_cast<int>(magnitude >> 23), 1);
  const std::uint32_t significand =
      magnitude >= 0x800000U ? (magnitude & 0x7FFFFFU) | 0x800000U : magnitude;
  const int exponent = std::max(stored_exponent - 127, kLowestExponent);
  // In units of the format's quantum at this exponent.
  const double quanta = std::ldexp(static_cast<double>(significand),
                                   stored_exponent - 150 - (exponent - F::kMantissa));
  const double below = std::floor(quanta);
  const auto steps = static_cast<std::uint32_t>(below) + (draw < quanta - below ? 1U : 0U);
  const std::uint32_t code =
      steps + (static_cast<std::uint32_t>(exponent - kLowestExponent) << F::kMantissa);
  return ((bits >> 31) << F::kSignShift) | (code > F::kLargest ? F::kOverflow : code);
}

using Bfloat16 = small_float::Format<8, 7, true, 0x7F80U, 0x7FC0U>;
using Tfloat32 = small_float::Format<8, 10, true, 0x3FC00U, 0x3FE00U>;

}  // namespace

std::uint64_t StochasticRounder::next() {
  state_ += 0x9E3779B97F4A7C15U;  // splitmix64 (Steele, Lea, Flood 2014)
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBU;
  return mixed ^ (mixed >> 31);
}

void StochasticRounder::write_row(DType dtype, const float* values, std::byte* destination,
                                  std::ptrdiff_t stride_bytes, std::size_t count) {
  const auto each = [&](auto encode) {
    for (std::size_t i = 0; i < count; ++i) {
      const double draw = static_cast<double>(next() >> 11) * 0x1p-53;
      const std::uint32_t code = encode(values[i], draw);
      std::memcpy(destination + static_cast<std::ptrdiff_t>(i) * stride_bytes, &code,
                  size_bytes(dtype));
    }
  };
  namespace sf = small_float;
  switch (dtype) {
    case DType::kBfloat16:
      return each(encode_stochastic<Bfloat16>);
    case DType::kFloat16:
      return each(encode_stochastic<sf::Float16>);
    case DType::kFloat8E4m3:
      return each(encode_stochastic<sf::Float8E4m3>);
    case DType::kFloat8E4m3fn:
      return each(encode_stochastic<sf::Float8E4m3fn>);
    case DType::kFloat8E5m2:
      return each(encode_stochastic<sf::Float8E5m2>);
    case DType::kFloat8E3m4:
      return each(encode_stochastic<sf::Float8E3m4>);
    case DType::kTfloat32:
      return each(
          [](float value, double draw) { return encode_stochastic<Tfloat32>(value, draw) << 13U; });
    default:
      return trena::write_row(dtype, values, destination, stride_bytes, count);
  }
}

}  // namespace trena
#endif  // HWY_ONCE
