// What the DMA tests share: a machine, a program, tensors with known contents.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "trena/core/program.h"
#include "trena/machine/load.h"

namespace trena {

inline Machine test_machine(std::string_view name) {
  return load_machine(find_machine(name, TRENA_SOURCE_DIR "/hardware"));
}

class Bench {
 public:
  explicit Bench(std::string_view machine, int cores = 1) : program(test_machine(machine), cores) {}

  Tensor make(Space space, DType dtype, std::vector<std::int64_t> shape, int core = 0) {
    return program.make_tensor(
        core, {.space = space, .dtype = dtype, .shape = shape, .name = "t", .address = {}});
  }
  template <typename T>
  Tensor hbm(DType dtype, std::vector<std::int64_t> shape, std::vector<T> values) {
    auto bytes = std::make_shared<std::vector<T>>(std::move(values));
    return program.make_external(dtype, shape, "x", reinterpret_cast<std::byte*>(bytes->data()),
                                 bytes);
  }

  Program program;
};

// In element order of a dense tensor.
template <typename T>
std::vector<T> values_of(const Tensor& tensor) {
  tensor.buffer()->storage->settle();
  std::vector<T> values(static_cast<std::size_t>(tensor.element_count()));
  std::memcpy(values.data(), tensor.data(), values.size() * sizeof(T));
  return values;
}

// The id of the trena::Error that `call` throws; empty when it throws none.
template <typename Call>
std::string error_of(Call&& call, std::string* here = nullptr) {
  try {
    call();
  } catch (const Error& error) {
    if (here != nullptr) {
      *here = error.text().here + " | " + error.text().limit;
    }
    return error.id();
  }
  return "";
}

// A view of other dimensions (sizes and strides in elements).
inline Tensor view(const Tensor& tensor, std::vector<std::pair<std::int64_t, std::int64_t>> dims,
                   std::int64_t offset = 0) {
  const auto width = static_cast<std::int64_t>(size_bytes(tensor.dtype()));
  std::vector<Dim> result;
  for (const auto& [size, stride] : dims) {
    result.push_back({size, stride * width});
  }
  return tensor.with(tensor.dtype(), tensor.offset_bytes() + offset * width, result);
}

// ap(vector_offset=index, indirect_dim=0) on a dense HBM tensor: row i is row index[i].
inline Tensor rows_of(const Tensor& tensor, const Tensor& index, std::int64_t rows) {
  auto indirection = std::make_shared<Indirection>();
  indirection->kind = Indirection::Kind::kVector;
  indirection->index = index;
  indirection->row_stride_bytes = tensor.dim(0).stride_bytes;
  indirection->row_count = tensor.size(0);
  std::vector<Dim> dims;
  dims.push_back({rows, indirection->row_stride_bytes});
  for (int axis = 1; axis < tensor.rank(); ++axis) {
    dims.push_back(tensor.dim(axis));
  }
  return tensor.with(tensor.dtype(), tensor.offset_bytes(), dims).with_indirection(indirection);
}

}  // namespace trena
