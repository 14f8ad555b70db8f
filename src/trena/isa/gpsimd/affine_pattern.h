// The affine values of iota and affine_select: offset + channel * channel_multiplier + sum of index
// * step, in 32-bit integers (hw.md §2.3; nki.md §5.3-22).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "trena/isa/rules.h"

namespace trena {

struct AffinePattern {
  std::vector<std::pair<std::int64_t, std::int64_t>> steps;  // (step, count), outermost first
  std::int64_t offset = 0;
  std::int64_t channel_multiplier = 0;

  // `affine-pattern`: one to four dimensions, as many values as `dst` has elements per partition,
  // 32 bits.
  void check(std::string_view instruction, const Tensor& dst) const;

  // The values of partition 0, in order.
  std::vector<std::int32_t> first_row() const;
  // What partition p adds to them, modulo 2^32.
  std::uint32_t channel(std::int64_t partition) const {
    return static_cast<std::uint32_t>(partition * channel_multiplier);
  }
};

}  // namespace trena
