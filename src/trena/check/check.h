// Mistakes that only the whole program shows: one file of this folder per rule (docs/check.md).
// What one instruction shows, it refuses itself (isa/), and the executor refuses reads of unwritten
// bytes.
#pragma once

#include <span>
#include <vector>

#include "trena/core/finding.h"
#include "trena/core/program.h"
#include "trena/core/stream.h"

namespace trena {

// `streams`: what placement made of the program, per core; their waits are the order relation.
// Findings come sorted by line, one per rule and pair of lines.
std::vector<Finding> check_program(const Program& program, std::span<const Stream> streams);

// The first one of severity error, as an exception.
void throw_first_error(const std::vector<Finding>& findings);

}  // namespace trena
