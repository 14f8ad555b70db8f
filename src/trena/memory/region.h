// Which bytes of its buffer a view touches, well enough to say whether two views overlap.
//
// A view is runs of bytes at an offset plus multiples of strides. Two views are compared digit by
// digit: each stride of either is a level, an address is read as (address / level, address % level,
// …), and a view covers an interval of digits at each level as long as the lower ones never carry.
// That is exact for tiles, columns, every k-th element and rectangles of an N-dimensional tensor,
// and errs on the safe side elsewhere.
#pragma once

#include <array>
#include <cstdint>

#include "trena/memory/tensor.h"

namespace trena {

struct Region {
  // The smallest box of rows (partitions on the chip, rows of the last dimension in HBM) × bytes
  // inside each row. Both ends are inclusive.
  std::int64_t row_first = 0;
  std::int64_t row_last = 0;
  std::int64_t byte_first = 0;
  std::int64_t byte_last = 0;

  // The runs. Strides are positive, larger than the run and in descending order: what was
  // contiguous is in the run.
  static constexpr int kMaxRank = 5;
  std::int64_t offset_bytes = 0;
  std::int64_t run_bytes = 0;
  std::int64_t reach_bytes = 0;  // from the first byte to past the last
  std::int64_t pitch_bytes = 0;  // of the rows on the chip, 0 in HBM
  std::array<Dim, kMaxRank> dims{};
  std::int8_t rank = 0;
  bool exact = true;       // false: touches at most these bytes
  bool fills_box = false;  // touches every byte of its box, as nearly all do; false when in doubt

  // Is there a byte in both boxes?
  bool box_meets(const Region& other) const {
    return row_first <= other.row_last && other.row_first <= row_last &&
           byte_first <= other.byte_last && other.byte_first <= byte_last;
  }
  bool box_holds(const Region& other) const {
    return row_first <= other.row_first && other.row_last <= row_last &&
           byte_first <= other.byte_first && other.byte_last <= byte_last;
  }
};

// Bytes count from the start of the buffer. An indirect view stands for everything that its index
// can choose.
Region region_of(const Tensor& tensor);
// All of a buffer that is no window (its rows are contiguous).
Region region_of(const Buffer& buffer);
// The same bytes counted from the start of the memory that holds the buffer: of the SBUF or PSUM
// array for an address that the kernel chose, of the buffer itself otherwise.
Region region_in_memory(const Tensor& tensor);

// Do they share a byte? True when in doubt. Views of different buffers never overlap here, whatever
// addresses they have.
bool overlaps(const Tensor& a, const Tensor& b);
bool overlaps(const Region& a, const Region& b);

// Does `outer` touch every byte of `inner`? False when in doubt.
bool covers(const Region& outer, const Region& inner);

// Overlap of bytes whatever the buffer: also windows on one SBUF or PSUM array that the kernel
// placed by address, and arguments that share memory of the caller. (check/ compares this with the
// order of the program.)
bool share_bytes(const Tensor& a, const Tensor& b);

}  // namespace trena
