// How an engine streams: the same access pattern in every partition, float32 inside, cast on the
// way out (hw.md §3.3). Most instructions are a row kernel between read_row and write_row.
#pragma once

#include <cstddef>
#include <vector>

#include "trena/memory/tensor.h"

namespace trena {

// The elements of one partition, in order of the free axis, as float32. `out` holds free_size()
// floats.
void read_row(const Tensor& tensor, std::int64_t partition, float* out);

// The same without a copy where the row already is contiguous float32: returns the row itself, else
// fills `scratch`.
const float* row(const Tensor& tensor, std::int64_t partition, std::vector<float>& scratch);

// Rounds to the tensor's dtype: nearest even, integers saturate.
void write_row(const Tensor& tensor, std::int64_t partition, const float* values);

// Bits, unchanged, packed: free_bytes() bytes.
void read_row_bits(const Tensor& tensor, std::int64_t partition, std::byte* out);
void write_row_bits(const Tensor& tensor, std::int64_t partition, const std::byte* bits);

// The bits of the whole tensor, packed in row-major order: size_bytes() bytes. Rows of a
// vector-indirect view come through its index. For the host: settles first. `not-modelled` in a
// program without values.
void read_bits(const Tensor& tensor, std::byte* out);
void write_bits(const Tensor& tensor, const std::byte* bits);

// Calls fn(byte offset in the storage, length in bytes) for every contiguous run of the tensor.
template <typename Fn>
void for_each_run(const Tensor& tensor, Fn&& fn) {
  // Dimensions from outermost to innermost with contiguous neighbours merged; the innermost run is
  // bytes.
  std::array<Dim, Tensor::kMaxRank> dims;
  int rank = 0;
  std::int64_t run = static_cast<std::int64_t>(size_bytes(tensor.dtype()));
  for (int axis = tensor.rank() - 1; axis >= 0; --axis) {
    const Dim& dim = tensor.dim(axis);
    if (dim.size == 0) {
      return;
    }
    if (dim.size == 1) {
      continue;
    }
    if (rank == 0 && dim.stride_bytes == run) {
      run *= dim.size;
    } else {
      dims[rank++] = dim;  // innermost first
    }
  }
  const std::int64_t origin = tensor.buffer()->origin_bytes + tensor.offset_bytes();
  std::array<std::int64_t, Tensor::kMaxRank> index{};
  std::int64_t offset = origin;
  while (true) {
    fn(static_cast<std::size_t>(offset), static_cast<std::size_t>(run));
    int axis = 0;
    for (; axis < rank; ++axis) {
      offset += dims[axis].stride_bytes;
      if (++index[axis] < dims[axis].size) {
        break;
      }
      offset -= dims[axis].stride_bytes * dims[axis].size;
      index[axis] = 0;
    }
    if (axis == rank) {
      return;
    }
  }
}

// What an index chooses for a tensor-indirect operand of the vector, scalar and gpsimd engines: the
// element of the row that each column of a group of 16 partitions stands for, group after group.
// Values are as they were found: anything outside 0 … row_count - 1 is outside the tensor.
inline constexpr std::int64_t kIndexGroup = 16;
std::vector<std::int64_t> column_indices(const Tensor& view);

// Were all bytes of the view written? Marks them written. Of an indirect view: the rows its index
// names, or for v4's columns the elements (what is outside the tensor touches nothing).
bool is_written(const Tensor& tensor);
void mark_written(const Tensor& tensor);

}  // namespace trena
