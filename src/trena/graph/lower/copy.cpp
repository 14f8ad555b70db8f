#include "trena/graph/lower/copy.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace trena {
namespace {

// A DMA needs no tile of SBUF: only its descriptors bound it. Long rows mean few instructions.
constexpr NestLimits kDmaLimits{.partitions = 128, .free_elements = 32768};
// Integers up to here are exact in float32, which immediates are.
constexpr double kExactInteger = 16777216.0;

// 64-bit elements move as two 32-bit words.
HbmView as_words(const HbmView& view) {
  HbmView words = view.low_words();
  words.sizes.push_back(2);
  words.strides_bytes.push_back(static_cast<std::int64_t>(size_bytes(DType::kInt32)));
  return words;
}

// The tile of one operand in HBM, broadcast dimensions in full.
Tensor whole_tile(const NestTile& tile, const HbmView& view, std::size_t index) {
  std::vector<Dim> dims;
  for (const NestDim& dim : tile.dims) {
    dims.push_back({dim.size, dim.strides_bytes[index]});
  }
  return view.tile(tile.offsets_bytes[index], dims);
}

void move(Lowering& lowering, const HbmView& out, const HbmView& source) {
  const std::array<HbmView, 2> operands = {out, source};
  for_each_tile(collapse(operands), 2, kDmaLimits, [&](const NestTile& tile) {
    lowering.dma_copy(whole_tile(tile, out, 0), whole_tile(tile, source, 1));
  });
}

void convert(Lowering& lowering, const HbmView& out, const HbmView& source) {
  const std::array<HbmView, 2> operands = {out, source};
  for_each_tile(collapse(operands), 2, lowering.limits(), [&](const NestTile& tile) {
    const Tensor value = expand(lowering.load(tile, 1, source), tile, 1);
    const Tensor result = lowering.sbuf(Lowering::tile_dtype(out.dtype), tile.full_shape());
    if (out.dtype == DType::kBool) {
      lowering.tensor_scalar(result, value, AluOp::kNotEqual, 0.0F);
    } else {
      lowering.tensor_copy(result, value);
    }
    lowering.store(tile, 0, out, result);
  });
}

// Engines round to the nearest integer, PyTorch cuts the fraction off: not the same cast.
void check_conversion(const HbmView& out, const HbmView& source) {
  const bool cuts =
      info(source.dtype).is_float && info(out.dtype).is_integer && out.dtype != DType::kBool;
  const bool host_float = source.dtype == DType::kFloat64 || out.dtype == DType::kFloat64;
  if (cuts || host_float) {
    throw Error(ErrorKind::kNotModelled, "graph-cast",
                {.rule = "engines cast through float32 and round to nearest; PyTorch's cast to an "
                         "integer truncates",
                 .here = fmt::format("{} to {}", name(source.dtype), name(out.dtype)),
                 .fix = "cast on the CPU before moving the tensor"});
  }
}

}  // namespace

void lower_fill(Lowering& lowering, const HbmView& out, double value) {
  if (info(out.dtype).is_integer &&
      (value != std::floor(value) || std::abs(value) > kExactInteger)) {
    throw Error(ErrorKind::kNotModelled, "graph-number",
                {.rule = "the number of an instruction is a float32, exact for integers up to 2^24",
                 .here = fmt::format("{} for {}", value, name(out.dtype))});
  }
  const std::array<HbmView, 1> operands = {out};
  for_each_tile(collapse(operands), 1, lowering.limits(), [&](const NestTile& tile) {
    const Tensor result = lowering.sbuf(Lowering::tile_dtype(out.dtype), tile.full_shape());
    lowering.memset(result, value);
    lowering.store(tile, 0, out, result);
  });
}

void lower_copy(Lowering& lowering, const HbmView& out, const HbmView& source) {
  const HbmView wide = source.broadcast_to(out.sizes);
  if (out.dtype != source.dtype) {
    check_conversion(out, source);
    convert(lowering, out, wide);
  } else if (is_host_only(out.dtype)) {
    move(lowering, as_words(out), as_words(wide));
  } else {
    move(lowering, out, wide);
  }
}

}  // namespace trena
