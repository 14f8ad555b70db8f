#include "trena/memory/region.h"

#include <algorithm>

namespace trena {

Region region_of(const Tensor& tensor) {
  const std::int64_t pitch = tensor.buffer()->pitch_bytes;
  const auto width = static_cast<std::int64_t>(size_bytes(tensor.dtype()));
  std::int64_t rows = 0;                  // extent beyond the first row
  std::int64_t first = tensor.offset_bytes();
  std::int64_t extent = width;            // bytes from the first to past the last, inside one row
  std::int64_t touched = width;           // bytes really touched per row
  std::int64_t distance = 0;
  std::int64_t run = width;
  bool regular = true;
  for (int axis = tensor.rank() - 1; axis >= 0; --axis) {
    const Dim& dim = tensor.dim(axis);
    if (dim.size <= 1 || dim.stride_bytes == 0) {
      continue;
    }
    std::int64_t stride = dim.stride_bytes;
    if (stride < 0) {
      first += stride * (dim.size - 1);
      stride = -stride;
    }
    if (stride % pitch == 0) {
      rows += stride / pitch * (dim.size - 1);
      regular = regular && stride == pitch;
      continue;
    }
    if (distance == 0 && stride == run) {
      run *= dim.size;
    } else if (distance == 0) {
      distance = stride;
    } else {
      regular = regular && stride % distance == 0;
    }
    extent += stride * (dim.size - 1);
    touched *= dim.size;
  }
  Region region;
  region.row_first = first / pitch;
  region.byte_first = first % pitch;
  if (region.byte_first + extent > pitch) {
    // Wraps into the next rows: whole rows, conservatively.
    region.row_last = region.row_first + rows + (region.byte_first + extent - 1) / pitch;
    region.byte_first = 0;
    region.byte_last = pitch - 1;
    region.dense = false;
    return region;
  }
  region.row_last = region.row_first + rows;
  region.byte_last = region.byte_first + extent - 1;
  region.dense = regular && touched == extent;
  if (!region.dense && regular && distance > run) {
    region.run_bytes = run;
    region.distance_bytes = distance;
  }
  return region;
}

bool overlaps(const Region& a, const Region& b) {
  const bool boxes = a.row_first <= b.row_last && b.row_first <= a.row_last && a.byte_first <= b.byte_last &&
                     b.byte_first <= a.byte_last;
  if (!boxes || a.distance_bytes == 0 || a.distance_bytes != b.distance_bytes) {
    return boxes;
  }
  // Equally spaced runs: compare their places inside one distance.
  const std::int64_t distance = a.distance_bytes;
  const std::int64_t shift = ((b.byte_first - a.byte_first) % distance + distance) % distance;
  return shift < a.run_bytes || shift + b.run_bytes > distance;
}

bool overlaps(const Tensor& a, const Tensor& b) {
  return a.buffer() == b.buffer() && overlaps(region_of(a), region_of(b));
}

bool covers(const Region& outer, const Region& inner) {
  const bool box = outer.row_first <= inner.row_first && outer.row_last >= inner.row_last &&
                   outer.byte_first <= inner.byte_first && outer.byte_last >= inner.byte_last;
  if (!box) {
    return false;
  }
  const bool same_pattern = outer.row_first == inner.row_first && outer.row_last == inner.row_last &&
                            outer.byte_first == inner.byte_first && outer.byte_last == inner.byte_last &&
                            outer.run_bytes == inner.run_bytes && outer.distance_bytes == inner.distance_bytes &&
                            outer.run_bytes > 0;
  return outer.dense || same_pattern;
}

}  // namespace trena
