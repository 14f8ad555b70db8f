#include "trena/isa/tensor/product_work.h"

#include <algorithm>

namespace trena {
namespace {

int passes(const TensorEngine& engine, const ProductShape& shape) {
  if (shape.dtype != DType::kFloat32) {
    return 1;
  }
  if (shape.transpose) {
    return static_cast<int>(engine.fp32_passes_transpose);
  }
  return static_cast<int>(shape.onezero ? engine.fp32_passes_onezero : engine.fp32_passes);
}

}  // namespace

std::uint32_t array_blocks(const Machine& machine, const ArrayTile& position,
                           const ArrayTile& size) {
  if (!position || !size) {
    return kWholeArray;
  }
  const TensorEngine& engine = machine.core.tensor;
  const std::int64_t rows = engine.rows / kArrayBlocks;
  const std::int64_t columns = engine.columns / kArrayBlocks;
  std::uint32_t blocks = 0;
  for (int block = 0; block < kArrayBlocks * kArrayBlocks; ++block) {
    const std::int64_t row = block / kArrayBlocks * rows;
    const std::int64_t column = block % kArrayBlocks * columns;
    const bool inside = row + rows > (*position)[0] && row < (*position)[0] + (*size)[0] &&
                        column + columns > (*position)[1] && column < (*position)[1] + (*size)[1];
    blocks |= inside ? 1u << block : 0u;
  }
  return blocks;
}

Cost product_cost(const Machine& machine, const ProductShape& shape) {
  const TensorEngine& engine = machine.core.tensor;
  const bool fp32 = shape.dtype == DType::kFloat32;
  const double load_cycles_per_column = shape.mx ? engine.stationary_cycles_per_column_mx
                                        : !fp32  ? engine.stationary_cycles_per_column
                                        : shape.transpose
                                            ? engine.stationary_cycles_per_column_fp32_transpose
                                            : engine.stationary_cycles_per_column_fp32;
  const double move_cycles_per_column =
      fp32 ? engine.moving_cycles_per_column_fp32 : engine.moving_cycles_per_column;
  const auto streamed =
      static_cast<double>(std::max(shape.moving_columns, engine.min_moving_columns));

  Cost cost;
  cost.tensor.passes = passes(engine, shape);
  cost.tensor.load_stationary = machine.ticks(
      EngineKind::kTensor, static_cast<double>(shape.stationary_columns) * load_cycles_per_column);
  cost.tensor.multiply_moving =
      machine.ticks(EngineKind::kTensor, streamed * move_cycles_per_column);
  const std::int64_t depth = shape.double_row ? engine.double_row_depth
                             : shape.mx       ? engine.mx_depth
                                              : 1;
  const std::int64_t rows_used = shape.contraction / depth;
  cost.tensor.active_area = static_cast<double>(rows_used * shape.stationary_columns) /
                            static_cast<double>(engine.rows * engine.columns);
  cost.tensor.blocks = shape.blocks;
  cost.activity.multiply_accumulates =
      shape.contraction * shape.stationary_columns * shape.moving_columns;
  cost.activity.matmul_dtype = shape.dtype;
  cost.activity.transpose = shape.transpose;
  return cost;
}

}  // namespace trena
