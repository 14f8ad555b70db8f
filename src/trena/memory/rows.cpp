#include "trena/memory/rows.h"

#include "trena/number/convert.h"

namespace trena {
namespace {

// Calls fn(pointer, stride, count, index of the first element) for each innermost line of one
// partition.
template <typename Fn>
void for_each_line(const Tensor& tensor, std::int64_t partition, Fn&& fn) {
  const Tensor::FreePattern pattern = tensor.free_pattern();
  std::byte* base = tensor.data() + partition * tensor.dim(0).stride_bytes;
  const Dim inner = pattern.dims[pattern.rank - 1];
  std::array<std::int64_t, Tensor::kMaxRank> index{};
  std::int64_t offset = 0;
  for (std::int64_t done = 0; done < pattern.count; done += inner.size) {
    fn(base + offset, inner.stride_bytes, inner.size, done);
    for (int axis = pattern.rank - 2; axis >= 0; --axis) {
      offset += pattern.dims[axis].stride_bytes;
      if (++index[axis] < pattern.dims[axis].size) {
        break;
      }
      offset -= pattern.dims[axis].stride_bytes * pattern.dims[axis].size;
      index[axis] = 0;
    }
  }
}

}  // namespace

void read_row(const Tensor& tensor, std::int64_t partition, float* out) {
  for_each_line(
      tensor, partition,
      [&](const std::byte* line, std::int64_t stride, std::int64_t count, std::int64_t first) {
        read_row(tensor.dtype(), line, stride, static_cast<std::size_t>(count), out + first);
      });
}

const float* row(const Tensor& tensor, std::int64_t partition, std::vector<float>& scratch) {
  if (tensor.dtype() == DType::kFloat32 && tensor.free_contiguous()) {
    return reinterpret_cast<const float*>(tensor.data() + partition * tensor.dim(0).stride_bytes);
  }
  scratch.resize(static_cast<std::size_t>(tensor.free_size()));
  read_row(tensor, partition, scratch.data());
  return scratch.data();
}

void write_row(const Tensor& tensor, std::int64_t partition, const float* values) {
  for_each_line(tensor, partition,
                [&](std::byte* line, std::int64_t stride, std::int64_t count, std::int64_t first) {
                  write_row(tensor.dtype(), values + first, line, stride,
                            static_cast<std::size_t>(count));
                });
}

void read_row_bits(const Tensor& tensor, std::int64_t partition, std::byte* out) {
  const std::size_t width = size_bytes(tensor.dtype());
  for_each_line(
      tensor, partition,
      [&](const std::byte* line, std::int64_t stride, std::int64_t count, std::int64_t first) {
        copy_row(width, line, stride, out + first * static_cast<std::int64_t>(width),
                 static_cast<std::ptrdiff_t>(width), static_cast<std::size_t>(count));
      });
}

void write_row_bits(const Tensor& tensor, std::int64_t partition, const std::byte* bits) {
  const std::size_t width = size_bytes(tensor.dtype());
  for_each_line(tensor, partition,
                [&](std::byte* line, std::int64_t stride, std::int64_t count, std::int64_t first) {
                  copy_row(width, bits + first * static_cast<std::int64_t>(width),
                           static_cast<std::ptrdiff_t>(width), line, stride,
                           static_cast<std::size_t>(count));
                });
}

bool is_written(const Tensor& tensor) {
  const WrittenBits& written = tensor.buffer()->storage->written();
  if (written.all()) {
    return true;
  }
  bool all = true;
  for_each_run(tensor, [&](std::size_t offset, std::size_t length) {
    all = all && written.covers(offset, length);
  });
  return all;
}

void mark_written(const Tensor& tensor) {
  WrittenBits& written = tensor.buffer()->storage->written();
  if (written.all()) {
    return;
  }
  for_each_run(tensor,
               [&](std::size_t offset, std::size_t length) { written.mark(offset, length); });
}

}  // namespace trena
