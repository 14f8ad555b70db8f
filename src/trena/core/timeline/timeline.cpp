#include "trena/core/timeline/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <unordered_map>

#include "trena/core/timeline/activity.h"
#include "trena/core/timeline/agenda.h"
#include "trena/core/timeline/dma_rings.h"
#include "trena/core/timeline/engines.h"

namespace trena {
namespace {

constexpr int kQueues = kQueuesPerCore;
constexpr int kDmaQueues = kQueues - kEngineCount;

constexpr Ticks kNeverFree = std::numeric_limits<Ticks>::max();

struct Queue {
  std::vector<std::uint32_t> items;  // in program order
  std::size_t head = 0;              // program order: the next to issue
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>>
      ready;          // list order
  Ticks waiting = 0;  // list order: what the ready ones will occupy it for
  Ticks free_at = 0;
  Ticks wake_at = -1;  // a wake-up is on its way
  std::int64_t in_flight = 0;
};

enum class EventKind : std::uint8_t { kReady, kArrive, kDone, kWake };

struct Event {
  Ticks time;
  EventKind kind;
  std::uint32_t id;  // item, or core * kQueues + queue for a wake-up
  std::uint64_t rank() const { return static_cast<std::uint64_t>(kind) << 32 | id; }
  bool operator>(const Event& other) const {
    return time != other.time ? time > other.time : rank() > other.rank();
  }
};

// At a rendezvous: who, and since when its queue had been free.
struct Arrival {
  std::uint32_t item;
  Ticks free_since;
};

class Simulation {
 public:
  Simulation(const Program& program, const Machine& machine, std::span<const Stream> streams,
             Run& run);
  void run();

 private:
  Queue& queue_at(const Item& item) { return queues_[item.global_queue()]; }
  Queue& queue_at(const Item& item, EngineKind engine) {
    return queues_[static_cast<std::size_t>(item.core * kQueues + static_cast<int>(engine))];
  }
  Engines& engines_of(const Item& item) { return engines_[static_cast<std::size_t>(item.core)]; }
  bool in_order(int queue) const {
    return run_.options.schedule == SchedulePolicy::kProgram || queue >= kEngineCount;
  }

  void handle(const Event& event);
  void arrive(std::uint32_t id);
  void ring_step(DmaRings::Step step);
  void touch(std::uint32_t queue) { touched_.push_back(queue); }
  void touch(const Item& item) { touch(static_cast<std::uint32_t>(item.global_queue())); }
  void issue_touched();
  void issue_from(std::uint32_t queue);
  bool next_item(Queue& queue, int number, std::uint32_t& id);
  Ticks ports_free_at(EngineKind user, std::uint32_t id);
  void enqueue(std::uint32_t id);
  void choose_engine(std::uint32_t id);
  Ticks end_on(EngineKind engine, const EngineWork& work, std::uint32_t id);
  void wake(std::uint32_t number, Queue& queue, Ticks time);
  bool meet(std::uint32_t id);
  void start(std::uint32_t id);
  void start_dma(std::uint32_t id, Queue& queue);
  void release_successors(std::uint32_t id, bool on_start, Ticks time);
  Ticks gap(const Item& from, const Item& to) const;
  void finish();
  [[noreturn]] void throw_deadlock() const;

