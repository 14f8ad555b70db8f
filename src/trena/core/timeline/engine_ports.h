// What engines of a core use in turns: their paths to a memory, and banks of PSUM (hw.md §1.5).
#pragma once

#include <array>
#include <cstdint>

#include "trena/isa/instruction.h"

namespace trena {

// 0: nothing.
using PortKeys = std::array<std::int32_t, 4>;

// What `instruction` uses when `engine` runs it. On v2 vector and gpsimd never access SBUF at once,
// nor vector and scalar PSUM; later generations only take turns at one PSUM bank. A tensor that
// Placement puts somewhere has its banks to itself. `scratch` is overwritten.
PortKeys ports_of(const Machine& machine, const Instruction& instruction, EngineKind engine,
                  AccessList& scratch);

bool share_port(const PortKeys& a, const PortKeys& b);

}  // namespace trena
