#include "trena/core/timeline/agenda.h"

#include "trena/core/timeline/activity.h"
#include "trena/core/timeline/dma_rings.h"
#include "trena/isa/dma/trigger.h"

namespace trena {
namespace {

// Instructions lie all over memory and each is asked once: the next ones are on their way while
// this one answers.
constexpr std::size_t kInstructionsAhead = 6;
constexpr std::size_t kBytesAhead = 768;  // of each: three operands

void fetch_ahead(const std::vector<StreamItem>& items, std::size_t index) {
  if (index + kInstructionsAhead < items.size()) {
    const auto* bytes =
        reinterpret_cast<const std::byte*>(items[index + kInstructionsAhead].instruction);
    for (std::size_t offset = 0; offset < kBytesAhead; offset += 64) {
      __builtin_prefetch(bytes + offset);
    }
  }
}

int queue_of(const StreamItem& item, const Cost& cost) {
  if (!item.instruction->is_dma()) {
    return static_cast<int>(item.engine);
  }
  if (item.insertion == Insertion::kSpill) {
    return kSpillQueue;
  }
  if (cost.dma.trigger_requested) {
    return kRequestedQueue + static_cast<int>(item.engine);
  }
  return cost.dma.to_hbm ? kStoreQueue : kLoadQueue;
}

RingWork ring_work(const Machine& machine, const DmaWork& work) {
  const Dma& dma = machine.core.dma;
  const DmaMode& mode = dma_mode(machine, work.dge, work.to_hbm);
  const int last_class = static_cast<int>(dma.service_classes) - 1;
  return {.dispatch = ticks_from_ns(mode.dispatch_ns),
          .landing = ticks_from_ns(work.to_hbm ? dma.store_base_ns : dma.load_base_ns),
          .notify = ticks_from_ns(mode.notify_ns),
          .busiest_engine_ns = dma_service(machine, work).busiest_engine_ns,
          .hbm_bytes = static_cast<double>(work.hbm_read_bytes + work.hbm_write_bytes),
          .service_class = work.priority >= 0 ? work.priority : last_class};
}

Work work_of(const Machine& machine, const Cost& cost, bool dma) {
  Work work{cost.interval, {}};
  if (dma) {
    work.of = ring_work(machine, cost.dma);
  } else if (cost.tensor.passes > 0) {
    work.of = cost.tensor;
  } else {
    work.of = EngineWork{cost.completion, cost.activation_table, cost.reroute, cost.route};
  }
  return work;
}

}  // namespace

Agenda::Agenda(const Machine& machine, std::span<const Stream> streams, Run& run)
    : machine_(machine), streams_(streams), run_(run) {
  std::size_t count = 0;
  for (const Stream& stream : streams_) {
    first_of_core_.push_back(count);
    count += stream.items.size();
  }
  items_.reserve(count);
  work_.reserve(count);
  ports_.reserve(count);
  run_.events.reserve(count);
  for (std::size_t core = 0; core < streams_.size(); ++core) {
    const std::vector<StreamItem>& stream_items = streams_[core].items;
    for (std::size_t index = 0; index < stream_items.size(); ++index) {
      fetch_ahead(stream_items, index);
      add(core, stream_items[index]);
    }
  }
  link();
}

void Agenda::add(std::size_t core, const StreamItem& stream_item) {
  const Instruction& instruction = *stream_item.instruction;
  const Cost cost = instruction.cost(machine_);
  Item item;
  item.core = static_cast<std::int16_t>(core);
  item.engine = stream_item.engine;
  item.queue = static_cast<std::int16_t>(queue_of(stream_item, cost));
  item.gap = cost.gap;
  item.meets = instruction.rendezvous() >= 0;
  ports_.push_back(ports_of(machine_, instruction, item.engine, scratch_));
  item.ports = ports_.back()[0] != 0;
  work_.push_back(work_of(machine_, cost, item.dma()));
  if (auto* work = std::get_if<EngineWork>(&work_.back().of)) {
    add_alternative(item, instruction, *work);
  }
  items_.push_back(item);
  count_activity(machine_, stream_item, cost, run_.per_core[core]);
  RunEvent& event = run_.events.emplace_back(describe_event(machine_, stream_item, cost));
  event.core = item.core;
  event.engine = item.engine;
  event.queue = item.queue;
}

void Agenda::add_alternative(Item& item, const Instruction& instruction, EngineWork& work) {
  if (run_.options.schedule != SchedulePolicy::kList) {
    return;
  }
  if (const auto other = instruction.alternative(machine_)) {
    item.flexible = true;
    work.alternative = static_cast<std::int32_t>(alternatives_.size());
    alternatives_.push_back({other->engine, work_of(machine_, other->cost, false),
                             ports_of(machine_, instruction, other->engine, scratch_),
                             other->cost.evidence});
  }
}

const Alternative& Agenda::alternative(std::uint32_t id) const {
  return alternatives_[static_cast<std::size_t>(std::get<EngineWork>(work_[id].of).alternative)];
}

// What the instruction does stays the same, and so do the counts.
void Agenda::take_alternative(std::uint32_t id) {
  const Alternative& other = alternative(id);
  Item& item = items_[id];
  item.engine = other.engine;
  item.queue = static_cast<std::int16_t>(other.engine);
  item.ports = other.ports[0] != 0;
  RunEvent& event = run_.events[id];
  event.engine = item.engine;
  event.queue = item.queue;
  event.evidence = other.evidence;
  ports_[id] = other.ports;
  work_[id] = other.work;
}

const StreamItem& Agenda::stream_item(std::uint32_t id) const {
  const auto core = static_cast<std::size_t>(items_[id].core);
  return streams_[core].items[id - first_of_core_[core]];
}

// Who waits for whom, the other way round: in compressed rows by the item waited for.
void Agenda::link() {
  successor_first_.assign(items_.size() + 2, 0);
  const auto for_each_item = [&](auto&& fn) {
    for (std::size_t core = 0; core < streams_.size(); ++core) {
      const std::size_t base = first_of_core_[core];
      for (std::size_t i = 0; i < streams_[core].items.size(); ++i) {
        fn(base, base + i, streams_[core].waits.of(i));
      }
    }
  };
  for_each_item([&](std::size_t base, std::size_t later, std::span<const Wait> waits) {
    items_[later].pending = static_cast<std::uint32_t>(waits.size());
    for (const Wait wait : waits) {
      ++successor_first_[base + wait.item() + 2];
      if (wait.for_start()) {
        items_[base + wait.item()].leads = true;
      }
    }
  });
  for (std::size_t i = 2; i < successor_first_.size(); ++i) {
    successor_first_[i] += successor_first_[i - 1];
  }
  successors_.resize(successor_first_.back());
  for_each_item([&](std::size_t base, std::size_t later, std::span<const Wait> waits) {
    for (const Wait wait : waits) {
      successors_[successor_first_[base + wait.item() + 1]++] = {static_cast<std::uint32_t>(later),
                                                                 wait.for_start()};
    }
  });
}

}  // namespace trena
