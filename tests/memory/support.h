// Tensors without a program, for tests of views and regions.
#pragma once

#include <memory>
#include <numeric>
#include <vector>

#include "trena/memory/tensor.h"

namespace trena::test {

struct Place {
  Space space = Space::kHbm;
  std::int64_t pitch_bytes = 0;  // 0: dense
  std::int64_t origin_bytes = 0;
  bool values = true;
};

inline Tensor make(DType dtype, const std::vector<std::int64_t>& shape, Place place = {}) {
  auto buffer = std::make_shared<Buffer>();
  const std::int64_t elements =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  const std::int64_t bytes = elements * static_cast<std::int64_t>(size_bytes(dtype));
  buffer->space = place.space;
  buffer->name = std::string("tile");
  buffer->rows = place.space == Space::kHbm ? elements / shape.back() : shape.front();
  buffer->row_bytes = bytes / buffer->rows;
  buffer->pitch_bytes = std::max(place.pitch_bytes, buffer->row_bytes);
  buffer->origin_bytes = place.origin_bytes;
  if (place.values) {
    buffer->storage = Storage::allocate(
        static_cast<std::size_t>(place.origin_bytes + buffer->rows * buffer->pitch_bytes));
  }
  return Tensor(buffer, dtype, shape);
}

}  // namespace trena::test
