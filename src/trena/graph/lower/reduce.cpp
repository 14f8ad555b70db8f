#include "trena/graph/lower/reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace trena {
namespace {

// Operands of a reduction's nest.
constexpr std::size_t kOut = 0;
constexpr std::size_t kIn = 1;

struct Split {
  std::vector<NestDim> kept;
  std::vector<NestDim> reduced;
};

// Kept and reduced dimensions of `in`, each ordered from the outside in and merged where possible.
Split split(const HbmView& out, const HbmView& in, std::span<const std::int64_t> axes) {
  HbmView kept_out = out;
  HbmView kept_in = in;
  HbmView reduced = in;
  kept_in.sizes.clear();
  kept_in.strides_bytes.clear();
  reduced.sizes.clear();
  reduced.strides_bytes.clear();
  for (std::int64_t axis = 0; axis < in.rank(); ++axis) {
    const bool reduce = std::find(axes.begin(), axes.end(), axis) != axes.end();
    HbmView& target = reduce ? reduced : kept_in;
    target.sizes.push_back(in.sizes[static_cast<std::size_t>(axis)]);
    target.strides_bytes.push_back(in.strides_bytes[static_cast<std::size_t>(axis)]);
  }
  kept_out.sizes = kept_in.sizes;
  if (out.strides_bytes.size() != kept_in.sizes.size()) {
    throw Error(ErrorKind::kUsage, "graph-shape",
                {.rule = "a reduction's result has the dimensions it keeps",
                 .here = fmt::format("{} instead of {}", out.rank(), kept_in.sizes.size())});
  }
  Split result;
  for (NestDim& dim : collapse(std::array{kept_in, kept_out})) {
    std::swap(dim.strides_bytes[0], dim.strides_bytes[1]);
    result.kept.push_back(std::move(dim));
  }
  for (NestDim& dim : collapse(std::array{reduced})) {
    result.reduced.push_back({dim.size, {0, dim.strides_bytes[0]}});
  }
  return result;
}

// Calls fn(offset in bytes of operand `index`) for every combination of `dims`.
void for_each_index(std::span<const NestDim> dims, std::size_t index, std::int64_t offset,
                    const std::function<void(std::int64_t)>& fn) {
  if (dims.empty()) {
    fn(offset);
    return;
  }
  for (std::int64_t i = 0; i < dims[0].size; ++i) {
    for_each_index(dims.subspan(1), index, offset + i * dims[0].strides_bytes[index], fn);
  }
}

// Calls fn for tiles with a partition dimension only: the widest of `kept`, the others in loops.
void for_each_partition_tile(std::vector<NestDim> kept, std::int64_t partitions,
                             std::size_t operand_count,
                             const std::function<void(const NestTile&)>& fn) {
  NestDim widest{1, std::vector<std::int64_t>(operand_count, 0)};
  const auto found = std::max_element(
      kept.begin(), kept.end(), [](const NestDim& a, const NestDim& b) { return a.size < b.size; });
  if (found != kept.end()) {
    widest = *found;
    kept.erase(found);
  }
  std::vector<std::int64_t> index(kept.size(), 0);
  while (true) {
    for (std::int64_t p = 0; p < widest.size; p += partitions) {
      NestTile tile;
      tile.offsets_bytes.assign(operand_count, 0);
      for (std::size_t i = 0; i < operand_count; ++i) {
        tile.offsets_bytes[i] = p * widest.strides_bytes[i];
        for (std::size_t d = 0; d < kept.size(); ++d) {
          tile.offsets_bytes[i] += index[d] * kept[d].strides_bytes[i];
        }
      }
      tile.dims = {{std::min(partitions, widest.size - p), widest.strides_bytes}};
      fn(tile);
    }
    std::size_t d = kept.size();
    while (d > 0 && ++index[d - 1] == kept[d - 1].size) {
      index[--d] = 0;
    }
    if (d == 0) {
      return;
    }
  }
}

class AxisReduction {
 public:
  AxisReduction(Lowering& lowering, AluOp op, const HbmView& out, const HbmView& in, float scale)
      : lowering_(lowering), op_(op), out_(out), in_(in), scale_(scale) {}

  void lower(const Split& dims) {
    if (dims.kept.empty()) {
      lower_all();
    } else if (op_ == AluOp::kAdd && info(in_.dtype).is_float && !dims.reduced.empty() &&
               dims.kept.back().strides_bytes[kIn] < dims.reduced.back().strides_bytes[kIn]) {
      lower_columns(dims);
    } else {
      lower_rows(dims);
    }
  }

