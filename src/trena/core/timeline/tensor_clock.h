// The tensor engine in time: weight loads behind the running product, the current ramp after idle,
// and the limit of the power budget (hw.md §1.8, §2.2, §2.7).
#pragma once

#include <array>
#include <vector>

#include "trena/isa/cost.h"
#include "trena/machine/machine.h"

namespace trena {

class TensorClock {
 public:
  explicit TensorClock(const Machine& machine);

  struct Product {
    Ticks busy_until;  // the next product may start streaming
    Ticks end;         // the result is in PSUM
    double limit;      // of the array's rate, that it ran under
  };
  // A product whose operands are ready and whose turn has come at `start`.
  Product run(const TensorWork& work, Ticks start);

  // How long a profiler shows the last LDWEIGHTS and the last MATMUL of a product, their waits for
  // each other included (hw.md §2.7). They overlap: the time of a product is not their sum.
  struct Shown {
    Ticks load_weights;
    Ticks multiply;
  };
  Shown shown(const TensorWork& work, double limit) const;

 private:
  double rate_at(Ticks time);
  double in_window() const;
  void account(Ticks from, Ticks to, double area);
  Ticks stretch_sustained(Ticks service, Ticks start, double share);
  Ticks blocks_free_at(std::uint32_t blocks) const;

  Ticks latency_;  // array fill, drain and write
  Ticks multiply_fixed_;
  Ticks multiply_throttled_;
  Ticks load_fixed_;
  Ticks load_throttled_;
  Ticks group_overhead_;
  Ticks window_;
  double floor_;
  double threshold_;
  bool ramp_;
  bool counts_area_;
  double sustained_level_;
  Ticks sustained_window_;

  Ticks issue_;  // between products on different parts of the array

  std::array<Ticks, kArrayBlocks * kArrayBlocks> block_free_at_{};
  Ticks free_at_ = 0;  // of the whole array
  Ticks window_start_ = 0;
  struct Span {
    Ticks from;
    Ticks to;
    double area;
  };
  std::vector<Span> spans_;  // products that reach past the start of the window
  double rate_ = 1;
  double excess_ = 0;  // busy ticks above the sustained level, leaky
};

}  // namespace trena
