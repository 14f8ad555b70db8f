// The loop nest of an operator that treats every element alike, and its tiles: which elements one
// instruction takes, as partitions × free axis (hw.md §1.5: at most 128 partitions, the same
// pattern in each).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "trena/graph/hbm_view.h"

namespace trena {

// One dimension of a nest: its size, and the stride of each operand in bytes (0: the operand is
// broadcast).
struct NestDim {
  std::int64_t size = 1;
  std::vector<std::int64_t> strides_bytes;
};

// The common iteration space of `operands`, which all have one shape: dimensions of size 1 dropped,
// ordered by the strides of operand 0 from the outside in, neighbours merged where every operand
// allows it.
std::vector<NestDim> collapse(std::span<const HbmView> operands);

// One tile: where it starts in each operand, and its dimensions, partition first.
struct NestTile {
  std::vector<std::int64_t> offsets_bytes;  // one per operand
  std::vector<NestDim> dims;                // partition, then 1 or more free dimensions

  std::int64_t partitions() const { return dims[0].size; }
  // The tile of one operand in HBM.
  Tensor in(const HbmView& operand, std::size_t index) const;
  // Its shape in SBUF: broadcast free dimensions are kept once.
  std::vector<std::int64_t> compact_shape(std::size_t index) const;
  std::vector<std::int64_t> full_shape() const;
};

struct NestLimits {
  std::int64_t partitions = 128;
  std::int64_t free_elements = 2048;  // per partition and tile
  std::int64_t row_elements = 4096;   // of an operator that needs whole rows
};

// Cuts the nest into tiles that use as many partitions as pay off, and calls fn for each, in memory
// order.
void for_each_tile(std::span<const NestDim> nest, std::size_t operand_count,
                   const NestLimits& limits, const std::function<void(const NestTile&)>& fn);

// A tile of compact_shape(index) seen with full_shape(): stride 0 along broadcast free dimensions.
Tensor expand(const Tensor& compact, const NestTile& tile, std::size_t index);

}  // namespace trena
