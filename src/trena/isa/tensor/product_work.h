// What a product costs the systolic array: passes, weight loads, streamed columns (hw.md §2.2,
// §2.7).
#pragma once

#include <array>
#include <optional>

#include "trena/isa/cost.h"
#include "trena/machine/machine.h"
#include "trena/number/dtype.h"

namespace trena {

struct ProductShape {
  std::int64_t contraction = 0;         // rows of the array in use
  std::int64_t stationary_columns = 0;  // columns of the array in use
  std::int64_t moving_columns = 0;      // streamed
  DType dtype = DType::kBfloat16;       // the wider operand
  bool transpose = false;               // transpose mode: moves bits, one pass
  bool onezero = false;                 // a float32 operand holds only 0 and 1: one pass fewer
  bool double_row = false;              // two fp8 values per cell: contraction counts both
  bool mx = false;                      // four MX values per cell: contraction counts all
  std::uint32_t blocks = kWholeArray;   // of the array, tiling mode
};

// The blocks of the array that a tile (row, column; rows, columns) occupies; all without one.
using ArrayTile = std::optional<std::array<std::int64_t, 2>>;
std::uint32_t array_blocks(const Machine& machine, const ArrayTile& position,
                           const ArrayTile& size);

Cost product_cost(const Machine& machine, const ProductShape& shape);

}  // namespace trena
