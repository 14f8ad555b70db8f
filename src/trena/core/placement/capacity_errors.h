// What is said where a program does not fit into the memories of a core.
#pragma once

#include <cstdint>
#include <string>

#include "trena/core/placement/lifetimes.h"

namespace trena {

// `psum-capacity`: no bank for `tile` at `step`; names who is alive there.
[[noreturn]] void throw_psum_capacity(const Program& program, const Lifetimes& lifetimes,
                                      const Machine& machine, const Tile& tile, std::size_t step);
// `sbuf-capacity`: the operands of one instruction alone are too many.
[[noreturn]] void throw_sbuf_capacity(const Program& program, const Lifetimes& lifetimes,
                                      const Machine& machine, std::size_t step);
// `spill-forbidden`: `homeless` is the first tensor without a place.
[[noreturn]] void throw_spill_forbidden(const Machine& machine, const std::string& homeless);

}  // namespace trena
