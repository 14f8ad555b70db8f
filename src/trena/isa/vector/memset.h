// memset: one constant into a whole tile (hw.md §2.3, nki.md §5.3-22).
#pragma once

#include <cstdint>
#include <variant>

#include "trena/isa/rules.h"

namespace trena {

// An integer tensor takes an integer, without a cast.
using MemsetValue = std::variant<std::int64_t, double>;

struct Memset {
  Tensor dst;
  MemsetValue value;
  EngineRequest engine;
};
std::unique_ptr<Instruction> make_instruction(Memset args);

}  // namespace trena
