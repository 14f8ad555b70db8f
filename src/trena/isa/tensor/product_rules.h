// What nc_matmul and nc_matmul_mx share: the sizes a product may have, row and column tiles of the
// array, and how a result reaches PSUM (hw.md §2.2, §3.2; nki.md §5.1-2, §5.1-3).
#pragma once

#include <array>

#include "trena/isa/rules.h"

namespace trena {

using RowColumn = std::array<std::int64_t, 2>;

// `matmul-size`, `matmul-shape`, `psum-bank-overflow`.
void require_product_shape(const Machine& machine, std::string_view instruction, const Tensor& dst,
                           std::int64_t stationary_columns, std::int64_t moving_columns);

// `matmul-tiling`: tile_position and tile_size come together; the position is a multiple of the
// size, and the tile holds the stationary operand.
void require_array_tile(const Machine& machine, const Tensor& stationary,
                        std::int64_t stationary_columns, const std::optional<RowColumn>& position,
                        const std::optional<RowColumn>& size, bool rows_only);

// Writes a product of dst's shape, row after row, to PSUM: adds where `accumulate`, or, when that
// is empty, wherever a matmul wrote before. Marks the locations as written by a matmul.
void store_product(const Tensor& dst, std::optional<bool> accumulate, float* product);

}  // namespace trena
