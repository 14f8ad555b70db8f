#include "trena/isa/row_kernel.h"

#include <fmt/format.h>

#include <cstring>

#include "trena/number/convert.h"
#include "trena/number/transpose.h"

namespace trena {

std::uint32_t number_bits(double number) {
  return static_cast<std::uint32_t>(static_cast<std::int64_t>(number));
}

TileRows::TileRows(const Tensor& tensor)
    : base_(tensor.data()),
      dtype_(tensor.dtype()),
      row_elements_(static_cast<std::size_t>(tensor.free_size())),
      partition_stride_(tensor.dim(0).stride_bytes),
      pattern_(tensor.free_pattern()) {
  const Dim& inner = pattern_.dims[0];
  const Indirection* indirection = tensor.indirection().get();
  if (indirection != nullptr && indirection->kind == Indirection::Kind::kColumns) {
    joined_ = false;
    columns_ = column_indices(tensor);
    for (std::int64_t& column : columns_) {
      if (column < 0 || column >= indirection->row_count) {
        throw Error(ErrorKind::kBounds, "out-of-bounds",
                    {.rule = "an index chooses elements of the row it stands for",
                     .here = fmt::format("index {} of {}", column, tensor.describe()),
                     .limit = fmt::format("0 to {}", indirection->row_count - 1)});
      }
      column *= static_cast<std::int64_t>(size_bytes(dtype_));
    }
    return;
  }
  joined_ = row_elements_ == 1 ||
            (pattern_.rank == 1 && partition_stride_ == inner.size * inner.stride_bytes);
}

template <typename Fn>
void TileRows::for_each_line(const Block& block, Fn&& fn) const {
  std::byte* row = base_ + block.first * partition_stride_;
  if (!columns_.empty()) {
    for (std::int64_t p = 0; p < block.partitions; ++p, row += partition_stride_) {
      const std::size_t group =
          static_cast<std::size_t>((block.first + p) / kIndexGroup) * row_elements_;
      for (std::size_t i = 0; i < row_elements_; ++i) {
        fn(row + columns_[group + i], std::int64_t{0}, std::size_t{1},
           static_cast<std::size_t>(p) * row_elements_ + i);
      }
    }
    return;
  }
  const Dim inner = pattern_.dims[pattern_.rank - 1];
  if (joined_) {
    const std::int64_t stride = row_elements_ == 1 ? partition_stride_ : inner.stride_bytes;
    fn(row, stride, elements(block), std::size_t{0});
    return;
  }
  const auto line = static_cast<std::size_t>(inner.size);
  std::size_t done = 0;
  for (std::int64_t partition = 0; partition < block.partitions; ++partition) {
    std::array<std::int64_t, Tensor::kMaxRank> index{};
    std::int64_t offset = 0;
    for (std::size_t in_row = 0; in_row < row_elements_; in_row += line, done += line) {
      fn(row + offset, inner.stride_bytes, line, done);
      for (int axis = pattern_.rank - 2; axis >= 0; --axis) {
        const auto at = static_cast<std::size_t>(axis);
        offset += pattern_.dims[at].stride_bytes;
        if (++index[at] < pattern_.dims[at].size) {
          break;
        }
        offset -= pattern_.dims[at].stride_bytes * pattern_.dims[at].size;
        index[at] = 0;
      }
    }
    row += partition_stride_;
  }
}

bool TileRows::has_packed_rows() const {
  return columns_.empty() && pattern_.rank == 1 &&
         pattern_.dims[0].stride_bytes == static_cast<std::int64_t>(size_bytes(dtype_));
}

// The block is one contiguous run of bytes.
bool TileRows::is_packed(const Block& block) const {
  return has_packed_rows() &&
         (block.partitions == 1 ||
          partition_stride_ == static_cast<std::int64_t>(row_elements_ * size_bytes(dtype_)));
}

float* TileRows::own(const Block& block) const {
  if (dtype_ != DType::kFloat32 || !is_packed(block)) {
    return nullptr;
  }
  return reinterpret_cast<float*>(base_ + block.first * partition_stride_);
}

const float* TileRows::read(const Block& block, std::size_t slot) const {
  if (const float* mine = own(block)) {
    return mine;
  }
  auto* out = scratch<float>(slot, elements(block));
  if (pattern_.rank == 1 && !joined_ && columns_.empty()) {
    read_rows(dtype_, base_ + block.first * partition_stride_, partition_stride_,
              pattern_.dims[0].stride_bytes, static_cast<std::size_t>(block.partitions),
              row_elements_, out, row_elements_);
    return out;
  }
  for_each_line(
      block, [&](const std::byte* line, std::int64_t stride, std::size_t count, std::size_t first) {
        read_row(dtype_, line, stride, count, out + first);
      });
  return out;
}

float* TileRows::target(const Block& block, std::size_t slot,
                        std::initializer_list<const float*> inputs) const {
  float* mine = own(block);
  const std::size_t count = elements(block);
  for (const float* input : inputs) {
    const bool apart = input + count <= mine || mine + count <= input;
    if (mine != nullptr && input != mine && !apart) {
      mine = nullptr;
    }
  }
  return mine != nullptr ? mine : scratch<float>(slot, count);
}

void TileRows::write(const Block& block, const float* values) const {
  if (values == own(block)) {
    return;
  }
  const bool plain = dtype_ == DType::kFloat32;  // nothing to round: short rows need no kernel
  for_each_line(block,
                [&](std::byte* line, std::int64_t stride, std::size_t count, std::size_t first) {
                  if (plain && stride == sizeof(float)) {
                    std::memcpy(line, values + first, count * sizeof(float));
                  } else {
                    write_row(dtype_, values + first, line, stride, count);
                  }
                });
}

const std::uint32_t* TileRows::read_bits(const Block& block, std::size_t slot) const {
  auto* out = scratch<std::uint32_t>(slot, elements(block));
  for_each_line(
      block, [&](const std::byte* line, std::int64_t stride, std::size_t count, std::size_t first) {
        read_row_bits(size_bytes(dtype_), line, stride, count, out + first);
      });
  return out;
}

void TileRows::write_bits(const Block& block, const std::uint32_t* bits) const {
  for_each_line(block,
                [&](std::byte* line, std::int64_t stride, std::size_t count, std::size_t first) {
                  write_row_bits(size_bytes(dtype_), bits + first, line, stride, count);
                });
}

void TileRows::write_int32(const Block& block, const std::int32_t* values) const {
  for_each_line(block,
                [&](std::byte* line, std::int64_t stride, std::size_t count, std::size_t first) {
                  write_row_int32(dtype_, values + first, line, stride, count);
                });
}

const std::byte* TileRows::read_packed(const Block& block, std::size_t slot) const {
  if (is_packed(block)) {
    return base_ + block.first * partition_stride_;
  }
  const std::size_t width = size_bytes(dtype_);
  auto* out = scratch<std::byte>(slot, elements(block) * width);
  for_each_line(block, [&](const std::byte* line, std::int64_t stride, std::size_t count,
                           std::size_t first) {
    copy_row(width, line, stride, out + first * width, static_cast<std::ptrdiff_t>(width), count);
  });
  return out;
}

void TileRows::write_packed(const Block& block, const std::byte* bytes) const {
  const std::size_t width = size_bytes(dtype_);
  if (is_packed(block)) {
    std::memmove(base_ + block.first * partition_stride_, bytes, elements(block) * width);
    return;
  }
  for_each_line(block, [&](std::byte* line, std::int64_t stride, std::size_t count,
                           std::size_t first) {
    copy_row(width, bytes + first * width, static_cast<std::ptrdiff_t>(width), line, stride, count);
  });
}

std::byte* TileRows::read_transposed(std::int64_t partitions) const {
  const std::size_t width = size_bytes(dtype_);
  const auto rows = static_cast<std::size_t>(partitions);
  auto* out = scratch<std::byte>(1, rows * row_elements_ * width);
  if (has_packed_rows() && partition_stride_ >= 0) {
    transpose_bits(width, base_, static_cast<std::size_t>(partition_stride_), rows, row_elements_,
                   out);
  } else {
    transpose_bits(width, read_packed({0, partitions}, 0), row_elements_ * width, rows,
                   row_elements_, out);
  }
  return out;
}

void TileRows::fill(const Block& block, std::uint32_t bits) const {
  const std::size_t width = size_bytes(dtype_);
  for_each_line(block, [&](std::byte* line, std::int64_t stride, std::size_t count, std::size_t) {
    if (stride != static_cast<std::int64_t>(width)) {
      for (std::size_t i = 0; i < count; ++i, line += stride) {
        std::memcpy(line, &bits, width);
      }
    } else if (width == 4) {
      std::fill_n(reinterpret_cast<std::uint32_t*>(line), count, bits);
    } else if (width == 2) {
      std::fill_n(reinterpret_cast<std::uint16_t*>(line), count, static_cast<std::uint16_t>(bits));
    } else {
      std::memset(line, static_cast<int>(bits), count);
    }
  });
}

void TileRows::mark_written(const Block& block, const std::uint32_t* mask, Storage& storage) const {
  for_each_line(block, [&](const std::byte* line, std::int64_t stride, std::size_t count,
                           std::size_t first) {
    for (std::size_t i = 0; i < count; ++i) {
      if (mask[first + i] != 0) {
        const std::byte* at = line + static_cast<std::int64_t>(i) * stride;
        storage.written().mark(static_cast<std::size_t>(at - storage.data()), size_bytes(dtype_));
      }
    }
  });
}

LaneOperand::LaneOperand(const Operand& operand, std::size_t row_elements)
    : row_elements_(row_elements) {
  if (const Tensor* tensor = std::get_if<Tensor>(&operand)) {
    rows_.emplace(*tensor);
  } else {
    const double number = std::get<double>(operand);
    number_ = static_cast<float>(number);
    // Outside the 32 bits there is nothing to see: such numbers are refused before
    // (require_bitvec).
    bits_ = number >= -2147483648.0 && number <= 4294967295.0 ? number_bits(number) : 0;
  }
}

template <typename T>
LaneView<T> LaneOperand::spread(const T* lanes, const Block& block, std::size_t slot) const {
  // Always a copy: the operand may be an element of dst.
  if (block.partitions == 1) {
    T* value = scratch<T>(slot, 1);
    *value = *lanes;
    return {value, 0};
  }
  T* out = scratch<T>(slot, static_cast<std::size_t>(block.partitions) * row_elements_);
  for (std::int64_t partition = 0; partition < block.partitions; ++partition) {
    std::fill_n(out + static_cast<std::size_t>(partition) * row_elements_, row_elements_,
                lanes[partition]);
  }
  return {out, 1};
}

LaneView<float> LaneOperand::read(const Block& block, std::size_t slot) const {
  if (!rows_) {
    return {&number_, 0};
  }
  return spread(rows_->read(block, 5), block, slot);
}

LaneView<std::uint32_t> LaneOperand::read_bits(const Block& block, std::size_t slot) const {
  if (!rows_) {
    return {&bits_, 0};
  }
  return spread(rows_->read_bits(block, 5), block, slot);
}

}  // namespace trena
