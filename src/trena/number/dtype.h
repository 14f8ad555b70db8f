// The element types of the hardware and of host tensors (hw.md §3.1), with NKI's names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace trena {

// kInt64, kUint64 and kFloat64 exist for host tensors only (PyTorch); engines refuse them.
// The x4 types pack four MX elements into one addressable element (hw.md §3.6).
enum class DType : std::uint8_t {
  kBool,
  kInt8,
  kUint8,
  kInt16,
  kUint16,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,
  kBfloat16,
  kFloat32,
  kTfloat32,
  kFloat64,
  kFloat8E4m3,
  kFloat8E4m3fn,
  kFloat8E5m2,
  kFloat8E3m4,
  kFloat8E8m0fnu,
  kFloat8E4m3fnX4,
  kFloat8E5m2X4,
  kFloat4E2m1fnX4,
};
inline constexpr std::size_t kDTypeCount = 22;

struct DTypeInfo {
  std::string_view name;
  std::uint8_t size_bytes;
  bool is_float;
  bool is_integer;  // bool counts as an integer: bitvec operators accept it
  bool is_signed;
  std::uint8_t packed_elements;  // 4 for the x4 types, else 1
};

namespace detail {

// In the order of DType.
inline constexpr std::array<DTypeInfo, kDTypeCount> kDTypeTable = {{
    {"bool", 1, false, true, false, 1},           {"int8", 1, false, true, true, 1},
    {"uint8", 1, false, true, false, 1},          {"int16", 2, false, true, true, 1},
    {"uint16", 2, false, true, false, 1},         {"int32", 4, false, true, true, 1},
    {"uint32", 4, false, true, false, 1},         {"int64", 8, false, true, true, 1},
    {"uint64", 8, false, true, false, 1},         {"float16", 2, true, false, true, 1},
    {"bfloat16", 2, true, false, true, 1},        {"float32", 4, true, false, true, 1},
    {"tfloat32", 4, true, false, true, 1},        {"float64", 8, true, false, true, 1},
    {"float8_e4m3", 1, true, false, true, 1},     {"float8_e4m3fn", 1, true, false, true, 1},
    {"float8_e5m2", 1, true, false, true, 1},     {"float8_e3m4", 1, true, false, true, 1},
    {"float8_e8m0fnu", 1, true, false, false, 1}, {"float8_e4m3fn_x4", 4, true, false, true, 4},
    {"float8_e5m2_x4", 4, true, false, true, 4},  {"float4_e2m1fn_x4", 2, true, false, true, 4},
}};

}  // namespace detail

constexpr const DTypeInfo& info(DType dtype) {
  return detail::kDTypeTable[static_cast<std::size_t>(dtype)];
}

constexpr std::size_t size_bytes(DType dtype) { return info(dtype).size_bytes; }

constexpr std::string_view name(DType dtype) { return info(dtype).name; }

// The type of that NKI name, or nothing.
constexpr std::optional<DType> dtype_from_name(std::string_view wanted) {
  for (std::size_t index = 0; index < kDTypeCount; ++index) {
    if (detail::kDTypeTable[index].name == wanted) {
      return static_cast<DType>(index);
    }
  }
  return std::nullopt;
}

// fp8 in the one-byte formats (not the e8m0 scale type).
constexpr bool is_float8(DType dtype) {
  return dtype == DType::kFloat8E4m3 || dtype == DType::kFloat8E4m3fn ||
         dtype == DType::kFloat8E5m2 || dtype == DType::kFloat8E3m4;
}

constexpr bool is_packed_x4(DType dtype) { return info(dtype).packed_elements == 4; }

// The host-only types that no engine accepts.
constexpr bool is_host_only(DType dtype) {
  return dtype == DType::kInt64 || dtype == DType::kUint64 || dtype == DType::kFloat64;
}

}  // namespace trena
