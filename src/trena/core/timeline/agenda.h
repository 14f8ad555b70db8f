// What the clock has to do: the items of all cores in small records, made in one pass over the
// instructions. Those are many and large, so that nothing afterwards looks at them again without
// need.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "trena/core/run.h"
#include "trena/core/stream.h"
#include "trena/core/timeline/engine_ports.h"

namespace trena {

// Queues of one core: the engines', then the DMA triggers'.
constexpr int kLoadQueue = kEngineCount;
constexpr int kStoreQueue = kEngineCount + 1;
constexpr int kSpillQueue = kEngineCount + 2;
constexpr int kRequestedQueue = kEngineCount + 3;  // + engine that the kernel asked to trigger
static_assert(kRequestedQueue + kEngineCount == kQueuesPerCore);

// What the clock touches again and again.
struct Item {
  Ticks ready = 0;  // as far as its waits are over
  std::int32_t cause = kNoCause;
  std::uint32_t pending = 0;  // waits that are not over
  std::int16_t core = 0;
  std::int16_t queue = 0;  // of its core
  EngineKind engine = EngineKind::kSync;
  StartGap gap = StartGap::kCompute;
  bool meets : 1 = false;     // has a rendezvous
  bool ports : 1 = false;     // shares something with another engine, see PortKeys
  bool flexible : 1 = false;  // its engine is chosen when it is ready
  bool leads : 1 = false;     // somebody waits for its start

  bool dma() const { return queue >= kEngineCount; }
  std::size_t global_queue() const {
    return static_cast<std::size_t>(core * kQueuesPerCore + queue);
  }
};
static_assert(sizeof(Item) <= 24);

// What it costs, as far as the clock asks when the item starts.
struct EngineWork {
  Ticks completion = 0;
  std::string_view activation_table;
  Ticks reroute = 0;
  std::int32_t route = -1;
  std::int32_t alternative = -1;  // of a flexible item: which of Agenda's
};
struct RingWork {
  Ticks dispatch = 0;  // from the trigger to the rings
  Ticks landing = 0;   // from the last packet to the bytes in place …
  Ticks notify = 0;    // … and on to the semaphore
  double busiest_engine_ns = 0;
  double hbm_bytes = 0;
  int service_class = 0;
};
struct Work {
  Ticks interval = 0;
  std::variant<EngineWork, TensorWork, RingWork> of;
};
static_assert(sizeof(Work) <= 64);

// Another engine that may run an item instead.
struct Alternative {
  EngineKind engine;
  Work work;
  PortKeys ports;
  std::optional<Evidence> evidence;
};

struct Successor {
  std::uint32_t item;
  bool on_start;
};

class Agenda {
 public:
  // Appends one event per item to run.events, as far as it is known, and counts in run.per_core
  // what the items do.
  Agenda(const Machine& machine, std::span<const Stream> streams, Run& run);

  std::size_t size() const { return items_.size(); }
  Item& item(std::uint32_t id) { return items_[id]; }
  const Item& item(std::uint32_t id) const { return items_[id]; }
  const Work& work(std::uint32_t id) const { return work_[id]; }
  const PortKeys& ports(std::uint32_t id) const { return ports_[id]; }
  std::span<const Successor> successors(std::uint32_t id) const {
    return {successors_.data() + successor_first_[id],
            successors_.data() + successor_first_[id + 1]};
  }
  const Instruction& instruction(std::uint32_t id) const { return *stream_item(id).instruction; }

  // Of a flexible item.
  const Alternative& alternative(std::uint32_t id) const;
  void take_alternative(std::uint32_t id);

 private:
  void add(std::size_t core, const StreamItem& stream_item);
  void add_alternative(Item& item, const Instruction& instruction, EngineWork& work);
  void link();
  const StreamItem& stream_item(std::uint32_t id) const;

  const Machine& machine_;
  std::span<const Stream> streams_;
  Run& run_;
  std::vector<std::size_t> first_of_core_;
  std::vector<Item> items_;
  std::vector<Work> work_;       // by item
  std::vector<PortKeys> ports_;  // by item
  std::vector<Alternative> alternatives_;
  std::vector<std::uint32_t> successor_first_;
  std::vector<Successor> successors_;
  AccessList scratch_;
};

}  // namespace trena
