#include "trena/graph/hbm_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace trena {

std::int64_t HbmView::element_count() const {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) {
    count *= size;
  }
  return count;
}

Tensor HbmView::tile(std::int64_t tile_offset_bytes, std::span<const Dim> dims) const {
  return storage.with(dtype, offset_bytes + tile_offset_bytes, dims);
}

HbmView HbmView::broadcast_to(std::span<const std::int64_t> shape) const {
  HbmView view = *this;
  view.sizes.assign(shape.begin(), shape.end());
  view.strides_bytes.assign(shape.size(), 0);
  const std::size_t missing = shape.size() - std::min(shape.size(), sizes.size());
  bool fits = sizes.size() <= shape.size();
  for (std::size_t axis = 0; fits && axis < sizes.size(); ++axis) {
    const std::int64_t wanted = shape[missing + axis];
    fits = sizes[axis] == wanted || sizes[axis] == 1;
    view.strides_bytes[missing + axis] = sizes[axis] == wanted ? strides_bytes[axis] : 0;
  }
  if (!fits) {
    throw Error(
        ErrorKind::kUsage, "graph-shape",
        {.rule = "operands broadcast to the shape of the result",
         .here = fmt::format("[{}] to [{}]", fmt::join(sizes, ", "), fmt::join(shape, ", "))});
  }
  return view;
}

HbmView HbmView::low_words() const {
  HbmView view = *this;
  view.dtype = DType::kInt32;
  return view;
}

HbmView HbmView::high_words() const {
  HbmView view = low_words();
  view.offset_bytes += static_cast<std::int64_t>(trena::size_bytes(DType::kInt32));
  return view;
}

HbmView HbmView::transposed() const {
  HbmView view = *this;
  std::swap(view.sizes[view.sizes.size() - 1], view.sizes[view.sizes.size() - 2]);
  std::swap(view.strides_bytes[view.sizes.size() - 1], view.strides_bytes[view.sizes.size() - 2]);
  return view;
}

HbmView HbmView::select(int axis, std::int64_t index) const {
  HbmView view = *this;
  view.offset_bytes += index * strides_bytes[static_cast<std::size_t>(axis)];
  view.sizes.erase(view.sizes.begin() + axis);
  view.strides_bytes.erase(view.strides_bytes.begin() + axis);
  return view;
}

}  // namespace trena