 private:
  // Everything into one number: along the free axis, then the 128 partial results through a
  // transpose.
  void lower_all() {
    const std::array<HbmView, 1> operands = {in_};
    const std::vector<NestDim> nest = collapse(operands);
    std::int64_t tiles = 0;
    for_each_tile(nest, 1, lowering_.limits(), [&](const NestTile&) { ++tiles; });
    const std::int64_t partitions = lowering_.limits().partitions;
    const Tensor partial = lowering_.sbuf(DType::kFloat32, {partitions, tiles});
    lowering_.memset(partial, identity(op_));
    std::int64_t column = 0;
    for_each_tile(nest, 1, lowering_.limits(), [&](const NestTile& tile) {
      const Tensor value = lowering_.load(tile, 0, in_);
      lowering_.reduce_free(columns_of(rows_of(partial, 0, tile.partitions()), column++, 1), op_,
                            value);
    });
    const Tensor total = lowering_.reduce_tile(op_, partial);
    finish(total, 0, std::array{Dim{1, 0}, Dim{1, 0}});
  }

  // Kept dimensions on the partitions, reduced ones along the free axis.
  void lower_rows(const Split& dims) {
    const std::int64_t partitions = lowering_.limits().partitions;
    for_each_partition_tile(dims.kept, partitions, 2, [&](const NestTile& rows) {
      std::vector<Tensor> loads = row_chunks(dims, rows);
      const Tensor partial = lowering_.sbuf(
          DType::kFloat32, {rows.partitions(), static_cast<std::int64_t>(loads.size())});
      for (std::size_t i = 0; i < loads.size(); ++i) {
        lowering_.reduce_free(columns_of(partial, static_cast<std::int64_t>(i), 1), op_,
                              lowering_.load(loads[i]));
      }
      Tensor total = partial;
      if (loads.size() > 1) {
        total = lowering_.sbuf(DType::kFloat32, {rows.partitions(), 1});
        lowering_.reduce_free(total, op_, partial);
      }
      finish(total, rows.offsets_bytes[kOut],
             std::array{Dim{rows.partitions(), rows.dims[0].strides_bytes[kOut]}, Dim{1, 0}});
    });
  }

  // What one tile of rows reads: the innermost reduced dimension in chunks, the others in loops.
  std::vector<Tensor> row_chunks(const Split& dims, const NestTile& rows) const {
    std::vector<Tensor> chunks;
    const Dim partition{rows.partitions(), rows.dims[0].strides_bytes[kIn]};
    if (dims.reduced.empty()) {
      chunks.push_back(in_.tile(rows.offsets_bytes[kIn], std::array{partition, Dim{1, 0}}));
      return chunks;
    }
    const NestDim& inner = dims.reduced.back();
    const std::int64_t limit = lowering_.limits().free_elements;
    const std::span<const NestDim> outer(dims.reduced.data(), dims.reduced.size() - 1);
    for_each_index(outer, kIn, rows.offsets_bytes[kIn], [&](std::int64_t offset) {
      for (std::int64_t first = 0; first < inner.size; first += limit) {
        const Dim free{std::min(limit, inner.size - first), inner.strides_bytes[kIn]};
        chunks.push_back(
            in_.tile(offset + first * inner.strides_bytes[kIn], std::array{partition, free}));
      }
    });
    return chunks;
  }

  // A sum over partitions: a product with a column of ones, which the array does at full rate.
  void lower_columns(const Split& dims) {
    const std::int64_t step = lowering_.product_columns();
    const std::int64_t rows = lowering_.machine().core.tensor.rows;
    std::vector<NestDim> kept(dims.kept.begin(), dims.kept.end() - 1);
    const NestDim columns = dims.kept.back();
    std::vector<NestDim> outer = dims.reduced;
    const auto widest =
        std::max_element(outer.begin(), outer.end(),
                         [](const NestDim& a, const NestDim& b) { return a.size < b.size; });
    const NestDim contraction = *widest;
    outer.erase(widest);
    const Tensor ones = lowering_.sbuf(in_.dtype, {std::min(rows, contraction.size), 1});
    lowering_.memset(ones, 1.0F);
    const NestDim single{1, {0, 0}};
    kept.insert(kept.begin(), single);
    for_each_pair(kept, [&](std::int64_t out_offset, std::int64_t in_offset) {
      for (std::int64_t first = 0; first < columns.size; first += step) {
        const std::int64_t count = std::min(step, columns.size - first);
        const Tensor sum = lowering_.psum(DType::kFloat32, {1, count});
        sum_columns(sum, ones, contraction, outer, in_offset + first * columns.strides_bytes[kIn],
                    {count, columns.strides_bytes[kIn]});
        finish(sum, out_offset + first * columns.strides_bytes[kOut],
               std::array{Dim{1, 0}, Dim{count, columns.strides_bytes[kOut]}});
      }
    });
  }

