// A compare-and-branch of one engine's sequencer: what an iteration of a device loop costs besides
// its body (hw.md §4). Every engine that works in the loop runs its own.
#pragma once

#include "trena/isa/rules.h"

namespace trena {

struct Branch {
  EngineKind engine;
};
std::unique_ptr<Instruction> make_instruction(Branch args);

}  // namespace trena
