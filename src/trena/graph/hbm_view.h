// A tensor of PyTorch: dtype, any sizes and strides, over one allocation in HBM.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trena/memory/tensor.h"

namespace trena {

struct HbmView {
  Tensor storage;  // the whole allocation, as bytes
  DType dtype = DType::kFloat32;
  std::int64_t offset_bytes = 0;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides_bytes;

  int rank() const { return static_cast<int>(sizes.size()); }
  std::int64_t element_count() const;
  // Part of it, for a DMA: `offset_bytes` counts from the start of the view.
  Tensor tile(std::int64_t offset_bytes, std::span<const Dim> dims) const;
  // Expanded to `shape` with stride 0, dimensions aligned at the right (PyTorch's broadcasting).
  // Throws `graph-shape` where a size is neither 1 nor the wanted one.
  HbmView broadcast_to(std::span<const std::int64_t> shape) const;
  // Engines know no 64-bit types: the compiler narrows int64 to int32 (facts: torch.md §1.2). The
  // low word of every element, little-endian, as int32.
  HbmView low_words() const;
  HbmView high_words() const;
  HbmView transposed() const;  // the last two dimensions change places
  HbmView select(int axis, std::int64_t index) const;
};

}  // namespace trena
