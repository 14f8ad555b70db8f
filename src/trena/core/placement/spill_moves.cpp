#include "trena/core/placement/spill_moves.h"

#include <algorithm>

#include "trena/isa/dma/trigger.h"

namespace trena {

void SpillMove::access(AccessList& list) const {
  if (direction_ == Direction::kStore) {
    list.read(tensor_);
  } else {
    list.write(tensor_);
  }
}

Cost SpillMove::cost(const Machine& machine) const {
  const Dma& dma = machine.core.dma;
  const std::int64_t rows = tensor_.partitions();
  const std::int64_t row_bytes = tensor_.free_bytes();
  const std::int64_t packets = (row_bytes + dma.packet_bytes - 1) / dma.packet_bytes;
  const bool hardware = !machine.legality.hwdge_engines.empty();
  Cost cost;
  cost.dma.descriptors = rows * packets;
  cost.dma.descriptor_bytes = std::min(row_bytes, dma.packet_bytes);
  cost.dma.engines =
      static_cast<int>((rows + dma.partitions_per_engine - 1) / dma.partitions_per_engine);
  cost.dma.to_hbm = direction_ == Direction::kStore;
  (cost.dma.to_hbm ? cost.dma.hbm_write_bytes : cost.dma.hbm_read_bytes) = rows * row_bytes;
  cost.dma.dge = hardware ? DgeMode::kHardware : DgeMode::kNone;
  cost.interval = ticks_from_ns(dma_mode(machine, cost.dma.dge, cost.dma.to_hbm).issue_ns);
  return cost;
}

}  // namespace trena
