#include "trena/isa/dma/trigger.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "trena/isa/dma/transfer.h"

namespace trena {
namespace {

std::string_view mode_name(DgeMode mode) {
  constexpr std::string_view kNames[] = {"unknown", "swdge", "hwdge", "none"};
  return kNames[static_cast<std::size_t>(mode)];
}

[[noreturn]] void refuse_mode(std::string_view instruction, DgeMode mode, std::string rule,
                              std::string limit) {
  refuse("dge-refused", {.rule = std::move(rule),
                         .here = fmt::format("{} with dge_mode={}", instruction, mode_name(mode)),
                         .limit = std::move(limit),
                         .fix = "leave `dge_mode` out, or name another mode"});
}

bool has_hardware_descriptors(const Machine& machine) {
  return !machine.legality.hwdge_engines.empty();
}

void check_mode(const Machine& machine, std::string_view instruction, DgeMode mode,
                const DmaNeeds& needs) {
  if (needs.vector_indirect && !machine.legality.dma_indirect) {
    refuse("dma-indirect",
           {.rule = "DMA gathers and scatters by an index vector from NeuronCore-v3 on",
            .here = fmt::format("{} with vector_offset on {}", instruction, machine.chip.name)});
  }
  if (needs.vector_indirect && mode != DgeMode::kSoftware) {
    refuse_mode(instruction, mode,
                "only software descriptors gather and scatter by an index vector",
                "unknown or swdge");
  }
  if (mode != DgeMode::kHardware) {
    return;
  }
  if (!has_hardware_descriptors(machine)) {
    refuse_mode(instruction, mode, "hardware descriptor generation exists from NeuronCore-v3 on",
                "unknown, none or swdge");
  }
  if (!needs.equal_dtypes) {
    refuse_mode(instruction, mode,
                "hardware descriptors move bits: source and destination have one type",
                "equal types, or swdge");
  }
}

DgeMode choose_mode(const Machine& machine, const DmaRequest& request, const DmaNeeds& needs) {
  if (request.mode != DgeMode::kUnknown) {
    return request.mode;
  }
  if (needs.vector_indirect) {
    return DgeMode::kSoftware;
  }
  if (!machine.is_generation(3)) {
    return DgeMode::kNone;
  }
  if (!request.engine || *request.engine == EngineKind::kGpsimd) {
    return DgeMode::kSoftware;
  }
  const bool hardware =
      machine.legality.hwdge_engines.contains(*request.engine) && needs.equal_dtypes;
  return hardware ? DgeMode::kHardware : DgeMode::kNone;
}

bool may_trigger(const Machine& machine, DgeMode mode, EngineKind engine) {
  switch (mode) {
    case DgeMode::kSoftware:
      return engine == EngineKind::kGpsimd;
    case DgeMode::kHardware:
      return machine.legality.hwdge_engines.contains(engine);
    default:
      return true;
  }
}

EngineKind choose_engine(const Machine& machine, std::string_view instruction, DgeMode mode,
                         EngineRequest request) {
  if (request) {
    resolve_engine(machine, instruction, request);
    if (!may_trigger(machine, mode, *request)) {
      refuse("engine-refused",
             {.rule = "GpSimd makes software descriptors; sync and scalar drive the hardware ones",
              .here = fmt::format("{} with dge_mode={} on engine {}", instruction, mode_name(mode),
                                  name(*request)),
              .fix = "leave `engine` out"});
    }
    return *request;
  }
  const std::vector<EngineKind>& able = machine.legality.engines_for(instruction);
  const auto first = std::find_if(able.begin(), able.end(), [&](EngineKind engine) {
    return may_trigger(machine, mode, engine);
  });
  return first == able.end() ? resolve_engine(machine, instruction, request) : *first;
}

// Rows of the transfers that DmaMode::issue_ns was measured on.
constexpr std::int64_t kUsualRows = 128;

int busy_engines(const Dma& dma, std::int64_t partitions, std::int64_t descriptors) {
  // Between HBM and HBM nothing ties a row to an engine.
  const std::int64_t engines =
      partitions == 0 ? descriptors
                      : (partitions + dma.partitions_per_engine - 1) / dma.partitions_per_engine;
  return static_cast<int>(std::clamp<std::int64_t>(engines, 1, dma.engines));
}

}  // namespace

void check_priority(const Machine& machine, std::string_view instruction,
                    std::optional<int> priority) {
  if (!priority) {
    return;
  }
  if (!machine.legality.dma_priority || *priority < 0 ||
      *priority >= machine.core.dma.service_classes) {
    refuse("dma-priority", {.rule = "DMA has service classes 0 (first) to 3 from NeuronCore-v4 on",
                            .here = fmt::format("{} with priority={} on {}", instruction, *priority,
                                                machine.chip.name),
                            .fix = "leave `priority` out"});
  }
}

DmaTrigger resolve_trigger(const Machine& machine, std::string_view instruction,
                           const DmaRequest& request, const DmaNeeds& needs) {
  check_priority(machine, instruction, request.priority);
  const DgeMode mode = choose_mode(machine, request, needs);
  check_mode(machine, instruction, mode, needs);
  return {mode, choose_engine(machine, instruction, mode, request.engine),
          request.engine.has_value(), request.priority.value_or(-1)};
}

const DmaMode& dma_mode(const Machine& machine, DgeMode mode, bool to_hbm) {
  const Dma& dma = machine.core.dma;
  switch (mode) {
    case DgeMode::kSoftware:
      return to_hbm ? dma.store : dma.load;
    case DgeMode::kHardware:
      return dma.hardware;
    default:
      return dma.prepared;
  }
}

void require_dma_tensor(const Machine& machine, std::string_view instruction, std::string_view role,
                        const Tensor& tensor) {
  require_space(instruction, role, tensor, {Space::kHbm, Space::kSbuf});
  if (machine.legality.dtypes.contains(tensor.dtype())) {
    return;
  }
  refuse("dtype-refused",
         {.rule = "memory, engines and DMA know the types of their generation",
          .here = fmt::format("{} `{}` is {}", instruction, role, tensor.describe()),
          .limit = fmt::format("{} on {}", fmt::join(names(machine.legality.dtypes), ", "),
                               machine.chip.name),
          .fix = "cast the tensor first, or move its bits as another type with .view()"});
}

void require_castable(std::string_view instruction, const Tensor& dst, const Tensor& src) {
  if (dst.dtype() == src.dtype() || (!is_packed_x4(dst.dtype()) && !is_packed_x4(src.dtype()))) {
    return;
  }
  refuse("dma-cast",
         {.rule = "DMA casts through float32; packed MX types have no value there",
          .here = fmt::format("{} from {} to {}", instruction, src.describe(), dst.describe()),
          .limit = "equal types",
          .fix = "reinterpret the bits with .view()"});
}

DmaTraffic copy_traffic(const Tensor& dst, const Tensor& src) {
  DmaTraffic traffic;
  const std::size_t width = std::max(size_bytes(dst.dtype()), size_bytes(src.dtype()));
  traffic.bytes = dst.element_count() * static_cast<std::int64_t>(width);
  traffic.runs = std::max<std::int64_t>(1, common_runs(dst, src));
  for (const Tensor* tensor : {&dst, &src}) {
    if (tensor->on_chip()) {
      traffic.partitions = std::max(traffic.partitions, tensor->partitions());
    }
  }
  traffic.hbm_read_bytes = src.on_chip() ? 0 : src.size_bytes();
  traffic.hbm_write_bytes = dst.on_chip() ? 0 : dst.size_bytes();
  traffic.to_hbm = !dst.on_chip();
  return traffic;
}

Cost dma_cost(const Machine& machine, const DmaTrigger& trigger, const DmaTraffic& traffic) {
  const Dma& dma = machine.core.dma;
  const auto divide_up = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  const std::int64_t run_bytes = divide_up(traffic.bytes, traffic.runs);
  const std::int64_t packets_per_run =
      std::max<std::int64_t>(1, divide_up(run_bytes, dma.packet_bytes));
  Cost cost;
  cost.dma.descriptors = traffic.runs * packets_per_run;
  cost.dma.descriptor_bytes = divide_up(run_bytes, packets_per_run);
  cost.dma.engines = busy_engines(dma, traffic.partitions, cost.dma.descriptors);
  cost.dma.hbm_read_bytes = traffic.hbm_read_bytes;
  cost.dma.hbm_write_bytes = traffic.hbm_write_bytes;
  cost.dma.slowdown = traffic.slowdown;
  cost.dma.dge = trigger.mode;
  cost.dma.to_hbm = traffic.to_hbm;
  cost.dma.trigger_requested = trigger.requested;
  cost.dma.priority = trigger.priority;
  const DmaMode& mode = dma_mode(machine, trigger.mode, traffic.to_hbm);
  const std::int64_t more_rows = std::max<std::int64_t>(0, traffic.runs - kUsualRows);
  double issue_ns = mode.issue_ns + static_cast<double>(more_rows) * mode.issue_row_ns;
  if (trigger.mode == DgeMode::kSoftware) {
    issue_ns = std::max(issue_ns, static_cast<double>(traffic.indirect_rows) * dma.indirect_row_ns);
  }
  cost.dma.trigger = ticks_from_ns(std::isnan(mode.trigger_ns) ? issue_ns : mode.trigger_ns);
  cost.interval = ticks_from_ns(issue_ns);
  cost.completion = cost.interval;
  return cost;
}

}  // namespace trena
