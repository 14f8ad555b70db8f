// Which bytes of its buffer a view touches, well enough to say whether two views overlap.
#pragma once

#include <cstdint>

#include "trena/memory/tensor.h"

namespace trena {

// A box: rows (partitions on the chip, rows of the last dimension in HBM) × bytes inside each row.
// Both ends are inclusive.
struct Region {
  std::int64_t row_first = 0;
  std::int64_t row_last = 0;
  std::int64_t byte_first = 0;
  std::int64_t byte_last = 0;
  // Inside the box the bytes may come in equal runs at a fixed distance; dense: run == distance == 0.
  std::int64_t run_bytes = 0;
  std::int64_t distance_bytes = 0;
  bool dense = true;
};

Region region_of(const Tensor& tensor);

// Exact for boxes of whole runs and for equally spaced runs; true when in doubt. Views of different buffers
// never overlap here, whatever addresses they have.
bool overlaps(const Tensor& a, const Tensor& b);
bool overlaps(const Region& a, const Region& b);

// Does `outer` touch every byte of `inner`? False when in doubt.
bool covers(const Region& outer, const Region& inner);

}  // namespace trena
