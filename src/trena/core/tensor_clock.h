// The tensor engine in time: weight loads behind the running product, the current ramp after idle,
// and the limit of the power budget (hw.md §1.8, §2.2, §2.7).
#pragma once

#include "trena/isa/cost.h"
#include "trena/machine/machine.h"

namespace trena {

class TensorClock {
 public:
  explicit TensorClock(const Machine& machine);

  struct Product {
    Ticks busy_until;  // the next product may start streaming
    Ticks end;         // the result is in PSUM
  };
  // A product whose operands are ready and whose turn has come at `start`.
  Product run(const TensorWork& work, Ticks start);

 private:
  double rate_at(Ticks time);
  double last_in_window() const;
  void account(Ticks from, Ticks to, double area);
  Ticks stretch_sustained(Ticks service, Ticks start);

  Ticks latency_;  // array fill, drain and write
  Ticks group_overhead_;
  Ticks window_;
  double floor_;
  double threshold_;
  bool ramp_;
  bool counts_area_;
  double sustained_level_;
  Ticks sustained_window_;

  Ticks free_at_ = 0;  // end of the last product's streaming
  bool ever_ran_ = false;
  Ticks window_start_ = 0;
  double window_active_ = 0;  // area-weighted busy ticks inside the window
  Ticks last_from_ = 0;       // streaming of the last product
  Ticks last_to_ = 0;
  double last_area_ = 1;
  double rate_ = 1;
  double excess_ = 0;  // busy ticks above the sustained level, leaky
};

}  // namespace trena
