// What the instruction tests share: a Program on one machine, tensors with given values, and costs
// in ns.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trena/core/program.h"
#include "trena/error.h"
#include "trena/machine/load.h"
#include "trena/memory/rows.h"
#include "trena/number/convert.h"

namespace trena::isa_test {

inline const Machine& test_machine(std::string_view name) {
  static std::map<std::string, Machine, std::less<>> machines;
  const auto found = machines.find(name);
  if (found != machines.end()) {
    return found->second;
  }
  const std::string hardware = TRENA_SOURCE_DIR "/hardware";
  return machines.emplace(name, load_machine(find_machine(name, hardware))).first->second;
}

inline const std::vector<std::string>& test_machines() {
  static const std::vector<std::string> names = {"trn1", "inf2", "trn2", "trn3"};
  return names;
}

using Shape = std::vector<std::int64_t>;

inline constexpr float kInf = std::numeric_limits<float>::infinity();

// One core of one machine.
class Bench {
 public:
  explicit Bench(std::string_view machine = "trn2") : program_(test_machine(machine), 1) {}

  Program& program() { return program_; }
  const Machine& machine() const { return program_.machine(); }

  Tensor make(const Shape& shape, DType dtype = DType::kFloat32, Space space = Space::kSbuf) {
    return program_.make_tensor(
        0, {.space = space, .dtype = dtype, .shape = shape, .name = "t", .address = {}});
  }
  Tensor psum(const Shape& shape, DType dtype = DType::kFloat32) {
    return make(shape, dtype, Space::kPsum);
  }
  // A tensor with these values, row after row; the last one repeats.
  Tensor of(const Shape& shape, const std::vector<double>& values, DType dtype = DType::kFloat32,
            Space space = Space::kSbuf) {
    Tensor tensor = make(shape, dtype, space);
    set(tensor, [&](std::int64_t i) {
      return values[std::min(static_cast<std::size_t>(i), values.size() - 1)];
    });
    return tensor;
  }
  Tensor filled(const Shape& shape, const std::function<double(std::int64_t)>& value,
                DType dtype = DType::kFloat32, Space space = Space::kSbuf) {
    Tensor tensor = make(shape, dtype, space);
    set(tensor, value);
    return tensor;
  }

  template <typename T, typename... Arguments>
  const Instruction& run(Arguments&&... arguments) {
    program_.append(0, make_instruction(T{std::forward<Arguments>(arguments)...}));
    return *program_.instructions(0).back();
  }

  // The error id of an instruction, or "legal".
  template <typename T, typename... Arguments>
  std::string id(Arguments&&... arguments) {
    try {
      make_instruction(T{std::forward<Arguments>(arguments)...})->check(machine());
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::kInternal);
      EXPECT_FALSE(error.text().rule.empty());
      return error.id();
    }
    return "legal";
  }

  double completion_ns(const Instruction& instruction) const {
    return static_cast<double>(instruction.cost(machine()).completion) / kTicksPerNs;
  }
  double interval_ns(const Instruction& instruction) const {
    return static_cast<double>(instruction.cost(machine()).interval) / kTicksPerNs;
  }

 private:
  static void set(const Tensor& tensor, const std::function<double(std::int64_t)>& value) {
    std::int64_t index = 0;
    const std::size_t width = size_bytes(tensor.dtype());
    std::vector<std::byte> bits(static_cast<std::size_t>(tensor.free_bytes()));
    for (std::int64_t p = 0; p < tensor.partitions(); ++p) {
      for (std::int64_t i = 0; i < tensor.free_size(); ++i) {
        std::byte* at = bits.data() + static_cast<std::size_t>(i) * width;
        const double number = value(index++);
        if (info(tensor.dtype()).is_integer) {
          const auto integer = static_cast<std::int64_t>(number);
          std::memcpy(at, &integer, width);
        } else {
          from_float(tensor.dtype(), static_cast<float>(number), at);
        }
      }
      write_row_bits(tensor, p, bits.data());
    }
    mark_written(tensor);
  }

  Program program_;
};

// All values, row after row; integers keep every bit.
inline std::vector<double> values_of(const Tensor& tensor) {
  tensor.buffer()->storage->settle();
  std::vector<double> result;
  const std::size_t width = size_bytes(tensor.dtype());
  std::vector<std::byte> bits(static_cast<std::size_t>(tensor.free_bytes()));
  for (std::int64_t p = 0; p < tensor.partitions(); ++p) {
    read_row_bits(tensor, p, bits.data());
    for (std::int64_t i = 0; i < tensor.free_size(); ++i) {
      const std::byte* at = bits.data() + static_cast<std::size_t>(i) * width;
      if (info(tensor.dtype()).is_integer) {
        std::int64_t integer = 0;
        std::memcpy(&integer, at, width);
        if (info(tensor.dtype()).is_signed && width < 8) {
          const int shift = 64 - 8 * static_cast<int>(width);
          integer =
              static_cast<std::int64_t>(static_cast<std::uint64_t>(integer) << shift) >> shift;
        }
        result.push_back(static_cast<double>(integer));
      } else {
        result.push_back(to_float(tensor.dtype(), at));
      }
    }
  }
  return result;
}

// The columns first … first + count - 1 of a two-dimensional tensor.
inline Tensor columns(const Tensor& tensor, std::int64_t first, std::int64_t count) {
  const std::vector<Dim> dims = {tensor.dim(0), {count, tensor.dim(1).stride_bytes}};
  return tensor.with(tensor.dtype(), tensor.offset_bytes() + first * tensor.dim(1).stride_bytes,
                     dims);
}

// The partitions first … first + count - 1.
inline Tensor partitions(const Tensor& tensor, std::int64_t first, std::int64_t count) {
  std::vector<Dim> dims;
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    dims.push_back(tensor.dim(axis));
  }
  dims[0].size = count;
  return tensor.with(tensor.dtype(), tensor.offset_bytes() + first * tensor.dim(0).stride_bytes,
                     dims);
}

using Values = std::vector<double>;

}  // namespace trena::isa_test
