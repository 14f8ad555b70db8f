#include "trena/graph/lower/matmul.h"

#include <algorithm>
#include <vector>

#include "trena/graph/lower/copy.h"

namespace trena {
namespace {

// k tiles that are loaded together: long runs for the DMA, and few enough that two panels fit SBUF.
constexpr std::int64_t kTilesPerPanel = 8;

struct Range {
  std::int64_t first;
  std::int64_t count;
};

std::vector<Range> cut(Range whole, std::int64_t step) {
  std::vector<Range> parts;
  for (std::int64_t first = 0; first < whole.count; first += step) {
    parts.push_back({whole.first + first, std::min(step, whole.count - first)});
  }
  return parts;
}

// [rows, columns] of a 2-D view.
Tensor block(const HbmView& view, Range rows, Range columns) {
  const std::int64_t offset =
      rows.first * view.strides_bytes[0] + columns.first * view.strides_bytes[1];
  return view.tile(offset, std::array<Dim, 2>{Dim{rows.count, view.strides_bytes[0]},
                                              Dim{columns.count, view.strides_bytes[1]}});
}

// The array contracts over partitions. An operand whose contiguous dimension is K would arrive
// there one element per descriptor; it is loaded as it lies and transposed on the core instead.
bool contiguous_along_k(const HbmView& operand) {
  const auto width = static_cast<std::int64_t>(size_bytes(operand.dtype));
  return operand.sizes[0] > 1 && operand.sizes[1] > 1 && operand.strides_bytes[0] == width &&
         operand.strides_bytes[1] != width;
}

class Product {
 public:
  Product(Lowering& lowering, const HbmView& out, const HbmView& a, const HbmView& b,
          const std::optional<HbmView>& bias, MatmulScale scale)
      : lowering_(lowering),
        out_(out),
        a_by_k_(a.transposed()),
        b_(b),
        bias_(bias),
        scale_(scale) {}

  void lower() {
    const TensorEngine& engine = lowering_.machine().core.tensor;
    const Range m{0, out_.sizes[0]};
    const Range n{0, out_.sizes[1]};
    const Range k{0, b_.sizes[0]};
    // Half of PSUM, so that the next group starts while this one leaves.
    const std::int64_t group_blocks =
        std::max<std::int64_t>(1, lowering_.machine().core.psum.banks / 2);
    for (const Range columns : cut(n, lowering_.product_columns())) {
      bias_tile_.reset();
      for (const Range rows : cut(m, group_blocks * engine.columns)) {
        lower_group(cut(rows, engine.columns), columns, k);
      }
    }
  }

 private:
  void lower_group(const std::vector<Range>& blocks, Range columns, Range k) {
    const std::int64_t tile = lowering_.machine().core.tensor.rows;
    std::vector<Tensor> sums;
    for (const Range rows : blocks) {
      sums.push_back(lowering_.psum(DType::kFloat32, {rows.count, columns.count}));
    }
    for (const Range panel : cut(k, tile * kTilesPerPanel)) {
      const std::vector<Tensor> moving = load_by_k(b_, panel, columns);
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        const std::vector<Tensor> stationary = load_by_k(a_by_k_, panel, blocks[i]);
        for (std::size_t t = 0; t < moving.size(); ++t) {
          lowering_.nc_matmul(sums[i], stationary[t], moving[t], panel.first > 0 || t > 0);
        }
      }
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      evict(sums[i], blocks[i], columns);
    }
    // The bias tile lives as long as its columns; everything else of the group is dead.
  }

  // Tiles [k, columns] with k on the partitions.
  std::vector<Tensor> load_by_k(const HbmView& operand, Range panel, Range columns) {
    const TensorEngine& engine = lowering_.machine().core.tensor;
    const std::vector<Range> k_tiles = cut(panel, engine.rows);
    std::vector<Tensor> tiles;
    if (!contiguous_along_k(operand)) {
      for (const Range k : k_tiles) {
        tiles.push_back(lowering_.load(block(operand, k, columns)));
      }
      return tiles;
    }
    for (const Range k : k_tiles) {
      tiles.push_back(lowering_.sbuf(operand.dtype, {k.count, columns.count}));
    }
    for (const Range part : cut(columns, engine.rows)) {
      const Tensor as_it_lies = lowering_.load(block(operand.transposed(), part, panel));
      for (std::size_t t = 0; t < k_tiles.size(); ++t) {
        const Tensor source =
            columns_of(as_it_lies, k_tiles[t].first - panel.first, k_tiles[t].count);
        transpose(columns_of(tiles[t], part.first - columns.first, part.count), source);
      }
    }
    return tiles;
  }

