// Loads that may run later than the kernel wrote them, and again: what spills least.
#pragma once

#include <cstddef>
#include <cstdint>

#include "trena/core/placement/lifetimes.h"

namespace trena {

// How many first uses of a tile are together a load that can be repeated, 0: they are none. Before
// anybody else touches the tile they fill all of it, each its own part, from HBM bytes that nobody
// writes, and nothing is ordered by them.
std::size_t repeatable_loads(const Lifetimes& lifetimes, std::int32_t tile);

}  // namespace trena
