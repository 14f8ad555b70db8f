#include "trena/core/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <queue>
#include <unordered_map>

#include "trena/core/dma_rings.h"
#include "trena/core/tensor_clock.h"
#include "trena/isa/dma/trigger.h"

namespace trena {
namespace {

// Queues of one core: the engines', then the DMA triggers'.
constexpr int kLoadQueue = kEngineCount;
constexpr int kStoreQueue = kEngineCount + 1;
constexpr int kSpillQueue = kEngineCount + 2;
constexpr int kRequestedQueue = kEngineCount + 3;  // + engine that the kernel asked to trigger
constexpr int kQueues = kQueuesPerCore;
static_assert(kRequestedQueue + kEngineCount == kQueues);
constexpr int kDmaQueues = kQueues - kEngineCount;

constexpr Ticks kNeverFree = std::numeric_limits<Ticks>::max();

// What the simulation touches again and again: one cache line. The rest of an item, its cost and
// its instruction, is looked at when it starts.
struct Item {
  Ticks ready = 0;
  Ticks issue = 0;
  Ticks start = 0;
  Ticks busy_until = 0;
  Ticks end = 0;
  Ticks stall = 0;
  std::int32_t cause = kNoCause;
  std::uint32_t pending = 0;
  std::int16_t core = 0;
  std::int16_t queue = 0;  // of its core
  EngineKind engine = EngineKind::kSync;
  StartGap gap = StartGap::kCompute;
  bool meets : 1 = false;     // has a rendezvous
  bool ports : 1 = false;     // shares something with another engine, see PortKeys
  bool flexible : 1 = false;  // its engine is chosen when it is ready

  bool dma() const { return queue >= kEngineCount; }
};
static_assert(sizeof(Item) <= 64);

// What engines of a core use in turns: paths to a memory, and banks of PSUM. 0: nothing.
using PortKeys = std::array<std::int32_t, 4>;
constexpr std::int32_t kSbufPort = 1;  // of vector and gpsimd
constexpr std::int32_t kPsumPort = 2;  // of vector and scalar
constexpr std::int32_t kFirstBank = 3;

bool share_port(const PortKeys& a, const PortKeys& b) {
  return std::any_of(a.begin(), a.end(), [&](std::int32_t key) {
    return key != 0 && std::find(b.begin(), b.end(), key) != b.end();
  });
}

struct Queue {
  std::vector<std::uint32_t> items;  // in program order
  std::size_t head = 0;              // program order: the next to issue
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>>
      ready;          // list order
  Ticks waiting = 0;  // list order: what the ready ones will occupy it for
  Ticks free_at = 0;
  Ticks wake_at = -1;  // a wake-up is on its way
  std::int64_t in_flight = 0;
  Ticks last_end = 0;  // of the union of activity
  Ticks active = 0;
  PortKeys held{};  // by the last item, until …
  Ticks held_until = 0;
  std::int32_t route = -1;  // of the last block transpose, which began at …
  Ticks route_start = 0;
  std::string_view table;  // resident activation functions
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

struct Successor {
  std::uint32_t item;
  bool on_start;
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
  void build_items();
  void build_successors();
  int queue_of(const StreamItem& item, const Cost& cost, EngineKind engine) const;
  PortKeys ports_of(const Instruction& instruction, EngineKind engine);
  std::size_t number_of(const Item& item) const {
    return static_cast<std::size_t>(&item - items_.data());
  }
  const Cost& cost_of(const Item& item) const { return costs_[number_of(item)]; }
  const Instruction& instruction_of(const Item& item) const {
    return *instructions_[number_of(item)];
  }
  Queue& queue_at(const Item& item) {
    return queues_[static_cast<std::size_t>(item.core * kQueues + item.queue)];
  }
  bool in_order(int queue) const {
    return run_.options.schedule == SchedulePolicy::kProgram || queue >= kEngineCount;
  }

