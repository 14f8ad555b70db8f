// Gives every automatic tensor an address on one machine, and moves what does not fit (design.md
// §5).
//
// Lifetimes run from the first write to the last access in program order; what Python keeps alive
// does not matter. First everything is placed as written. Only if that fails are loads moved to
// their use and tensors spilled; a program that fits is left untouched. The policy and what it was
// checked against: docs/placement.md.
#pragma once

#include <cstdint>

#include "trena/core/run.h"
#include "trena/core/stream.h"

namespace trena {

// Throws Error{kCapacity}: `sbuf-capacity` when one instruction's operands do not fit, or anything
// does not and spilling is forbidden (`spill-forbidden`); `psum-capacity` when the live tensors
// need more banks than there are.
Stream place(const Program& program, int core, const Machine& machine, SpillPolicy spill);

}  // namespace trena
