// The value pass: one instruction at a time, in program order (design.md §4).
#pragma once

#include "trena/isa/instruction.h"

namespace trena {

class CoreState;

// Refuses reads of unwritten bytes (unwritten-read), runs the instruction, marks what it wrote.
void execute(const Instruction& instruction, const AccessList& accesses, CoreState& core);

}  // namespace trena