  void sum_columns(const Tensor& sum, const Tensor& ones, const NestDim& contraction,
                   std::span<const NestDim> outer, std::int64_t in_offset, Dim columns) {
    const std::int64_t rows = lowering_.machine().core.tensor.rows;
    bool accumulate = false;
    for_each_index(outer, kIn, in_offset, [&](std::int64_t offset) {
      for (std::int64_t k = 0; k < contraction.size; k += rows) {
        const Dim partition{std::min(rows, contraction.size - k), contraction.strides_bytes[kIn]};
        const Tensor tile = lowering_.load(
            in_.tile(offset + k * contraction.strides_bytes[kIn], std::array{partition, columns}));
        lowering_.nc_matmul(sum, rows_of(ones, 0, partition.size), tile, accumulate);
        accumulate = true;
      }
    });
  }

  void for_each_pair(std::span<const NestDim> dims,
                     const std::function<void(std::int64_t, std::int64_t)>& fn,
                     std::int64_t out_offset = 0, std::int64_t in_offset = 0) {
    if (dims.empty()) {
      fn(out_offset, in_offset);
      return;
    }
    for (std::int64_t i = 0; i < dims[0].size; ++i) {
      for_each_pair(dims.subspan(1), fn, out_offset + i * dims[0].strides_bytes[kOut],
                    in_offset + i * dims[0].strides_bytes[kIn]);
    }
  }

  void finish(const Tensor& total, std::int64_t offset_bytes, std::span<const Dim> dims) {
    const Tensor result = lowering_.sbuf(Lowering::tile_dtype(out_.dtype), total.shape());
    if (scale_ != 1.0F) {
      lowering_.tensor_scalar(result, total, AluOp::kMultiply, scale_);
    } else {
      lowering_.tensor_copy(result, total);
    }
    lowering_.store(out_, offset_bytes, dims, result);
  }

  Lowering& lowering_;
  AluOp op_;
  const HbmView& out_;
  const HbmView& in_;
  float scale_;
};

// Tiles [partitions, row] for an operator along one axis. All operands have one shape.
void for_each_row_tile(Lowering& lowering, std::span<const HbmView> operands, std::int64_t axis,
                       const std::function<void(const NestTile&)>& fn) {
  const auto at = static_cast<std::size_t>(axis);
  NestDim row{operands[0].rank() == 0 ? 1 : operands[0].sizes[at], {}};
  std::vector<HbmView> rest;
  for (const HbmView& operand : operands) {
    row.strides_bytes.push_back(operand.rank() == 0 ? 0 : operand.strides_bytes[at]);
    rest.push_back(operand.rank() == 0 ? operand : operand.select(static_cast<int>(axis), 0));
  }
  if (row.size > lowering.limits().row_elements) {
    throw Error(ErrorKind::kNotModelled, "graph-row-size",
                {.rule = "softmax holds a whole row in each partition of SBUF",
                 .here = fmt::format("{} elements", row.size),
                 .limit = fmt::format("{} elements", lowering.limits().row_elements)});
  }
  for_each_partition_tile(collapse(rest), lowering.limits().partitions, operands.size(),
                          [&](NestTile tile) {
                            tile.dims.push_back(row);
                            fn(tile);
                          });
}

}  // namespace

void lower_reduce(Lowering& lowering, AluOp op, const HbmView& out, const HbmView& in,
                  std::span<const std::int64_t> axes, float scale) {
  if (in.element_count() == 0) {
    throw Error(ErrorKind::kNotModelled, "graph-shape",
                {.rule = "a reduction has at least one element", .here = "an empty tensor"});
  }
  AxisReduction(lowering, op, out, in, scale).lower(split(out, in, axes));
}

