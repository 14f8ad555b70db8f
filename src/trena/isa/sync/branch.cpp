#include "trena/isa/sync/branch.h"

namespace trena {

Cost Branch::cost(const Machine& machine) const {
  Cost cost;
  cost.interval = ticks(machine.core.sequencer.branch_cycles, machine.core.sequencer.clock_ghz);
  cost.completion = cost.interval;
  return cost;
}

}  // namespace trena
