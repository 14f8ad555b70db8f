#include "trena/memory/rows.h"

#include <array>
#include <cstring>

#include "trena/memory/views.h"
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

namespace {

template <typename T>
std::int64_t integer_of(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::int64_t integer_at(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::kInt32:
      return integer_of<std::int32_t>(at);
    case DType::kUint32:
      return integer_of<std::uint32_t>(at);
    case DType::kInt16:
      return integer_of<std::int16_t>(at);
    case DType::kUint16:
      return integer_of<std::uint16_t>(at);
    case DType::kInt8:
      return integer_of<std::int8_t>(at);
    default:
      return integer_of<std::uint8_t>(at);
  }
}

// Calls fn for each element that a tensor-indirect operand stands for.
template <typename Fn>
void for_each_column(const Tensor& tensor, Fn&& fn) {
  const std::int64_t limit = tensor.indirection()->row_count;
  const std::vector<std::int64_t> indices = column_indices(tensor);
  const std::array<Dim, 2> one = {Dim{1, tensor.dim(0).stride_bytes},
                                  Dim{1, tensor.dim(1).stride_bytes}};
  const std::int64_t columns = tensor.size(1);
  for (std::int64_t p = 0; p < tensor.partitions(); ++p) {
    for (std::int64_t i = 0; i < columns; ++i) {
      const std::int64_t at = indices[static_cast<std::size_t>(p / kIndexGroup * columns + i)];
      if (at >= 0 && at < limit) {
        fn(tensor
               .with(tensor.dtype(),
                     tensor.offset_bytes() + p * one[0].stride_bytes + at * one[1].stride_bytes,
                     one)
               .with_indirection(nullptr));
      }
    }
  }
}

// Calls fn for the ordinary views that a tensor stands for: itself, or what its index chooses.
template <typename Fn>
void for_each_direct(const Tensor& tensor, Fn&& fn) {
  const Indirection* indirection = tensor.indirection().get();
  if (indirection == nullptr || indirection->kind == Indirection::Kind::kScalar) {
    fn(tensor);
    return;
  }
  if (indirection->kind == Indirection::Kind::kColumns) {
    for_each_column(tensor, fn);
    return;
  }
  for (std::int64_t row = 0; row < tensor.size(0); ++row) {
    if (views::in_bounds(tensor, views::gathered_index(tensor, row))) {
      fn(views::gathered_row(tensor, row));
    }
  }
}

void require_data(const Tensor& tensor) {
  if (!tensor.buffer()->has_data()) {
    throw_not_modelled("the values of " + tensor.describe() + " in a run for time alone");
  }
}

// Calls fn(view, offset of its first byte in the packed bits).
template <typename Fn>
void for_each_packed(const Tensor& tensor, Fn&& fn) {
  require_data(tensor);
  const Indirection* indirection = tensor.indirection().get();
  if (indirection == nullptr || indirection->kind == Indirection::Kind::kScalar) {
    fn(tensor, std::int64_t{0});
    return;
  }
  if (indirection->kind == Indirection::Kind::kColumns) {
    throw_not_modelled("reading " + tensor.describe() +
                       " through tensor indirection outside an instruction");
  }
  for (std::int64_t row = 0; row < tensor.size(0); ++row) {
    const Tensor view = views::gathered_row(tensor, row);
    fn(view, row * view.size_bytes());
  }
}

}  // namespace

void read_bits(const Tensor& tensor, std::byte* out) {
  tensor.buffer()->storage->settle();
  for_each_packed(tensor, [&](const Tensor& view, std::int64_t first) {
    const std::byte* data = view.buffer()->storage->data();
    std::byte* next = out + first;
    for_each_run(view, [&](std::size_t offset, std::size_t length) {
      std::memcpy(next, data + offset, length);
      next += length;
    });
  });
}

void write_bits(const Tensor& tensor, const std::byte* bits) {
  tensor.buffer()->storage->settle();
  for_each_packed(tensor, [&](const Tensor& view, std::int64_t first) {
    std::byte* data = view.buffer()->storage->data();
    const std::byte* next = bits + first;
    for_each_run(view, [&](std::size_t offset, std::size_t length) {
      std::memcpy(data + offset, next, length);
      next += length;
    });
  });
}

std::vector<std::int64_t> column_indices(const Tensor& view) {
  const Tensor& index = *view.indirection()->index;
  const std::int64_t columns = view.size(1);
  const std::int64_t groups = (view.partitions() + kIndexGroup - 1) / kIndexGroup;
  const auto width = static_cast<std::int64_t>(size_bytes(index.dtype()));
  const std::int64_t held = index.free_size();
  std::vector<std::byte> row(static_cast<std::size_t>(index.free_bytes()));
  std::vector<std::int64_t> indices(static_cast<std::size_t>(groups * columns), -1);
  for (std::int64_t p = 0; p < index.partitions(); ++p) {
    read_row_bits(index, p, row.data());
    std::int64_t* group = indices.data() + p / kIndexGroup * columns;
    for (std::int64_t k = 0, i = p % kIndexGroup; k < held && i < columns; ++k, i += kIndexGroup) {
      group[i] = integer_at(index.dtype(), row.data() + k * width);
    }
  }
  return indices;
}

bool is_written(const Tensor& tensor) {
  const WrittenBits& written = tensor.buffer()->storage->written();
  if (written.all()) {
    return true;
  }
  const Indirection* indirection = tensor.indirection().get();
  if (indirection != nullptr && indirection->kind == Indirection::Kind::kColumns &&
      !is_written(*indirection->index)) {
    return true;  // the index is looked at by itself
  }
  bool all = true;
  for_each_direct(tensor, [&](const Tensor& view) {
    for_each_run(view, [&](std::size_t offset, std::size_t length) {
      all = all && written.covers(offset, length);
    });
  });
  return all;
}

void mark_written(const Tensor& tensor) {
  WrittenBits& written = tensor.buffer()->storage->written();
  if (written.all()) {
    return;
  }
  for_each_direct(tensor, [&](const Tensor& view) {
    for_each_run(view,
                 [&](std::size_t offset, std::size_t length) { written.mark(offset, length); });
  });
}

}  // namespace trena
