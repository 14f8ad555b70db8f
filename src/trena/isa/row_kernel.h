// How the streaming engines walk a tile: some partitions at a time, row after row, as float32
// (hw.md §3.3), as raw bits, or as 32-bit integers.
//
// An instruction states what happens to one block of rows; blocks are small enough for the first
// cache and large enough that a [128, 1] tile is a single one. A row is read as a whole before any
// of it is written, so `dst` may be, or overlap, an input.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <vector>

#include "trena/isa/instruction.h"
#include "trena/memory/rows.h"
#include "trena/number/threads.h"
#include "trena/number/vector_math.h"

namespace trena {

// Partitions first … first + partitions - 1 of a tile.
struct Block {
  std::int64_t first = 0;
  std::int64_t partitions = 0;
};

// Rows of this thread, kept from instruction to instruction. A slot's memory lives until its next
// use.
template <typename T>
T* scratch(std::size_t slot, std::size_t count) {
  thread_local std::array<std::vector<T>, 6> slots;
  std::vector<T>& values = slots[slot];
  if (values.size() < count) {
    values.resize(count);
  }
  return values.data();
}

// One tensor's rows; its access pattern is worked out once for all partitions, and so are the
// elements that an index chooses (`out-of-bounds` when one is outside the row).
class TileRows {
 public:
  explicit TileRows(const Tensor& tensor);

  std::size_t row_elements() const { return row_elements_; }
  std::size_t elements(const Block& block) const {
    return static_cast<std::size_t>(block.partitions) * row_elements_;
  }

  // Row-major float32: the bytes themselves where they already are that, else a copy in `slot`.
  const float* read(const Block& block, std::size_t slot) const;
  // Where to compute a block that `write` then stores: the bytes themselves, else `slot`. Every
  // input is either the same rows or apart from them, or the answer is `slot`.
  float* target(const Block& block, std::size_t slot,
                std::initializer_list<const float*> inputs) const;
  void write(const Block& block, const float* values) const;

  // Raw bits, zero-extended; writing keeps the low bits.
  const std::uint32_t* read_bits(const Block& block, std::size_t slot) const;
  void write_bits(const Block& block, const std::uint32_t* bits) const;
  void write_int32(const Block& block, const std::int32_t* values) const;

  // Bytes as they are, packed; any element type.
  const std::byte* read_packed(const Block& block, std::size_t slot) const;
  void write_packed(const Block& block, const std::byte* bytes) const;
  // The bytes of the first `partitions` rows as columns, packed; in slot 1, by way of slot 0.
  std::byte* read_transposed(std::int64_t partitions) const;
  // The low bits of `bits` in every element.
  void fill(const Block& block, std::uint32_t bits) const;

  // Marks the elements as written where `mask` is not 0. Not thread-safe.
  void mark_written(const Block& block, const std::uint32_t* mask, Storage& storage) const;

 private:
  template <typename Fn>
  void for_each_line(const Block& block, Fn&& fn) const;
  bool has_packed_rows() const;
  bool is_packed(const Block& block) const;
  float* own(const Block& block) const;

  std::byte* base_;
  DType dtype_;
  std::size_t row_elements_;
  std::int64_t partition_stride_;
  Tensor::FreePattern pattern_;
  bool joined_;  // all partitions together are one evenly spaced line
  std::vector<std::int64_t>
      columns_;  // of a tensor-indirect tile: byte offsets of each group's row
};

// One value per partition, seen as an operand of a row kernel: `stride` is 0 for one value.
template <typename T>
struct LaneView {
  const T* values;
  std::ptrdiff_t stride;
};

class LaneOperand {
 public:
  // `row_elements` of the tile it meets.
  LaneOperand(const Operand& operand, std::size_t row_elements);

  LaneView<float> read(const Block& block, std::size_t slot) const;
  LaneView<std::uint32_t> read_bits(const Block& block, std::size_t slot) const;

 private:
  template <typename T>
  LaneView<T> spread(const T* lanes, const Block& block, std::size_t slot) const;

  std::optional<TileRows> rows_;
  float number_ = 0.0F;
  std::uint32_t bits_ = 0;
  std::size_t row_elements_;
};

// data op operand, or operand op data; a unary operator sees the data.
inline void apply_lane(AluOp op, bool reverse, const float* data, LaneView<float> operand,
                       float* out, std::size_t count) {
  if (reverse && !is_unary(op)) {
    binary_row(op, operand.values, operand.stride, data, 1, out, count);
  } else {
    binary_row(op, data, 1, operand.values, operand.stride, out, count);
  }
}

// Calls fn(block) for blocks that cover `partitions` rows, on several threads where the work is
// worth it. `row_elements` counts the largest operand; `cost_per_element` is in nanoseconds.
template <typename Fn>
void for_each_block(std::int64_t partitions, std::size_t row_elements, double cost_per_element,
                    Fn&& fn) {
  constexpr std::size_t kBlockElements = 4096;  // 16 KiB of float32
  const auto rows = static_cast<std::int64_t>(
      std::max<std::size_t>(1, kBlockElements / std::max<std::size_t>(1, row_elements)));
  const double cost =
      static_cast<double>(partitions) * static_cast<double>(row_elements) * cost_per_element;
  parallel_for_partitions(static_cast<std::size_t>(partitions), static_cast<std::size_t>(cost),
                          [&](std::size_t begin, std::size_t end) {
                            const auto last = static_cast<std::int64_t>(end);
                            for (auto first = static_cast<std::int64_t>(begin); first < last;
                                 first += rows) {
                              fn(Block{first, std::min(rows, last - first)});
                            }
                          });
}

// Calls fn(x, z) for each partition, as above: a row of `in`, and the row of `out` made of it.
template <typename Fn>
void for_each_row(std::int64_t partitions, const TileRows& out, const TileRows& in,
                  double cost_per_element, Fn&& fn) {
  for_each_block(partitions, in.row_elements(), cost_per_element, [&](const Block& block) {
    const float* x = in.read(block, 0);
    auto* z = scratch<float>(2, out.elements(block));
    for (std::size_t p = 0; p < static_cast<std::size_t>(block.partitions); ++p) {
      fn(x + p * in.row_elements(), z + p * out.row_elements());
    }
    out.write(block, z);
  });
}

// The bits that a bitvec operator sees of a number: two's complement, 32 bits.
std::uint32_t number_bits(double number);

}  // namespace trena
