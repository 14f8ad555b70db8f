// Tensor indirection of v4: operands whose elements an index chooses (hw.md §1.6, A3).
#pragma once

#include "trena/isa/instruction.h"

namespace trena {

// Every tensor-indirect operand is one that the instruction may have so, on this machine and
// engine, with an index where the hardware finds it. `not-on-this-machine` before v4;
// `indirect-operand` for operands and places; not-modelled for those of the tensor engine.
void check_indirection(const Machine& machine, const Instruction& instruction,
                       const AccessList& accesses);

}  // namespace trena