  void handle(const Event& event);
  void ring_step(DmaRings::Step step);
  void touch(std::uint32_t queue) { touched_.push_back(queue); }
  void issue_from(std::uint32_t queue);
  bool next_item(Queue& queue, int number, std::uint32_t& id);
  Ticks ports_free_at(EngineKind user, const Item& item) const;
  void enqueue(std::uint32_t id);
  void choose_engine(Item& item);
  Ticks end_on(EngineKind engine, const Cost& cost, const Item& item) const;
  void wake(std::uint32_t number, Queue& queue, Ticks time);
  bool meet(std::uint32_t id);
  void start(std::uint32_t id);
  void start_engine(Item& item, Queue& queue);
  void start_dma(std::uint32_t id, Item& item, Queue& queue);
  void release_successors(std::uint32_t id, bool on_start, Ticks time);
  Ticks gap(const Item& from, const Item& to) const;
  void finish();
  void count(const Item& item, CoreRun& core, const StreamItem& stream_item);
  [[noreturn]] void throw_deadlock() const;

  const Program& program_;
  const Machine& machine_;
  std::span<const Stream> streams_;
  Run& run_;
  std::vector<Item> items_;
  std::vector<Cost> costs_;                       // by item
  std::vector<const Instruction*> instructions_;  // by item
  std::vector<std::size_t> first_of_core_;
  std::vector<std::uint32_t> successor_first_;
  std::vector<Successor> successors_;
  std::vector<Queue> queues_;
  std::vector<PortKeys> ports_;  // by item
  std::vector<float> limits_;    // by item: of a product, what TensorClock says
  AccessList scratch_;
  std::vector<TensorClock> tensor_;
  DmaRings rings_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<std::uint32_t> touched_;
  std::map<std::int64_t, std::vector<Arrival>> meeting_;  // rendezvous → who has arrived
  std::unordered_map<std::int64_t, std::size_t> participants_;
  std::vector<std::vector<std::pair<Ticks, Ticks>>> dma_spans_;  // per core
  Ticks now_ = 0;
  std::size_t started_ = 0;
};

Simulation::Simulation(const Program& program, const Machine& machine,
                       std::span<const Stream> streams, Run& run)
    : program_(program),
      machine_(machine),
      streams_(streams),
      run_(run),
      queues_(streams.size() * kQueues),
      tensor_(streams.size(), TensorClock(machine)),
      rings_(machine, static_cast<int>(streams.size()), kDmaQueues),
      dma_spans_(streams.size()) {
  build_items();
  build_successors();
}

int Simulation::queue_of(const StreamItem& item, const Cost& cost, EngineKind engine) const {
  if (!item.instruction->is_dma()) {
    return static_cast<int>(engine);
  }
  if (item.insertion == Insertion::kSpill) {
    return kSpillQueue;
  }
  if (cost.dma.trigger_requested) {
    return kRequestedQueue + static_cast<int>(engine);
  }
  return cost.dma.to_hbm ? kStoreQueue : kLoadQueue;
}

// hw.md §1.5: on v2 vector and gpsimd never access SBUF at once, nor vector and scalar PSUM; later
// generations only take turns at one PSUM bank. A tensor that Placement puts somewhere has its
// banks to itself.
PortKeys Simulation::ports_of(const Instruction& instruction, EngineKind engine) {
  PortKeys keys{};
  const bool vector = engine == EngineKind::kVector;
  const bool scalar = engine == EngineKind::kScalar;
  if (instruction.is_dma() || (!vector && !scalar && engine != EngineKind::kGpsimd)) {
    return keys;
  }
  const Psum& psum = machine_.core.psum;
  std::size_t count = 0;
  const auto add = [&](std::int64_t key) {
    if (count < keys.size() &&
        std::find(keys.begin(), keys.end(), static_cast<std::int32_t>(key)) == keys.end()) {
      keys[count++] = static_cast<std::int32_t>(key);
    }
  };
  scratch_.clear();
  instruction.access(scratch_);
  for (const Access& access : scratch_) {
    const Buffer& buffer = *access.tensor->buffer();
    if (buffer.space == Space::kSbuf && !scalar && machine_.core.sbuf.vector_gpsimd_exclusive) {
      add(kSbufPort);
    }
    if (buffer.space != Space::kPsum || (!vector && !scalar)) {
      continue;
    }
    if (psum.vector_scalar_exclusive) {
      add(kPsumPort);
    } else if (psum.same_bank_exclusive) {
      const std::int64_t first = buffer.address
                                     ? buffer.address->offset_bytes / psum.bank_bytes
                                     : psum.banks * (1 + static_cast<std::int64_t>(buffer.id));
      add(kFirstBank + first + access.tensor->free_offset_bytes() / psum.bank_bytes);
    }
  }
  return keys;
}

void Simulation::build_items() {
  std::size_t count = 0;
  for (const Stream& stream : streams_) {
    first_of_core_.push_back(count);
    count += stream.items.size();
  }
  first_of_core_.push_back(count);
  items_.reserve(count);
  costs_.reserve(count);
  instructions_.reserve(count);
  ports_.reserve(count);
  limits_.assign(count, 1.0f);
  for (std::size_t core = 0; core < streams_.size(); ++core) {
    for (const StreamItem& stream_item : streams_[core].items) {
      const Instruction& instruction = *stream_item.instruction;
      Item item;
      item.core = static_cast<std::int16_t>(core);
      item.engine = stream_item.engine;
      item.meets = instruction.rendezvous() >= 0;
      costs_.push_back(instruction.cost(machine_));
      item.gap = costs_.back().gap;
      ports_.push_back(ports_of(instruction, item.engine));
      item.ports = ports_.back()[0] != 0;
      item.flexible = run_.options.schedule == SchedulePolicy::kList &&
                      instruction.alternative(machine_).has_value();
      instructions_.push_back(&instruction);
      item.queue = static_cast<std::int16_t>(queue_of(stream_item, costs_.back(), item.engine));
      const auto id = static_cast<std::uint32_t>(items_.size());
      items_.push_back(item);
      queue_at(items_.back()).items.push_back(id);
      if (item.meets) {
        ++participants_[instruction.rendezvous()];
      }
    }
  }
}

void Simulation::build_successors() {
  successor_first_.assign(items_.size() + 2, 0);
  const auto for_each_wait = [&](auto&& fn) {
    for (std::size_t core = 0; core < streams_.size(); ++core) {
      const std::size_t base = first_of_core_[core];
      for (std::size_t i = 0; i < streams_[core].items.size(); ++i) {
        for (const Wait wait : streams_[core].waits.of(i)) {
          fn(base + wait.item(), static_cast<std::uint32_t>(base + i), wait.for_start());
        }
      }
    }
  };
  for_each_wait([&](std::size_t earlier, std::uint32_t later, bool) {
    ++successor_first_[earlier + 2];
    ++items_[later].pending;
  });
  for (std::size_t i = 2; i < successor_first_.size(); ++i) {
    successor_first_[i] += successor_first_[i - 1];
  }
  successors_.resize(successor_first_.back());
  for_each_wait([&](std::size_t earlier, std::uint32_t later, bool on_start) {
    successors_[successor_first_[earlier + 1]++] = {later, on_start};
  });
}

void Simulation::run() {
  for (std::size_t id = 0; id < items_.size(); ++id) {
    Item& item = items_[id];
    if (item.pending == 0 && !in_order(item.queue)) {
      enqueue(static_cast<std::uint32_t>(id));
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
  if (started_ != items_.size()) {
    throw_deadlock();
  }
  finish();
}

void Simulation::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::kReady: {
      Item& item = items_[event.id];
      if (!in_order(item.queue)) {
        enqueue(event.id);
      }
      touch(static_cast<std::uint32_t>(item.core * kQueues + item.queue));
      return;
    }
    case EventKind::kArrive: {
      Item& item = items_[event.id];
      const DmaService service = dma_service(machine_, cost_of(item).dma);
      const double hbm =
          static_cast<double>(cost_of(item).dma.hbm_read_bytes + cost_of(item).dma.hbm_write_bytes);
      const int asked = cost_of(item).dma.priority;
      const int last_class = static_cast<int>(machine_.core.dma.service_classes) - 1;
      rings_.push(item.core * kDmaQueues + item.queue - kEngineCount,
                  {event.id, service.busiest_engine_ns, hbm, asked >= 0 ? asked : last_class},
                  now_);
      return;
    }
    case EventKind::kDone: {
      Item& item = items_[event.id];
      --queue_at(item).in_flight;
      touch(static_cast<std::uint32_t>(item.core * kQueues + item.queue));
      return;
    }
    case EventKind::kWake:
      queues_[event.id].wake_at = -1;
      touch(event.id);
      return;
  }
}

// A transfer's last packet has left its engine.
void Simulation::ring_step(DmaRings::Step step) {
  const DmaRings::Done done = rings_.pop(step.queue, now_);
  const auto id = static_cast<std::uint32_t>(done.id);
  Item& item = items_[id];
  const Dma& dma = machine_.core.dma;
  const bool store = cost_of(item).dma.to_hbm;
  const Ticks landed = now_ + ticks_from_ns(store ? dma.store_base_ns : dma.load_base_ns);
  const DmaMode& mode = dma_mode(machine_, cost_of(item).dma.dge, store);
  item.start = done.first_packet;
  item.busy_until = landed;
  item.end = landed + ticks_from_ns(mode.notify_ns);
  dma_spans_[static_cast<std::size_t>(item.core)].emplace_back(item.start, landed);
  events_.push({item.end, EventKind::kDone, id});
  release_successors(id, false, item.end);
}

// The item a queue would issue at this moment, if any. Books a wake-up when only time is missing.
bool Simulation::next_item(Queue& queue, int number, std::uint32_t& id) {
  if (in_order(number)) {
    if (queue.head == queue.items.size()) {
      return false;
    }
    id = queue.items[queue.head];
    if (items_[id].pending > 0 || items_[id].ready > now_) {
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
  Item& item = items_[id];
  if (item.flexible) {
    choose_engine(item);
  }
  Queue& queue = queue_at(item);
  queue.ready.push(id);
  queue.waiting += cost_of(item).interval;
}

// When `engine` would have done it, behind what is ready for it already.
Ticks Simulation::end_on(EngineKind engine, const Cost& cost, const Item& item) const {
  const Queue& queue =
      queues_[static_cast<std::size_t>(item.core * kQueues + static_cast<int>(engine))];
  const bool other_table = !cost.activation_table.empty() && cost.activation_table != queue.table;
  return std::max({now_, queue.free_at, item.ports ? ports_free_at(engine, item) : 0}) +
         queue.waiting + cost.completion +
         (other_table ? machine_.ticks(EngineKind::kScalar, machine_.core.scalar.table_load_cycles)
                      : 0);
}

// The compiler "selects the best engine based on engine workload" (AWS nki.isa.tensor_copy): the
// one that has it done first.
void Simulation::choose_engine(Item& item) {
  const Instruction::Alternative other = *instruction_of(item).alternative(machine_);
  if (end_on(other.engine, other.cost, item) >= end_on(item.engine, cost_of(item), item)) {
    return;
  }
  const std::size_t number = number_of(item);
  costs_[number] = other.cost;
  item.engine = other.engine;
  item.queue = static_cast<std::int16_t>(other.engine);
  ports_[number] = ports_of(instruction_of(item), other.engine);
  item.ports = ports_[number][0] != 0;
}

// When no other engine uses what `item` needs any more.
Ticks Simulation::ports_free_at(EngineKind user, const Item& item) const {
  Ticks free_at = 0;
  for (const EngineKind engine : {EngineKind::kVector, EngineKind::kScalar, EngineKind::kGpsimd}) {
    const Queue& other =
        queues_[static_cast<std::size_t>(item.core * kQueues + static_cast<int>(engine))];
    if (engine != user && other.held_until > now_ &&
        share_port(other.held, ports_[number_of(item)])) {
      free_at = std::max(free_at, other.held_until);
    }
  }
  return free_at;
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
    const Ticks ports_free = items_[id].ports ? ports_free_at(items_[id].engine, items_[id]) : 0;
    if (ports_free > now_) {
      wake(number, queue, ports_free);
      return;
    }
    if (in_order(static_cast<int>(number % kQueues))) {
      ++queue.head;
    } else {
      queue.ready.pop();
      queue.waiting -= cost_of(items_[id]).interval;
    }
    if (meet(id)) {
      start(id);
    }
  }
}

// Several cores wait for each other at a rendezvous: the last to arrive starts all of them.
bool Simulation::meet(std::uint32_t id) {
  if (!items_[id].meets) {
    return true;
  }
  const std::int64_t rendezvous = instruction_of(items_[id]).rendezvous();
  std::vector<Arrival>& arrived = meeting_[rendezvous];
  if (arrived.size() + 1 < participants_[rendezvous]) {
    arrived.push_back({id, queue_at(items_[id]).free_at});
    queue_at(items_[id]).free_at = kNeverFree;
    return false;
  }
  for (const auto& [other, free_since] : arrived) {
    queue_at(items_[other]).free_at = free_since;
    items_[other].cause = static_cast<std::int32_t>(id);
    items_[other].ready = now_;
    start(other);
    touch(static_cast<std::uint32_t>(items_[other].core * kQueues + items_[other].queue));
  }
  meeting_.erase(rendezvous);
  return true;
}

void Simulation::start(std::uint32_t id) {
  Item& item = items_[id];
  Queue& queue = queue_at(item);
  ++started_;
  item.issue = now_;
  // Idle time of its engine that ended with the arrival of what it waited for; what it then waited
  // for a free slot in flight is not the arrival's doing.
  item.stall = item.cause != kNoCause ? std::max<Ticks>(0, item.ready - queue.free_at) : 0;
  if (item.dma()) {
    start_dma(id, item, queue);
  } else {
    start_engine(item, queue);
    release_successors(id, false, item.end);
  }
  release_successors(id, true, item.start);
}

void Simulation::start_engine(Item& item, Queue& queue) {
  item.start = now_;
  if (cost_of(item).tensor.passes > 0) {
    const TensorClock::Product product =
        tensor_[static_cast<std::size_t>(item.core)].run(cost_of(item).tensor, now_);
    item.busy_until = product.busy_until;
    item.end = product.end;
    limits_[number_of(item)] = static_cast<float>(product.limit);
  } else {
    Ticks begin = now_;
    CoreRun& core = run_.per_core[static_cast<std::size_t>(item.core)];
    if (!cost_of(item).activation_table.empty() && cost_of(item).activation_table != queue.table) {
      const Ticks load =
          machine_.ticks(EngineKind::kScalar, machine_.core.scalar.table_load_cycles);
      queue.table = cost_of(item).activation_table;
      core.table_loads += 1;
      core.table_load_time += load;
      begin += load;
    }
    if (cost_of(item).route >= 0) {
      if (queue.route >= 0 && queue.route != cost_of(item).route) {
        begin = std::max(begin, queue.route_start + cost_of(item).reroute);
      }
      queue.route = cost_of(item).route;
      queue.route_start = begin;
    }
    item.busy_until = begin + cost_of(item).interval;
    item.end = begin + cost_of(item).completion;
  }
  queue.free_at = item.busy_until;
  if (item.ports) {
    queue.held = ports_[number_of(item)];
    queue.held_until = item.busy_until;
  }
  const Ticks until = std::max(item.end, item.busy_until);
  queue.active += std::max<Ticks>(0, until - std::max(item.start, queue.last_end));
  queue.last_end = std::max(queue.last_end, until);
}

void Simulation::start_dma(std::uint32_t id, Item& item, Queue& queue) {
  const DmaWork& work = cost_of(item).dma;
  const DmaMode& mode = dma_mode(machine_, work.dge, work.to_hbm);
  queue.free_at = now_ + cost_of(item).interval;
  ++queue.in_flight;
  events_.push({now_ + ticks_from_ns(mode.dispatch_ns), EventKind::kArrive, id});
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
  const Item& item = items_[id];
  for (std::uint32_t s = successor_first_[id]; s < successor_first_[id + 1]; ++s) {
    if (successors_[s].on_start != on_start) {
      continue;
    }
    const std::uint32_t later = successors_[s].item;
    Item& successor = items_[later];
    const Ticks ready = time + (on_start ? 0 : gap(item, successor));
    if (ready > successor.ready) {
      successor.ready = ready;
      successor.cause = on_start ? successor.cause : static_cast<std::int32_t>(id);
    }
    if (--successor.pending > 0) {
      continue;
    }
    if (successor.ready > now_) {
      events_.push({successor.ready, EventKind::kReady, later});
      continue;
    }
    if (!in_order(successor.queue)) {
      enqueue(later);
    }
    touch(static_cast<std::uint32_t>(successor.core * kQueues + successor.queue));
  }
}

void Simulation::throw_deadlock() const {
  std::string waiting;
  SourceLine where;
  for (const auto& [rendezvous, arrived] : meeting_) {
    for (const auto& [id, free_since] : arrived) {
      const SourceLine line = program_.source_line(instruction_of(items_[id]).position);
      waiting +=
          fmt::format("{}core {} waits at {}:{} ({})", waiting.empty() ? "" : "; ", items_[id].core,
                      line.file, line.line, instruction_of(items_[id]).name());
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

void Simulation::count(const Item& item, CoreRun& core, const StreamItem& stream_item) {
  const Activity& activity = cost_of(item).activity;
  const double flops = 2.0 * static_cast<double>(activity.multiply_accumulates) *
                       flop_multiplier(machine_, activity.matmul_dtype);
  core.hardware_flops += flops;
  if (activity.transpose) {
    core.transpose_multiply_accumulates += activity.multiply_accumulates;
  } else {
    core.multiply_accumulates += activity.multiply_accumulates;
    core.model_flops += flops;
  }
  if (!item.dma()) {
    core.engines[static_cast<std::size_t>(item.queue)].instructions += 1;
    return;
  }
  const DmaWork& dma = cost_of(item).dma;
  core.dma_transfers += 1;
  core.descriptors += dma.descriptors;
  core.packet_time += ticks_from_ns(dma_service(machine_, dma).all_engines_ns);
  core.hbm_read_bytes += dma.hbm_read_bytes;
  core.hbm_write_bytes += dma.hbm_write_bytes;
  if (stream_item.insertion != Insertion::kRecorded) {
    core.spilled_bytes += dma.hbm_read_bytes + dma.hbm_write_bytes;
  }
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

void Simulation::finish() {
  Ticks last = 0;
  run_.events.reserve(items_.size());
  for (std::size_t id = 0; id < items_.size(); ++id) {
    const Item& item = items_[id];
    const auto core_index = static_cast<std::size_t>(item.core);
    const StreamItem& stream_item = streams_[core_index].items[id - first_of_core_[core_index]];
    count(item, run_.per_core[core_index], stream_item);
    last = std::max({last, item.end, item.busy_until});
    RunEvent event;
    event.name = instruction_of(item).name();
    event.core = static_cast<std::int16_t>(item.core);
    event.engine = item.engine;
    event.dma = item.dma();
    event.queue = static_cast<std::int16_t>(item.queue);
    event.spill = stream_item.insertion != Insertion::kRecorded;
    event.evidence = cost_of(item).evidence;
    event.position = instruction_of(item).position;
    event.issue = item.issue;
    event.start = item.start;
    event.busy_until = item.busy_until;
    event.end = item.end;
    event.cause = item.cause;
    event.stall = item.stall;
    event.bytes = std::max(cost_of(item).dma.hbm_read_bytes, cost_of(item).dma.hbm_write_bytes);
    event.label = instruction_of(item).label;
    if (cost_of(item).tensor.passes > 0) {
      const TensorClock::Shown shown = tensor_[core_index].shown(cost_of(item).tensor, limits_[id]);
      event.load_weights = shown.load_weights;
      event.multiply = shown.multiply;
    } else if (item.dma()) {
      event.trigger = cost_of(item).dma.trigger;
      event.packets = ticks_from_ns(dma_service(machine_, cost_of(item).dma).all_engines_ns);
      event.packet_count = cost_of(item).dma.descriptors;
    }
    run_.events.push_back(std::move(event));
  }
  for (std::size_t core = 0; core < streams_.size(); ++core) {
    CoreRun& result = run_.per_core[core];
    for (int engine = 0; engine < kEngineCount; ++engine) {
      result.engines[static_cast<std::size_t>(engine)].active =
          queues_[core * kQueues + static_cast<std::size_t>(engine)].active;
    }
    result.dma_active = union_length(std::move(dma_spans_[core]));
    result.sbuf_peak_bytes = streams_[core].sbuf_peak_bytes;
    result.psum_peak_banks = streams_[core].psum_peak_banks;
  }
  run_.launch_time = ticks_from_ns(machine_.launch.kernel_fixed_ns);
  run_.time = last + run_.launch_time;
}

}  // namespace

void simulate(const Program& program, const Machine& machine, std::span<const Stream> streams,
              Run& run) {
  Simulation(program, machine, streams, run).run();
}

}  // namespace trena
