#include "trena/isa/sync/core_barrier.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "trena/isa/core_state.h"

namespace trena {

void require_pair(const Machine& machine, std::string_view instruction) {
  if (!machine.legality.pair) {
    refuse("pair-refused", {.rule = "two cores of one HBM stack can meet from NeuronCore-v3 on",
                            .here = fmt::format("{} on {}", instruction, machine.chip.name)});
  }
}

EngineKind CoreBarrier::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), engine_);
}

void CoreBarrier::check(const Machine& machine) const {
  require_pair(machine, name());
  if (cores_ != std::vector<int>{0, 1}) {
    refuse("pair-cores",
           {.rule = "the cores of a pair are 0 and 1",
            .here = fmt::format("core_barrier with cores=({})", fmt::join(cores_, ", ")),
            .limit = "cores=(0, 1)"});
  }
  if (data_.space() != Space::kHbm || data_.buffer()->role == BufferRole::kLocal) {
    refuse("memory-refused", {.rule = "core_barrier waits for data that both cores see",
                              .here = fmt::format("`data` is {}", data_.describe()),
                              .limit = "a tensor in shared_hbm",
                              .fix = "make it with buffer=nl.shared_hbm"});
  }
  resolve_engine(machine, name(), engine_);
}

// Marks nothing: it orders.
void CoreBarrier::access(AccessList& list) const { list.add(data_, AccessKind::kWriteSome); }

void CoreBarrier::execute(CoreState&) const {}

Cost CoreBarrier::cost(const Machine& machine) const {
  Cost cost;
  cost.interval = ticks_from_ns(machine.pair.barrier_ns);
  cost.completion = cost.interval;
  return cost;
}

}  // namespace trena