  // Blocks of one quadrant go through the vector engine straight into SBUF, larger ones through the
  // array and PSUM.
  void transpose(const Tensor& dst, const Tensor& source) {
    const std::int64_t quadrant = lowering_.machine().core.sbuf.quadrant_partitions;
    if (source.partitions() <= quadrant && source.free_size() <= quadrant) {
      lowering_.nc_transpose(dst, source);
      return;
    }
    const Tensor turned = lowering_.psum(source.dtype(), {source.free_size(), source.partitions()});
    lowering_.nc_transpose(turned, source);
    lowering_.tensor_copy(dst, turned);
  }

  // Out of PSUM, with bias and scale on the way.
  void evict(const Tensor& sum, Range rows, Range columns) {
    const Tensor result = lowering_.sbuf(out_.dtype, {rows.count, columns.count});
    if (bias_) {
      add_bias(result, sum, rows, columns);
    } else if (scale_.alpha != 1.0F) {
      lowering_.tensor_scalar(result, sum, AluOp::kMultiply, scale_.alpha);
    } else {
      lowering_.tensor_copy(result, sum);
    }
    lowering_.dma_copy(block(out_, rows, columns), result);
  }

  void add_bias(const Tensor& result, const Tensor& sum, Range rows, Range columns) {
    if (bias_->strides_bytes[1] == 0) {
      Tensor column = scaled_bias(block(*bias_, rows, {0, 1}));
      if (column.dtype() != DType::kFloat32) {
        const Tensor wide = lowering_.sbuf(DType::kFloat32, {rows.count, 1});
        lowering_.tensor_copy(wide, column);
        column = wide;
      }
      lowering_.tensor_scalar(result, sum, AluOp::kMultiply, scale_.alpha, AluOp::kAdd, column);
      return;
    }
    const Tensor bias = bias_of(rows, columns);
    if (scale_.alpha == 1.0F) {
      lowering_.tensor_tensor(result, sum, AluOp::kAdd, bias);
    } else {
      lowering_.scalar_tensor_tensor(result, sum, AluOp::kMultiply, scale_.alpha, AluOp::kAdd,
                                     bias);
    }
  }

  // One row for all partitions is loaded once for each range of columns.
  Tensor bias_of(Range rows, Range columns) {
    if (bias_->strides_bytes[0] != 0) {
      return scaled_bias(block(*bias_, rows, columns));
    }
    if (!bias_tile_) {
      const std::int64_t partitions =
          std::min(out_.sizes[0], lowering_.machine().core.tensor.columns);
      bias_tile_ = scaled_bias(block(*bias_, {0, partitions}, columns));
    }
    return rows_of(*bias_tile_, 0, rows.count);
  }

  Tensor scaled_bias(const Tensor& source) {
    Tensor tile = lowering_.load(source);
    if (scale_.beta != 1.0F) {
      lowering_.tensor_scalar(tile, tile, AluOp::kMultiply, scale_.beta);
    }
    return tile;
  }

  Lowering& lowering_;
  const HbmView& out_;
  HbmView a_by_k_;
  const HbmView& b_;
  const std::optional<HbmView>& bias_;
  MatmulScale scale_;
  std::optional<Tensor> bias_tile_;
};

void check_product(const HbmView& out, const HbmView& a, const HbmView& b) {
  const bool shapes = out.rank() == 2 && a.rank() == 2 && b.rank() == 2 &&
                      a.sizes[1] == b.sizes[0] && out.sizes[0] == a.sizes[0] &&
                      out.sizes[1] == b.sizes[1];
  if (!shapes || a.dtype != b.dtype) {
    throw Error(ErrorKind::kUsage, "graph-shape",
                {.rule = "a product takes [M, K] and [K, N] of one dtype and gives [M, N]",
                 .here = "sizes or dtypes that do not fit"});
  }
}

}  // namespace

void lower_matmul(Lowering& lowering, const HbmView& out, const HbmView& a, const HbmView& b,
                  const std::optional<HbmView>& bias, MatmulScale scale) {
  check_product(out, a, b);
  if (out.element_count() == 0) {
    return;
  }
  std::optional<HbmView> addend;
  if (bias && scale.beta != 0.0F) {
    addend = bias->broadcast_to(out.sizes);
  }
  if (a.sizes[1] == 0) {
    lower_fill(lowering, out, 0.0);
    if (addend) {
      lower_copy(lowering, out, *addend);
    }
    return;
  }
  // The result leaves with its rows on the partitions: the dimension that is contiguous in HBM goes
  // along the free axis, and the operand that owns the other one becomes stationary.
  if (contiguous_along_k(out)) {
    std::optional<HbmView> turned;
    if (addend) {
      turned = addend->transposed();
    }
    const HbmView out_turned = out.transposed();
    const HbmView b_turned = b.transposed();
    const HbmView a_turned = a.transposed();
    Product(lowering, out_turned, b_turned, a_turned, turned, scale).lower();
    return;
  }
  Product(lowering, out, a, b, addend, scale).lower();
}

}  // namespace trena
