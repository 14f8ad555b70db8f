// The clock: a discrete-event simulation of all cores that share something (design.md §6).
//
// Each engine takes its instructions from a queue: as written (`program`), or the earliest ready
// one in program order (`list`, what a compiler's scheduler achieves). With `list`, an instruction
// that several engines may run goes to the one that has it done first. DMA triggers wait in queues
// of their own, in order: loads, stores and spill moves apart, and one per engine for triggers the
// kernel assigned. Deterministic: equal times are handled in the order of item numbers.
#pragma once

#include <span>
#include <vector>

#include "trena/core/run.h"
#include "trena/core/stream.h"

namespace trena {

// Fills run.events, run.per_core, run.time. Throws Error{kDeadlock, "deadlock"} if items wait for
// each other.
void simulate(const Program& program, const Machine& machine, std::span<const Stream> streams,
              Run& run);

}  // namespace trena
