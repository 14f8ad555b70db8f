// Registers of the engine sequencers (hw.md §4). The front end holds the live value; these
// instructions are what setting, loading and storing it costs and touches. 32 bits, two's
// complement.
#pragma once

#include "trena/isa/rules.h"

namespace trena {

struct RegisterMove {};
std::unique_ptr<Instruction> make_instruction(RegisterMove args);

// The one element of an integer tensor in HBM or SBUF. `result`, if given, receives the value when
// the instruction is executed; the pointer is not used later.
struct RegisterLoad {
  Tensor src;
  std::int64_t* result;
};
std::unique_ptr<Instruction> make_instruction(RegisterLoad args);

struct RegisterStore {
  Tensor dst;
  std::int64_t value;
};
std::unique_ptr<Instruction> make_instruction(RegisterStore args);

// `register-range`: what 32 bits hold, signed or unsigned.
void require_register_range(std::int64_t value);

}  // namespace trena
