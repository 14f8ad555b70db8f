#include "trena/core/tensor_clock.h"

#include <algorithm>
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
  group_overhead_ = machine.ticks(EngineKind::kTensor, engine.group_overhead_cycles);
  ramp_ = throttle.ramp;
  floor_ = ramp_ ? throttle.floor : 1.0;
  window_ = ramp_ ? ticks_from_ns(throttle.window_ns) : 0;
  threshold_ = throttle.threshold;
  counts_area_ = throttle.counts_array_area;
  sustained_level_ = throttle.sustained_level;
  sustained_window_ = sustained_level_ < 1.0 ? ticks_from_ns(throttle.sustained_window_ns) : 0;
  rate_ = floor_;
}

// Ticks of the last product inside the current window, weighted by the part of the array it used.
double TensorClock::last_in_window() const {
  const Ticks from = std::max(last_from_, window_start_);
  const Ticks to = std::min(last_to_, window_start_ + window_);
  return static_cast<double>(std::max<Ticks>(0, to - from)) * last_area_;
}

// Rolls the utilisation windows forward to `time`: a window above the threshold earns full rate for
// the next one, any other falls back to the floor (hw.md §1.8; "under 50 %" includes exactly 50 %).
double TensorClock::rate_at(Ticks time) {
  if (!ramp_) {
    return 1.0;
  }
  while (time >= window_start_ + window_) {
    rate_ = window_active_ > threshold_ * static_cast<double>(window_) ? 1.0 : floor_;
    window_start_ += window_;
    if (last_to_ <= window_start_ && time >= window_start_ + window_) {
      // Nothing runs until the window of `time`: those between change nothing more.
      window_start_ += (time - window_start_) / window_ * window_;
      rate_ = floor_;
    }
    window_active_ = last_in_window();
  }
  if (rate_ == floor_ && window_active_ == 0.0) {
    window_start_ = time;  // the ramp is counted from the first work after idle time
  }
  return rate_;
}

// A product may reach into later windows, which then count their own share; the next one starts
// behind it.
void TensorClock::account(Ticks from, Ticks to, double area) {
  if (!ramp_) {
    return;
  }
  last_from_ = from;
  last_to_ = to;
  last_area_ = counts_area_ ? area : 1.0;
  window_active_ += last_in_window();
}

// A leaky bucket: dense work runs at full rate until the excess over the sustained level fills the
// window.
Ticks TensorClock::stretch_sustained(Ticks service, Ticks start) {
  if (sustained_level_ >= 1.0) {
    return service;
  }
  const auto idle = static_cast<double>(std::max<Ticks>(0, start - free_at_));
  excess_ = std::max(0.0, excess_ - idle * sustained_level_);
  const double full = (1.0 - sustained_level_) * static_cast<double>(sustained_window_);
  if (excess_ >= full) {
    return scaled(service, 1.0 / sustained_level_);
  }
  excess_ += static_cast<double>(service) * (1.0 - sustained_level_);
  return service;
}

TensorClock::Product TensorClock::run(const TensorWork& work, Ticks start) {
  const double rate = rate_at(start);
  const Ticks load = scaled(work.load_stationary, 1.0 / rate);
  const Ticks pass = scaled(std::max(work.load_stationary, work.multiply_moving), 1.0 / rate);
  // Back to back, the weights were loaded behind the product before.
  const bool hidden = ever_ran_ && start <= free_at_;
  const Ticks first = start + (hidden ? 0 : load);
  Ticks streaming =
      pass * (work.passes - 1) + (hidden ? pass : scaled(work.multiply_moving, 1.0 / rate));
  streaming = stretch_sustained(streaming, start);
  account(start, first + streaming, work.active_area);
  free_at_ = first + streaming + group_overhead_;
  ever_ran_ = true;
  return {free_at_, first + streaming + latency_};
}

}  // namespace trena