  const Program& program_;
  const Machine& machine_;
  std::span<const Stream> streams_;
  Run& run_;
  Agenda agenda_;
  std::vector<Queue> queues_;
  std::vector<Engines> engines_;  // by core
  DmaRings rings_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<std::uint32_t> touched_;
  std::map<std::int64_t, std::vector<Arrival>> meeting_;  // rendezvous → who has arrived
  std::unordered_map<std::int64_t, std::size_t> participants_;
  std::vector<std::vector<std::pair<Ticks, Ticks>>> dma_spans_;  // per core
  Ticks now_ = 0;
  Ticks last_ = 0;  // when the last of all items is done
  std::size_t started_ = 0;
};

Simulation::Simulation(const Program& program, const Machine& machine,
                       std::span<const Stream> streams, Run& run)
    : program_(program),
      machine_(machine),
      streams_(streams),
      run_(run),
      agenda_(machine, streams, run),
      queues_(streams.size() * kQueues),
      engines_(streams.size(), Engines(machine)),
      rings_(machine, static_cast<int>(streams.size()), kDmaQueues),
      dma_spans_(streams.size()) {
  for (std::uint32_t id = 0; id < agenda_.size(); ++id) {
    const Item& item = agenda_.item(id);
    if (in_order(item.queue)) {
      queue_at(item).items.push_back(id);
    }
    if (item.meets) {
      ++participants_[agenda_.instruction(id).rendezvous()];
    }
  }
}

void Simulation::run() {
  for (std::uint32_t id = 0; id < agenda_.size(); ++id) {
    if (agenda_.item(id).pending == 0 && !in_order(agenda_.item(id).queue)) {
      enqueue(id);
    }
  }
  for (std::uint32_t queue = 0; queue < queues_.size(); ++queue) {
    issue_from(queue);
  }
  while (true) {
    const std::optional<DmaRings::Step> step = rings_.next();
    if (events_.empty() && !step) {
      break;
    }
    now_ =
        std::min(events_.empty() ? kNeverFree : events_.top().time, step ? step->time : kNeverFree);
    if (step && step->time == now_) {
      ring_step(*step);
    }
    while (!events_.empty() && events_.top().time == now_) {
      const Event event = events_.top();
      events_.pop();
      handle(event);
    }
    issue_touched();
  }
  if (started_ != agenda_.size()) {
    throw_deadlock();
  }
  finish();
}

void Simulation::issue_touched() {
  std::sort(touched_.begin(), touched_.end());
  touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
  std::vector<std::uint32_t> touched;
  touched.swap(touched_);
  for (const std::uint32_t queue : touched) {
    issue_from(queue);
  }
  touched.clear();
  if (touched_.empty()) {
    touched_.swap(touched);  // keep the allocation
  } else {
    events_.push({now_, EventKind::kWake, touched_.front()});
  }
}

void Simulation::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::kReady: {
      const Item& item = agenda_.item(event.id);
      if (!in_order(item.queue)) {
        enqueue(event.id);
      }
      touch(item);
      return;
    }
    case EventKind::kArrive:
      arrive(event.id);
      return;
    case EventKind::kDone: {
      const Item& item = agenda_.item(event.id);
      --queue_at(item).in_flight;
      touch(item);
      return;
    }
    case EventKind::kWake:
      queues_[event.id].wake_at = -1;
      touch(event.id);
      return;
  }
}

void Simulation::arrive(std::uint32_t id) {
  const Item& item = agenda_.item(id);
  const RingWork& work = std::get<RingWork>(agenda_.work(id).of);
  rings_.push(item.core * kDmaQueues + item.queue - kEngineCount,
              {id, work.busiest_engine_ns, work.hbm_bytes, work.service_class}, now_);
}

// A transfer's last packet has left its engine.
void Simulation::ring_step(DmaRings::Step step) {
  const DmaRings::Done done = rings_.pop(step.queue, now_);
  const auto id = static_cast<std::uint32_t>(done.id);
  const RingWork& work = std::get<RingWork>(agenda_.work(id).of);
  RunEvent& event = run_.events[id];
  event.start = done.first_packet;
  event.busy_until = now_ + work.landing;
  event.end = event.busy_until + work.notify;
  last_ = std::max(last_, event.end);
  dma_spans_[static_cast<std::size_t>(event.core)].emplace_back(event.start, event.busy_until);
  events_.push({event.end, EventKind::kDone, id});
  release_successors(id, false, event.end);
}

// The item a queue would issue at this moment, if any. Books a wake-up when only time is missing.
bool Simulation::next_item(Queue& queue, int number, std::uint32_t& id) {
  if (in_order(number)) {
    if (queue.head == queue.items.size()) {
      return false;
    }
    id = queue.items[queue.head];
    if (agenda_.item(id).pending > 0 || agenda_.item(id).ready > now_) {
      return false;
    }
  } else {
    if (queue.ready.empty()) {
      return false;
    }
    id = queue.ready.top();
  }
  if (number >= kEngineCount && queue.in_flight >= machine_.core.dma.in_flight_per_queue) {
    return false;
  }
  return true;
}

