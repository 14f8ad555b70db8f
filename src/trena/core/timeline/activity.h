// What the instructions of a run do: counted for reports, never timed.
#pragma once

#include <utility>
#include <vector>

#include "trena/core/run.h"
#include "trena/core/stream.h"

namespace trena {

// FLOPs, transfers and bytes of one item. (EngineUse::instructions counts who ran it.)
void count_activity(const Machine& machine, const StreamItem& item, const Cost& cost,
                    CoreRun& core);

// What is known of an event before it happens, its core and its queue aside.
RunEvent describe_event(const Machine& machine, const StreamItem& item, const Cost& cost);

// Ticks that lie in at least one of them.
Ticks union_length(std::vector<std::pair<Ticks, Ticks>> spans);

}  // namespace trena
