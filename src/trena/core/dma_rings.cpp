#include "trena/core/dma_rings.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trena {

DmaRings::DmaRings(const Machine& machine, int cores, int queues_per_core)
    : queues_per_core_(queues_per_core),
      cores_per_stack_(static_cast<int>(std::max<std::int64_t>(1, machine.hbm.cores_per_stack))),
      core_gbs_(machine.hbm.core_gbs),
      stack_gbs_(machine.hbm.stack_gbs),
      queues_(static_cast<std::size_t>(cores * queues_per_core)) {}

std::optional<DmaRings::Step> DmaRings::next() const { return next_; }

void DmaRings::advance(Ticks now) {
  const double elapsed_ns = ns_from_ticks(now - now_);
  for (Queue& queue : queues_) {
    if (!queue.waiting.empty()) {
      queue.remaining_ns = std::max(0.0, queue.remaining_ns - queue.rate * elapsed_ns);
    }
  }
  now_ = now;
}

// One core's queues: equal turns among the heads of the first class that has any.
void DmaRings::give_turns(std::size_t first, std::size_t past) {
  int moving = 0;
  int first_class = std::numeric_limits<int>::max();
  for (std::size_t q = first; q < past; ++q) {
    if (queues_[q].waiting.empty()) {
      continue;
    }
    const int service_class = queues_[q].waiting.front().service_class;
    moving = service_class < first_class ? 1 : moving + (service_class == first_class ? 1 : 0);
    first_class = std::min(first_class, service_class);
  }
  for (std::size_t q = first; q < past; ++q) {
    Queue& queue = queues_[q];
    const bool moves = !queue.waiting.empty() && queue.waiting.front().service_class == first_class;
    queue.rate = moves ? 1.0 / moving : 0.0;
    if (moves && !queue.first_packet) {
      queue.first_packet = now_;
    }
  }
}

// Rates of all heads, and the first of them to finish.
void DmaRings::share() {
  const std::size_t per_core = static_cast<std::size_t>(queues_per_core_);
  const std::size_t per_stack = per_core * static_cast<std::size_t>(cores_per_stack_);
  const auto scale_to = [&](std::size_t first, std::size_t past, double cap_gbs) {
    double demand = 0;
    for (std::size_t q = first; q < past; ++q) {
      const Queue& queue = queues_[q];
      if (!queue.waiting.empty() && queue.waiting.front().work_ns > 0) {
        demand += queue.rate * queue.waiting.front().hbm_bytes / queue.waiting.front().work_ns;
      }
    }
    if (demand > cap_gbs) {
      for (std::size_t q = first; q < past; ++q) {
        queues_[q].rate *= cap_gbs / demand;
      }
    }
  };
  for (std::size_t first = 0; first < queues_.size(); first += per_core) {
    give_turns(first, first + per_core);
    scale_to(first, first + per_core, core_gbs_);
  }
  for (std::size_t first = 0; first < queues_.size(); first += per_stack) {
    scale_to(first, std::min(first + per_stack, queues_.size()), stack_gbs_);
  }
  next_.reset();
  for (std::size_t q = 0; q < queues_.size(); ++q) {
    const Queue& queue = queues_[q];
    if (!queue.waiting.empty() && queue.rate > 0) {
      const Ticks done =
          now_ + static_cast<Ticks>(std::llround(queue.remaining_ns / queue.rate * kTicksPerNs));
      if (!next_ || done < next_->time) {
        next_ = Step{done, static_cast<int>(q)};
      }
    }
  }
}

void DmaRings::push(int number, const Transfer& transfer, Ticks now) {
  advance(now);
  Queue& queue = queues_[static_cast<std::size_t>(number)];
  queue.waiting.push_back(transfer);
  if (queue.waiting.size() == 1) {
    queue.remaining_ns = transfer.work_ns;
    share();
  }
}

DmaRings::Done DmaRings::pop(int number, Ticks now) {
  advance(now);
  Queue& queue = queues_[static_cast<std::size_t>(number)];
  const Done done{queue.waiting.front().id, queue.first_packet.value_or(now)};
  queue.waiting.pop_front();
  queue.first_packet.reset();
  if (!queue.waiting.empty()) {
    queue.remaining_ns = queue.waiting.front().work_ns;
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