void Simulation::wake(std::uint32_t number, Queue& queue, Ticks time) {
  if (queue.wake_at != time) {
    queue.wake_at = time;
    events_.push({time, EventKind::kWake, number});
  }
}

// List order: everything that `id` waited for has happened.
void Simulation::enqueue(std::uint32_t id) {
  if (agenda_.item(id).flexible) {
    choose_engine(id);
  }
  Queue& queue = queue_at(agenda_.item(id));
  queue.ready.push(id);
  queue.waiting += agenda_.work(id).interval;
}

// When `engine` would have done it, behind what is ready for it already.
Ticks Simulation::end_on(EngineKind engine, const EngineWork& work, std::uint32_t id) {
  const Item& item = agenda_.item(id);
  const Queue& queue = queue_at(item, engine);
  return std::max({now_, queue.free_at, ports_free_at(engine, id)}) + queue.waiting +
         work.completion + engines_of(item).table_load(engine, work);
}

// The compiler "selects the best engine based on engine workload" (AWS nki.isa.tensor_copy): the
// one that has it done first.
void Simulation::choose_engine(std::uint32_t id) {
  const Alternative& other = agenda_.alternative(id);
  const auto& own_work = std::get<EngineWork>(agenda_.work(id).of);
  const auto& other_work = std::get<EngineWork>(other.work.of);
  if (end_on(other.engine, other_work, id) < end_on(agenda_.item(id).engine, own_work, id)) {
    agenda_.take_alternative(id);
  }
}

// When no other engine uses what the item needs any more.
Ticks Simulation::ports_free_at(EngineKind user, std::uint32_t id) {
  const Item& item = agenda_.item(id);
  return item.ports ? engines_of(item).ports_free_at(user, agenda_.ports(id), now_) : 0;
}

void Simulation::issue_from(std::uint32_t number) {
  Queue& queue = queues_[number];
  std::uint32_t id = 0;
  while (next_item(queue, static_cast<int>(number % kQueues), id)) {
    if (queue.free_at > now_) {
      if (queue.free_at != kNeverFree) {
        wake(number, queue, queue.free_at);
      }
      return;
    }
    const Ticks ports_free = ports_free_at(agenda_.item(id).engine, id);
    if (ports_free > now_) {
      wake(number, queue, ports_free);
      return;
    }
    if (in_order(static_cast<int>(number % kQueues))) {
      ++queue.head;
    } else {
      queue.ready.pop();
      queue.waiting -= agenda_.work(id).interval;
    }
    if (meet(id)) {
      start(id);
    }
  }
}

// Several cores wait for each other at a rendezvous: the last to arrive starts all of them.
bool Simulation::meet(std::uint32_t id) {
  if (!agenda_.item(id).meets) {
    return true;
  }
  const std::int64_t rendezvous = agenda_.instruction(id).rendezvous();
  std::vector<Arrival>& arrived = meeting_[rendezvous];
  Queue& own = queue_at(agenda_.item(id));
  if (arrived.size() + 1 < participants_[rendezvous]) {
    arrived.push_back({id, own.free_at});
    own.free_at = kNeverFree;
    return false;
  }
  for (const auto& [other, free_since] : arrived) {
    Item& item = agenda_.item(other);
    queue_at(item).free_at = free_since;
    item.cause = static_cast<std::int32_t>(id);
    item.ready = now_;
    start(other);
    touch(item);
  }
  meeting_.erase(rendezvous);
  return true;
}

