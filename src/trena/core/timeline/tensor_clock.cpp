#include "trena/core/timeline/tensor_clock.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace trena {
namespace {

Ticks scaled(Ticks time, double factor) {
  return static_cast<Ticks>(std::llround(static_cast<double>(time) * factor));
}

}  // namespace

TensorClock::TensorClock(const Machine& machine) {
  const TensorEngine& engine = machine.core.tensor;
  const TensorThrottle& throttle = engine.throttle;
  latency_ = machine.ticks(EngineKind::kTensor,
                           engine.matmul_fixed_cycles + engine.matmul_throttled_cycles);
  multiply_fixed_ = machine.ticks(EngineKind::kTensor, engine.matmul_fixed_cycles);
  multiply_throttled_ = machine.ticks(EngineKind::kTensor, engine.matmul_throttled_cycles);
  load_fixed_ = machine.ticks(EngineKind::kTensor, engine.load_fixed_cycles);
  load_throttled_ = machine.ticks(EngineKind::kTensor, engine.load_throttled_cycles);
  group_overhead_ = machine.ticks(EngineKind::kTensor, engine.group_overhead_cycles);
  issue_ = machine.ticks(EngineKind::kTensor, engine.min_issue_cycles);
  ramp_ = throttle.ramp;
  floor_ = ramp_ ? throttle.floor : 1.0;
  window_ = ramp_ ? ticks_from_ns(throttle.window_ns) : 0;
  threshold_ = throttle.threshold;
  counts_area_ = throttle.counts_array_area;
  sustained_level_ = throttle.sustained_level;
  sustained_window_ = sustained_level_ < 1.0 ? ticks_from_ns(throttle.sustained_window_ns) : 0;
  rate_ = floor_;
}

// Busy ticks inside the current window, weighted by the part of the array in use.
double TensorClock::in_window() const {
  double active = 0;
  for (const Span& span : spans_) {
    const Ticks from = std::max(span.from, window_start_);
    const Ticks to = std::min(span.to, window_start_ + window_);
    active += static_cast<double>(std::max<Ticks>(0, to - from)) * span.area;
  }
  return active;
}

// Rolls the utilisation windows forward to `time`: a window above the threshold earns full rate for
// the next one, any other falls back to the floor (hw.md §1.8; "under 50 %" includes exactly 50 %).
double TensorClock::rate_at(Ticks time) {
  if (!ramp_) {
    return 1.0;
  }
  while (time >= window_start_ + window_) {
    rate_ = in_window() > threshold_ * static_cast<double>(window_) ? 1.0 : floor_;
    window_start_ += window_;
    std::erase_if(spans_, [&](const Span& span) { return span.to <= window_start_; });
    if (spans_.empty() && time >= window_start_ + window_) {
      // Nothing runs until the window of `time`: those between change nothing more.
      window_start_ += (time - window_start_) / window_ * window_;
      rate_ = floor_;
    }
  }
  if (rate_ == floor_ && spans_.empty()) {
    window_start_ = time;  // the ramp is counted from the first work after idle time
  }
  return rate_;
}

// A product may reach into later windows, which then count their own share.
void TensorClock::account(Ticks from, Ticks to, double area) {
  if (!ramp_) {
    return;
  }
  area = counts_area_ ? area : 1.0;
  if (!spans_.empty() && spans_.back().to == from && spans_.back().area == area) {
    spans_.back().to = to;
  } else {
    spans_.push_back({from, to, area});
  }
}

// A leaky bucket: dense work runs at full rate until the excess over the sustained level fills the
// window.
Ticks TensorClock::stretch_sustained(Ticks service, Ticks start, double share) {
  if (sustained_level_ >= 1.0) {
    return service;
  }
  const auto idle = static_cast<double>(std::max<Ticks>(0, start - free_at_));
  excess_ = std::max(0.0, excess_ - idle * sustained_level_);
  const double full = (1.0 - sustained_level_) * static_cast<double>(sustained_window_);
  if (excess_ >= full) {
    return scaled(service, 1.0 / sustained_level_);
  }
  excess_ += static_cast<double>(service) * share * (1.0 - sustained_level_);
  return service;
}

Ticks TensorClock::blocks_free_at(std::uint32_t blocks) const {
  if (blocks == kWholeArray) {
    return free_at_;
  }
  Ticks free_at = 0;
  for (std::size_t block = 0; block < block_free_at_.size(); ++block) {
    free_at = std::max(free_at, (blocks >> block & 1u) != 0 ? block_free_at_[block] : 0);
  }
  return free_at;
}

TensorClock::Product TensorClock::run(const TensorWork& work, Ticks start) {
  const double rate = rate_at(start);
  const Ticks load = scaled(work.load_stationary, 1.0 / rate);
  const Ticks pass = scaled(std::max(work.load_stationary, work.multiply_moving), 1.0 / rate);
  const Ticks blocks_free = blocks_free_at(work.blocks);
  // Back to back, the weights were loaded behind the product before.
  const bool hidden = blocks_free > 0 && start <= blocks_free;
  const Ticks begin = std::max(start, blocks_free);
  const Ticks first = begin + (hidden ? 0 : load);
  Ticks streaming =
      pass * (work.passes - 1) + (hidden ? pass : scaled(work.multiply_moving, 1.0 / rate));
  const double share = std::popcount(work.blocks) / static_cast<double>(block_free_at_.size());
  streaming = stretch_sustained(streaming, begin, share);
  account(begin, first + streaming, work.active_area);
  const Ticks free_at = first + streaming + group_overhead_;
  free_at_ = std::max(free_at_, free_at);
  for (std::size_t block = 0; block < block_free_at_.size(); ++block) {
    if ((work.blocks >> block & 1u) != 0) {
      block_free_at_[block] = free_at;
    }
  }
  // A tile leaves the rest of the array to the next product.
  const bool whole = work.blocks == kWholeArray;
  return {whole ? free_at : std::min(free_at, begin + issue_), first + streaming + latency_, rate};
}

TensorClock::Shown TensorClock::shown(const TensorWork& work, double limit) const {
  return {load_fixed_ + scaled(work.load_stationary + load_throttled_, 1.0 / limit),
          multiply_fixed_ + scaled(work.multiply_moving + multiply_throttled_, 1.0 / limit)};
}

}  // namespace trena
