#include "trena/memory/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace trena {

Tensor::Tensor(BufferPtr buffer, DType dtype, std::span<const std::int64_t> shape)
    : buffer_(std::move(buffer)),
      pin_(buffer_->storage),
      dtype_(dtype),
      rank_(static_cast<std::uint8_t>(shape.size())) {
  std::int64_t stride_bytes = static_cast<std::int64_t>(trena::size_bytes(dtype));
  for (int axis = rank_ - 1; axis >= 0; --axis) {
    dims_[axis] = {shape[axis], stride_bytes};
    stride_bytes *= std::max<std::int64_t>(shape[axis], 1);
  }
  if (on_chip()) {
    dims_[0].stride_bytes = buffer_->pitch_bytes;
  }
}

std::vector<std::int64_t> Tensor::shape() const {
  std::vector<std::int64_t> shape(rank_);
  for (int axis = 0; axis < rank_; ++axis) {
    shape[axis] = dims_[axis].size;
  }
  return shape;
}

std::int64_t Tensor::element_count() const {
  std::int64_t count = 1;
  for (int axis = 0; axis < rank_; ++axis) {
    count *= dims_[axis].size;
  }
  return count;
}

std::int64_t Tensor::free_size() const {
  std::int64_t count = 1;
  for (int axis = 1; axis < rank_; ++axis) {
    count *= dims_[axis].size;
  }
  return count;
}

int Tensor::start_partition() const {
  const int first = buffer_->address ? buffer_->address->partition : 0;
  return first + static_cast<int>(offset_bytes_ / buffer_->pitch_bytes);
}

std::int64_t Tensor::free_offset_bytes() const { return offset_bytes_ % buffer_->pitch_bytes; }

Tensor::FreePattern Tensor::free_pattern() const {
  FreePattern pattern;
  for (int axis = 1; axis < rank_; ++axis) {
    const Dim& dim = dims_[axis];
    pattern.count *= dim.size;
    if (dim.size == 1) {
      continue;
    }
    if (pattern.rank > 0) {
      Dim& outer = pattern.dims[pattern.rank - 1];
      if (outer.stride_bytes == dim.size * dim.stride_bytes) {
        outer = {outer.size * dim.size, dim.stride_bytes};
        continue;
      }
    }
    pattern.dims[pattern.rank++] = dim;
  }
  if (pattern.rank == 0) {
    pattern.dims[pattern.rank++] = {pattern.count,
                                    static_cast<std::int64_t>(trena::size_bytes(dtype_))};
  }
  return pattern;
}

bool Tensor::free_contiguous() const {
  const FreePattern pattern = free_pattern();
  return pattern.rank == 1 &&
         pattern.dims[0].stride_bytes == static_cast<std::int64_t>(trena::size_bytes(dtype_));
}

std::int64_t Tensor::innermost_stride_bytes() const {
  const FreePattern pattern = free_pattern();
  return pattern.dims[pattern.rank - 1].stride_bytes;
}

std::string Tensor::describe() const {
  const std::string label = buffer_ && !buffer_->name.empty() ? buffer_->name : "tensor";
  return fmt::format("{}[{}] {} {}", label, fmt::join(shape(), ", "), trena::name(dtype_),
                     trena::name(space()));
}

Tensor Tensor::with(DType dtype, std::int64_t offset_bytes, std::span<const Dim> dims) const {
  Tensor view;
  view.buffer_ = buffer_;
  view.pin_ = pin_;  // a view keeps the bytes alive when its base is gone
  view.indirection_ = indirection_;
  view.dtype_ = dtype;
  view.offset_bytes_ = offset_bytes;
  view.rank_ = static_cast<std::uint8_t>(dims.size());
  std::copy(dims.begin(), dims.end(), view.dims_.begin());
  return view;
}

Tensor Tensor::with_indirection(std::shared_ptr<const Indirection> indirection) const& {
  Tensor view = *this;
  view.indirection_ = std::move(indirection);
  return view;
}

Tensor Tensor::with_indirection(std::shared_ptr<const Indirection> indirection) && {
  indirection_ = std::move(indirection);
  return std::move(*this);
}

}  // namespace trena
