// Values in the order of the clock (`--values=hardware-order`): what a race does to the bytes.
//
// A finished and timed program is computed a second time, from the bytes that it began with. An
// instruction reads its operands when it starts (a transfer: with its first packet), and its
// results are there when it ends (a transfer: with its last byte), over the real SBUF and PSUM
// arrays where the kernel chose addresses, and over the caller's own memory. The bytes of a program
// without races are those of program order; a racy one shows what its reader finds at that moment.
//
// The grain is one instruction: between its start and its end nothing of it is half done. What the
// front end decided while it traced stays: control flow, registers, run-time offsets, and what
// other ranks sent. (docs/check.md)
#pragma once

#include <span>

#include "trena/core/run.h"
#include "trena/core/stream.h"

namespace trena {

// `streams` and `run`: of this program, on its own machine; its options must have asked for
// hardware_order. Throws what an instruction says to the values that it finds (`out-of-bounds`), at
// its line.
void compute_in_hardware_order(Program& program, std::span<const Stream> streams, const Run& run);

}  // namespace trena
