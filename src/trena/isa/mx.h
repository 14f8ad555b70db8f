// MX tiles of NeuronCore-v4: packed elements and the scales of their groups (hw.md §3.6).
//
// A group is 8 partitions × the four values of one packed element, 32 values with one e8m0 scale.
// The scale of group g (partitions 8g … 8g+7) lies in the quadrant of 32 partitions where its
// values lie, in row g mod 4 of the four rows in use there; the scale tile starts 0, 4, 8 or 12
// partitions into a quadrant.
#pragma once

#include <vector>

#include "trena/isa/rules.h"

namespace trena::mx {

inline constexpr std::int64_t kGroupPartitions = 8;  // OCP MX: 32 values a group
inline constexpr std::int64_t kPacked = 4;
inline constexpr std::int64_t kQuadrant = 32;
inline constexpr std::int64_t kScaleRows = kQuadrant / kGroupPartitions;  // in use per quadrant
inline constexpr int kScaleBias = 127;                                    // e8m0: 2^(bits - 127)

// `mx-layout`: data of a multiple of 32 partitions up to 128, a scale tile with the rows above and
// one scale per column; `dtype-refused`: scales are e8m0 or uint8.
void require_scale(std::string_view instruction, std::string_view role, const Tensor& scale,
                   std::int64_t partitions, std::int64_t columns);

// The rows of the scale tile that hold scales, one view per quadrant.
std::vector<Tensor> scale_rows(const Tensor& scale, std::int64_t partitions);

}  // namespace trena::mx
