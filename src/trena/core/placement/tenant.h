// A tile while it is being placed: whether it is on the chip now, and what it would take to put it
// out.
#pragma once

#include <optional>

#include "trena/core/placement/lifetimes.h"
#include "trena/core/placement/ranges.h"

namespace trena {

struct Tenant {
  const Tile* tile = nullptr;
  std::size_t next_use = 0;   // index into tile->uses
  std::size_t last_use = 0;   // step
  std::size_t loads = 0;      // its first uses, together a load that can be repeated; 0: none
  bool clean = false;         // HBM holds the same bytes: the load's source, or a spill slot
  bool spilled = false;       // … in a spill slot
  bool has_contents = false;  // somebody wrote it
  bool pinned = false;        // an operand of what is being placed
  bool lent = false;          // sits in a bank that the kernel addresses itself
  std::optional<Stay> stay;   // none: not on the chip

  // It brings contents when it comes in.
  bool refilled() const { return has_contents || loads > 0; }
  bool dead() const { return next_use >= tile->uses.size(); }
};

}  // namespace trena
