#include "trena/core/timeline/activity.h"

#include <algorithm>

#include "trena/core/timeline/dma_rings.h"

namespace trena {
namespace {

// Profiler's multiplier of a FLOP against bf16 (hw.md §2.6).
double flop_multiplier(const Machine& machine, DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 4.0;
    case DType::kFloat8E4m3:
    case DType::kFloat8E5m2:
    case DType::kFloat8E4m3fn:
      return machine.is_generation(3) ? 0.5 : 1.0;
    case DType::kFloat8E4m3fnX4:
    case DType::kFloat8E5m2X4:
    case DType::kFloat4E2m1fnX4:
      return 0.25;
    default:
      return 1.0;
  }
}

Ticks packet_time(const Machine& machine, const DmaWork& work) {
  return ticks_from_ns(dma_service(machine, work).all_engines_ns);
}

}  // namespace

void count_activity(const Machine& machine, const StreamItem& item, const Cost& cost,
                    CoreRun& core) {
  const Activity& activity = cost.activity;
  const double flops = 2.0 * static_cast<double>(activity.multiply_accumulates) *
                       flop_multiplier(machine, activity.matmul_dtype);
  core.hardware_flops += flops;
  if (activity.transpose) {
    core.transpose_multiply_accumulates += activity.multiply_accumulates;
  } else {
    core.multiply_accumulates += activity.multiply_accumulates;
    core.model_flops += flops;
  }
  if (!item.instruction->is_dma()) {
    return;
  }
  const DmaWork& dma = cost.dma;
  core.dma_transfers += 1;
  core.descriptors += dma.descriptors;
  core.packet_time += packet_time(machine, dma);
  core.hbm_read_bytes += dma.hbm_read_bytes;
  core.hbm_write_bytes += dma.hbm_write_bytes;
  if (item.insertion != Insertion::kRecorded) {
    core.spilled_bytes += dma.hbm_read_bytes + dma.hbm_write_bytes;
  }
}

RunEvent describe_event(const Machine& machine, const StreamItem& item, const Cost& cost) {
  RunEvent event;
  event.name = item.instruction->name();
  event.dma = item.instruction->is_dma();
  event.spill = item.insertion != Insertion::kRecorded;
  event.evidence = cost.evidence;
  event.position = item.instruction->position;
  event.bytes = std::max(cost.dma.hbm_read_bytes, cost.dma.hbm_write_bytes);
  event.label = item.instruction->label;
  if (event.dma) {
    event.trigger = cost.dma.trigger;
    event.packets = packet_time(machine, cost.dma);
    event.packet_count = cost.dma.descriptors;
  }
  return event;
}

Ticks union_length(std::vector<std::pair<Ticks, Ticks>> spans) {
  std::sort(spans.begin(), spans.end());
  Ticks total = 0;
  Ticks reached = 0;
  for (const auto& [start, end] : spans) {
    total += std::max<Ticks>(0, end - std::max(start, reached));
    reached = std::max(reached, end);
  }
  return total;
}

}  // namespace trena