void lower_argmax(Lowering& lowering, const HbmView& out, const HbmView& in, std::int64_t axis) {
  HbmView wide = out;
  wide.sizes = in.sizes;
  wide.strides_bytes.insert(wide.strides_bytes.begin() + axis, 0);
  const std::array<HbmView, 2> operands = {wide, in};
  for_each_row_tile(lowering, operands, axis, [&](const NestTile& tile) {
    const std::int64_t partitions = tile.partitions();
    const auto row = static_cast<double>(tile.dims[1].size);
    const Tensor x = lowering.load(tile, kIn, in);
    const Tensor largest = lowering.sbuf(DType::kFloat32, {partitions, 1});
    lowering.reduce_free(largest, AluOp::kMaximum, x);
    // Every place gets its number, plus the row's length unless it holds the maximum: the smallest
    // is the first maximum.
    const Tensor numbers = lowering.sbuf(DType::kInt32, tile.full_shape());
    lowering.iota(numbers);
    const Tensor others = lowering.sbuf(DType::kFloat32, tile.full_shape());
    lowering.tensor_scalar(others, x, AluOp::kNotEqual, largest, AluOp::kMultiply, row);
    lowering.tensor_tensor(others, others, AluOp::kAdd, numbers);
    const Tensor index = lowering.sbuf(DType::kFloat32, {partitions, 1});
    lowering.reduce_free(index, AluOp::kMinimum, others);
    const Tensor result = lowering.sbuf(Lowering::tile_dtype(out.dtype), {partitions, 1});
    lowering.tensor_copy(result, index);
    lowering.store(out, tile.offsets_bytes[kOut],
                   std::array{Dim{partitions, tile.dims[0].strides_bytes[kOut]}, Dim{1, 0}},
                   result);
  });
}

void lower_softmax(Lowering& lowering, const HbmView& out, const HbmView& in, std::int64_t axis,
                   bool logarithm) {
  const std::array<HbmView, 2> operands = {out, in};
  for_each_row_tile(lowering, operands, axis, [&](const NestTile& tile) {
    const std::int64_t partitions = tile.partitions();
    const Tensor x = lowering.load(tile, kIn, in);
    const Tensor largest = lowering.sbuf(DType::kFloat32, {partitions, 1});
    lowering.reduce_free(largest, AluOp::kMaximum, x);
    const Tensor shifted = lowering.sbuf(DType::kFloat32, tile.full_shape());
    lowering.tensor_scalar(shifted, x, AluOp::kSubtract, largest);
    const Tensor exponentials = lowering.sbuf(DType::kFloat32, tile.full_shape());
    const Tensor sum = lowering.sbuf(DType::kFloat32, {partitions, 1});
    lowering.activation_sum(exponentials, MathFunction::kExp, shifted, sum);
    const Tensor result = lowering.sbuf(out.dtype, tile.full_shape());
    const Tensor normaliser = lowering.sbuf(DType::kFloat32, {partitions, 1});
    if (logarithm) {
      lowering.activation(normaliser, MathFunction::kLog, sum);
      lowering.tensor_scalar(result, shifted, AluOp::kSubtract, normaliser);
    } else {
      lowering.reciprocal(normaliser, sum);
      lowering.tensor_scalar(result, exponentials, AluOp::kMultiply, normaliser);
    }
    lowering.store(tile, kOut, out, result);
  });
}

void lower_softmax_backward(Lowering& lowering, const HbmView& grad_input, const HbmView& grad,
                            const HbmView& output, std::int64_t axis, bool logarithm) {
  const std::array<HbmView, 3> operands = {grad_input, grad, output};
  for_each_row_tile(lowering, operands, axis, [&](const NestTile& tile) {
    const Tensor g = lowering.load(tile, 1, grad);
    const Tensor y = lowering.load(tile, 2, output);
    const Tensor sum = lowering.sbuf(DType::kFloat32, {tile.partitions(), 1});
    const Tensor work = lowering.sbuf(DType::kFloat32, tile.full_shape());
    const Tensor result = lowering.sbuf(grad_input.dtype, tile.full_shape());
    if (logarithm) {
      lowering.reduce_free(sum, AluOp::kAdd, g);
      lowering.activation(work, MathFunction::kExp, y);
      lowering.tensor_scalar(work, work, AluOp::kMultiply, sum);
      lowering.tensor_tensor(result, g, AluOp::kSubtract, work);
    } else {
      lowering.tensor_tensor(work, g, AluOp::kMultiply, y);
      lowering.reduce_free(sum, AluOp::kAdd, work);
      lowering.tensor_scalar(work, g, AluOp::kSubtract, sum);
      lowering.tensor_tensor(result, work, AluOp::kMultiply, y);
    }
    lowering.store(tile, 0, grad_input, result);
  });
}

}  // namespace trena
