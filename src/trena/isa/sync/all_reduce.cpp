#include "trena/isa/sync/all_reduce.h"

#include <fmt/format.h>

#include "trena/isa/core_state.h"
#include "trena/isa/dma/transfer.h"
#include "trena/isa/dma/trigger.h"

namespace trena {

void AllReduce::check(const Machine& machine) const {
  if (sources_.empty() || sources_.size() != destinations_.size()) {
    refuse("collective-tensors", {.rule = "a collective has one destination for each source",
                                  .here = fmt::format("{} sources, {} destinations",
                                                      sources_.size(), destinations_.size())});
  }
  const Space space = sources_.front().space();
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const Tensor& source = sources_[i];
    const Tensor& destination = destinations_[i];
    require_dma_tensor(machine, name(), "srcs", source);
    require_dma_tensor(machine, name(), "dsts", destination);
    if (source.space() != space || destination.space() != space ||
        (space != Space::kHbm && sources_.size() > 1)) {
      refuse("memory-refused",
             {.rule = "all tensors of a collective are in HBM, or its only two in SBUF",
              .here = fmt::format("{} tensors, {} to {}", sources_.size(), source.describe(),
                                  destination.describe()),
              .limit = "one memory"});
    }
    if (source.dtype() != destination.dtype() ||
        source.element_count() != destination.element_count() || is_packed_x4(source.dtype())) {
      refuse("collective-tensors",
             {.rule = "a reduction keeps type and number of elements, and needs values",
              .here = fmt::format("{} to {}", source.describe(), destination.describe())});
    }
  }
  check_priority(machine, name(), priority_);
}

void AllReduce::access(AccessList& list) const {
  for (const Tensor& source : sources_) {
    list.read(source);
  }
  for (const Tensor& destination : destinations_) {
    list.write(destination);
  }
}

void AllReduce::execute(CoreState&) const {
  for (std::size_t i = 0; i < destinations_.size(); ++i) {
    const Tensor& destination = destinations_[i];
    const auto width = static_cast<std::int64_t>(size_bytes(destination.dtype()));
    transfer(layout_of(destination), {destination.dtype(),
                                      const_cast<std::byte*>(results_[i]->data()),
                                      {{destination.element_count(), width}}});
  }
}

void AllReduce::complete(std::vector<Bytes> results, Ticks duration) {
  results_ = std::move(results);
  duration_ = duration;
}

Cost AllReduce::cost(const Machine& machine) const {
  Cost cost;
  cost.interval = ticks_from_ns(machine.core.dma.prepared.issue_ns);
  cost.completion = std::max(cost.interval, duration_);
  return cost;
}

}  // namespace trena
