// The values a physical core holds besides its tensors: what instructions remember between calls.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "trena/machine/machine.h"

namespace trena {

constexpr int kPartitions = 128;  // lanes of every engine, all generations (hw.md §1.4)

class CoreState {
 public:
  CoreState(const Machine& machine, int core_index) : machine_(&machine), core_index_(core_index) {}

  const Machine& machine() const { return *machine_; }
  int core_index() const { return core_index_; }

  // 128 float32 reduce registers of the scalar engine, and the accumulator that range_select,
  // select_reduce, tensor_scalar_reduce … share on the vector engine (hw.md §3.7).
  std::array<float, kPartitions> scalar_accumulators{};
  std::array<float, kPartitions> vector_accumulators{};

 private:
  const Machine* machine_;
  int core_index_;
};

}  // namespace trena
