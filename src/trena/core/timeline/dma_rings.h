// The DMA engines and HBM in time: queues of transfers whose heads share the engines of their core
// and the bandwidth of their HBM stack (hw.md §1.7, §2.7).
//
// A queue is FIFO. The heads of a core's queues take turns packet by packet on its engines, which
// is modelled as an equal share, of those in the first service class if there are classes (hw.md
// §1.7); then no core draws more than Hbm::core_gbs and no stack more than Hbm::stack_gbs.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "trena/isa/cost.h"
#include "trena/machine/machine.h"

namespace trena {

class DmaRings {
 public:
  DmaRings(const Machine& machine, int cores, int queues_per_core);

  struct Transfer {
    std::uint64_t id = 0;
    double work_ns = 0;     // of the busiest engine, alone and at full rate
    double hbm_bytes = 0;   // that cross the stack
    int service_class = 0;  // a lower class moves first (v4; hw.md §1.7)
  };
  struct Step {
    Ticks time = 0;
    int queue = 0;  // global queue number
  };

  // The next transfer to leave its queue, if nothing else arrives before.
  std::optional<Step> next() const;
  void push(int queue, const Transfer& transfer, Ticks now);
  // The head of `queue` is done at `now`: returns it and when its first packet moved.
  struct Done {
    std::uint64_t id;
    Ticks first_packet;
  };
  Done pop(int queue, Ticks now);

 private:
  struct Queue {
    Transfer head;                 // moving, while the queue is busy
    std::deque<Transfer> waiting;  // behind it
    double remaining_ns = 0;
    double rate = 0;  // ns of work per ns
    std::optional<Ticks> first_packet;
  };
  // Busy queues of the cores [first, past), in order of their numbers.
  template <typename Fn>
  void for_each_busy(std::size_t first, std::size_t past, Fn&& fn);
  std::size_t core_of(std::size_t queue) const { return queue / queues_per_core_; }

  void begin(std::size_t number, const Transfer& transfer);
  void advance(Ticks now);
  void share();
  void give_turns(std::size_t core);
  void scale_to(std::size_t first_core, std::size_t past_core, double cap_gbs);

  std::size_t queues_per_core_;
  std::size_t cores_per_stack_;
  double core_gbs_;
  double stack_gbs_;
  std::vector<Queue> queues_;
  std::vector<std::uint64_t> busy_;  // per core: a bit for each of its queues
  Ticks now_ = 0;
  std::optional<Step> next_;
};

// How long the busiest engine needs, its packets at their spacing; and the packet time
// (Dma::packet_time_ns) of all engines together. Both with the transfer's slowdown.
struct DmaService {
  double busiest_engine_ns = 0;
  double all_engines_ns = 0;
};
DmaService dma_service(const Machine& machine, const DmaWork& work);

}  // namespace trena
