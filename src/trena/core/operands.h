// What each source line works on, in words: for traces and stall tables.
#pragma once

#include <vector>

#include "trena/core/program.h"
#include "trena/core/run.h"

namespace trena {

// One text per source line and mnemonic, of the first instruction there, sorted by file, line and
// name. A loop's instructions share a text: their shapes seldom differ, and a text for each would
// cost more than the instruction.
std::vector<OperandText> describe_operands(const Program& program);

// The text of one event; null when its line is unknown. `operands` as describe_operands made it.
const OperandText* find_operands(const std::vector<OperandText>& operands, Position position,
                                 std::string_view name);

}  // namespace trena