void Simulation::start(std::uint32_t id) {
  const Item& item = agenda_.item(id);
  Queue& queue = queue_at(item);
  RunEvent& event = run_.events[id];
  ++started_;
  event.issue = now_;
  event.cause = item.cause;
  // Idle time of its engine that ended with the arrival of what it waited for; what it then waited
  // for a free slot in flight is not the arrival's doing.
  event.stall = item.cause != kNoCause ? std::max<Ticks>(0, item.ready - queue.free_at) : 0;
  if (item.dma()) {
    start_dma(id, queue);
  } else {
    engines_of(item).start(item, agenda_.work(id), agenda_.ports(id), now_, event);
    queue.free_at = event.busy_until;
    last_ = std::max({last_, event.end, event.busy_until});
    release_successors(id, false, event.end);
  }
  if (item.leads) {
    release_successors(id, true, event.start);
  }
}

void Simulation::start_dma(std::uint32_t id, Queue& queue) {
  const Work& work = agenda_.work(id);
  queue.free_at = now_ + work.interval;
  ++queue.in_flight;
  events_.push({now_ + std::get<RingWork>(work.of).dispatch, EventKind::kArrive, id});
}

// From the semaphore of `from` to the start of `to` (Sync; hw.md §2.5).
Ticks Simulation::gap(const Item& from, const Item& to) const {
  const Sync& sync = machine_.core.sync;
  if (to.dma()) {
    return from.dma() ? 0 : ticks_from_ns(sync.dma_issue_ns);
  }
  if (from.dma()) {
    return 0;  // the notification is part of the transfer's end
  }
  if (from.queue == to.queue) {
    return ticks_from_ns(sync.same_engine_ns);
  }
  switch (to.gap) {
    case StartGap::kCopy:
      return ticks_from_ns(sync.copy_ns);
    case StartGap::kTranspose:
      return ticks_from_ns(sync.transpose_ns);
    default:
      return ticks_from_ns(sync.compute_ns);
  }
}

void Simulation::release_successors(std::uint32_t id, bool on_start, Ticks time) {
  const Item& item = agenda_.item(id);
  for (const Successor& link : agenda_.successors(id)) {
    if (link.on_start != on_start) {
      continue;
    }
    Item& successor = agenda_.item(link.item);
    const Ticks ready = time + (on_start ? 0 : gap(item, successor));
    if (ready > successor.ready) {
      successor.ready = ready;
      successor.cause = on_start ? successor.cause : static_cast<std::int32_t>(id);
    }
    if (--successor.pending > 0) {
      continue;
    }
    if (successor.ready > now_) {
      events_.push({successor.ready, EventKind::kReady, link.item});
      continue;
    }
    if (!in_order(successor.queue)) {
      enqueue(link.item);
    }
    touch(successor);
  }
}

void Simulation::throw_deadlock() const {
  std::string waiting;
  SourceLine where;
  for (const auto& [rendezvous, arrived] : meeting_) {
    for (const auto& [id, free_since] : arrived) {
      const SourceLine line = program_.source_line(agenda_.instruction(id).position);
      waiting +=
          fmt::format("{}core {} waits at {}:{} ({})", waiting.empty() ? "" : "; ",
                      agenda_.item(id).core, line.file, line.line, agenda_.instruction(id).name());
      where = line;
    }
  }
  Error error(ErrorKind::kDeadlock, "deadlock",
              {.rule = "every rendezvous is joined by each of its cores",
               .here = waiting.empty() ? "instructions wait for each other" : waiting,
               .device = "the cores wait for ever"});
  error.set_where(where);
  throw error;
}

void Simulation::finish() {
  for (std::size_t core = 0; core < streams_.size(); ++core) {
    CoreRun& result = run_.per_core[core];
    engines_[core].report(result);
    result.dma_active = union_length(std::move(dma_spans_[core]));
    result.sbuf_peak_bytes = streams_[core].sbuf_peak_bytes;
    result.psum_peak_banks = streams_[core].psum_peak_banks;
  }
  run_.launch_time = ticks_from_ns(machine_.launch.kernel_fixed_ns);
  run_.time = last_ + run_.launch_time;
}

}  // namespace

void simulate(const Program& program, const Machine& machine, std::span<const Stream> streams,
              Run& run) {
  Simulation(program, machine, streams, run).run();
}

}  // namespace trena
