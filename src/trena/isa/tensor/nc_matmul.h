// nc_matmul: dst[stationary column, moving column] (+)= sum over partitions of stationary · moving
// (hw.md §2.2, §3.2; nki.md §5.1-2, §5.2-12).
#pragma once

#include <array>

#include "trena/isa/rules.h"

namespace trena {

enum class MatmulPerfMode : std::uint8_t { kNone, kDoubleRow };

struct MatmulOptions {
  bool stationary_onezero = false;
  bool moving_onezero = false;
  bool transpose = false;
  std::optional<bool> accumulate;  // none: per location, the first overwrites
  std::optional<std::array<std::int64_t, 2>> tile_position;  // (row, column)
  std::optional<std::array<std::int64_t, 2>> tile_size;
  MatmulPerfMode perf_mode = MatmulPerfMode::kNone;
};

struct NcMatmul {
  Tensor dst;
  Tensor stationary;
  Tensor moving;
  MatmulOptions options;
};
std::unique_ptr<Instruction> make_instruction(NcMatmul args);

}  // namespace trena
