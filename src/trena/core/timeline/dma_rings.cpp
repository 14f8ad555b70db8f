#include "trena/core/timeline/dma_rings.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace trena {

DmaRings::DmaRings(const Machine& machine, int cores, int queues_per_core)
    : queues_per_core_(static_cast<std::size_t>(queues_per_core)),
      cores_per_stack_(
          static_cast<std::size_t>(std::max<std::int64_t>(1, machine.hbm.cores_per_stack))),
      core_gbs_(machine.hbm.core_gbs),
      stack_gbs_(machine.hbm.stack_gbs),
      queues_(static_cast<std::size_t>(cores * queues_per_core)),
      busy_(static_cast<std::size_t>(cores), 0) {}

std::optional<DmaRings::Step> DmaRings::next() const { return next_; }

template <typename Fn>
void DmaRings::for_each_busy(std::size_t first, std::size_t past, Fn&& fn) {
  for (std::size_t core = first; core < past; ++core) {
    for (std::uint64_t rest = busy_[core]; rest != 0; rest &= rest - 1) {
      const std::size_t number =
          core * queues_per_core_ + static_cast<std::size_t>(std::countr_zero(rest));
      fn(queues_[number], number);
    }
  }
}

void DmaRings::advance(Ticks now) {
  if (now == now_) {
    return;
  }
  const double elapsed_ns = ns_from_ticks(now - now_);
  for_each_busy(0, busy_.size(), [&](Queue& queue, std::size_t) {
    queue.remaining_ns = std::max(0.0, queue.remaining_ns - queue.rate * elapsed_ns);
  });
  now_ = now;
}

// One core's queues: equal turns among the heads of the first class that has any.
void DmaRings::give_turns(std::size_t core) {
  int moving = 0;
  int first_class = std::numeric_limits<int>::max();
  for_each_busy(core, core + 1, [&](const Queue& queue, std::size_t) {
    const int service_class = queue.head.service_class;
    moving = service_class < first_class ? 1 : moving + (service_class == first_class ? 1 : 0);
    first_class = std::min(first_class, service_class);
  });
  for_each_busy(core, core + 1, [&](Queue& queue, std::size_t) {
    const bool moves = queue.head.service_class == first_class;
    queue.rate = moves ? 1.0 / moving : 0.0;
    if (moves && !queue.first_packet) {
      queue.first_packet = now_;
    }
  });
}

void DmaRings::scale_to(std::size_t first_core, std::size_t past_core, double cap_gbs) {
  double demand = 0;
  for_each_busy(first_core, past_core, [&](const Queue& queue, std::size_t) {
    if (queue.head.work_ns > 0) {
      demand += queue.rate * queue.head.hbm_bytes / queue.head.work_ns;
    }
  });
  if (demand > cap_gbs) {
    for_each_busy(first_core, past_core,
                  [&](Queue& queue, std::size_t) { queue.rate *= cap_gbs / demand; });
  }
}

// Rates of all heads, and the first of them to finish.
void DmaRings::share() {
  for (std::size_t core = 0; core < busy_.size(); ++core) {
    give_turns(core);
    scale_to(core, core + 1, core_gbs_);
  }
  for (std::size_t first = 0; first < busy_.size(); first += cores_per_stack_) {
    scale_to(first, std::min(first + cores_per_stack_, busy_.size()), stack_gbs_);
  }
  next_.reset();
  for_each_busy(0, busy_.size(), [&](const Queue& queue, std::size_t number) {
    if (queue.rate > 0) {
      const Ticks done =
          now_ + static_cast<Ticks>(std::llround(queue.remaining_ns / queue.rate * kTicksPerNs));
      if (!next_ || done < next_->time) {
        next_ = Step{done, static_cast<int>(number)};
      }
    }
  });
}

void DmaRings::begin(std::size_t number, const Transfer& transfer) {
  busy_[core_of(number)] |= std::uint64_t{1} << number % queues_per_core_;
  queues_[number].head = transfer;
  queues_[number].remaining_ns = transfer.work_ns;
}

void DmaRings::push(int queue, const Transfer& transfer, Ticks now) {
  advance(now);
  const auto number = static_cast<std::size_t>(queue);
  const bool busy = (busy_[core_of(number)] >> number % queues_per_core_ & 1u) != 0;
  if (busy) {
    queues_[number].waiting.push_back(transfer);
    return;
  }
  begin(number, transfer);
  share();
}

DmaRings::Done DmaRings::pop(int number, Ticks now) {
  advance(now);
  const auto index = static_cast<std::size_t>(number);
  Queue& queue = queues_[index];
  const Done done{queue.head.id, queue.first_packet.value_or(now)};
  queue.first_packet.reset();
  if (queue.waiting.empty()) {
    busy_[core_of(index)] &= ~(std::uint64_t{1} << index % queues_per_core_);
  } else {
    begin(index, queue.waiting.front());
    queue.waiting.pop_front();
  }
  share();
  return done;
}

DmaService dma_service(const Machine& machine, const DmaWork& work) {
  const Dma& dma = machine.core.dma;
  const double packet_ns = dma.packet_time_ns(work.descriptor_bytes) * work.slowdown;
  // Packets back to back would beat the documented rate of an engine (DOC-002, DOC-009).
  const double bytes_ns =
      static_cast<double>(work.descriptor_bytes) / dma.engine_bytes_per_ns * work.slowdown;
  const double spacing_ns = std::max(packet_ns, bytes_ns);
  const std::int64_t engines = std::clamp<std::int64_t>(work.engines, 1, dma.engines);
  const std::int64_t busiest = (work.descriptors + engines - 1) / engines;
  return {static_cast<double>(busiest) * spacing_ns,
          static_cast<double>(work.descriptors) * packet_ns};
}

}  // namespace trena
