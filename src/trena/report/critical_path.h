// Why a run took as long as it did: the chain of events that ends with the last one, each of which
// could not have started earlier because of the one before.
//
// A link is what an event waited for last: the end of another event, or its own queue. Every moment
// of the data flow belongs to exactly one link, so the parts add up to the time without the launch;
// of two runs of one program the differences of the parts add up to the difference in time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trena/core/run.h"

namespace trena {

// Everything on the chain that comes from one line. Rows are named as queue_name() does.
struct PathPart {
  SourceLine line;
  std::string name;  // mnemonic
  std::string row;
  bool spill = false;  // moves that Placement inserted
  Ticks time = 0;  // from the end of what it waited for to its own, as far as the next one waited
  std::int64_t count = 0;
};

// Longest first; equal ones by line.
std::vector<PathPart> critical_path(const Run& run);

}  // namespace trena
