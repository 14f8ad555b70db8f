// What to change, where the figures of the run leave no doubt. Each piece of advice has an id that
// docs/errors.md explains, as an error has.
#pragma once

#include <vector>

#include "trena/report/summary.h"

namespace trena {

//   launch-bound      more than half of the time is the fixed cost of starting a kernel
//   spilled           SBUF did not hold the live tensors: bytes went to HBM and back
//   tiny-descriptors  DMA binds, and its packets spend more time on overhead than on bytes
//   table-thrash      activation tables are loaded over and over
//   fp32-products     the tensor engine binds and most of its work is due to fp32
std::vector<Advice> find_advice(const Summary& summary, const Machine& machine);

}  // namespace trena
