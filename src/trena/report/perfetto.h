// A run as a Perfetto trace: open it in https://ui.perfetto.dev.
//
// Per core a process with one row per engine that worked and one per DMA queue (as many lanes as
// transfers were in flight), slices named by mnemonic that carry the Python line and the operands,
// arrows from what was waited for to what waited, and a counter of the payload bandwidth. A slice
// is as long as its engine was taken; of a DMA it is the payload, from the first packet to the last
// byte, and the trigger stands in the annotations. Perfetto's clock counts whole nanoseconds:
// slices are rounded to them, the exact times stand in the annotations.
#pragma once

#include <string>

#include "trena/core/run.h"

namespace trena {

// The file's bytes: the same for the same run, always.
std::string perfetto_trace(const Run& run);

// Throws Error{kUsage}: `file-unwritable`.
void write_perfetto(const Run& run, const std::string& path);

}  // namespace trena
