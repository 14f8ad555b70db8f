// The values a physical core holds besides its tensors: what instructions remember between calls.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "trena/machine/machine.h"
#include "trena/number/xorwow.h"

namespace trena {

constexpr int kPartitions = 128;  // lanes of every engine, all generations (hw.md §1.4)

// The generators of one lane of the vector engine take turns, element by element (hw.md §3.7: four
// on v4; the older generator is not published, and Trena has one kind).
struct VectorRandom {
  static constexpr std::size_t kStates = 4;
  std::array<Xorwow, kStates> states;

  std::uint32_t next(std::size_t element) { return states[element % kStates].next(); }
};

class CoreState {
 public:
  CoreState(const Machine& machine, int core_index) : machine_(&machine), core_index_(core_index) {
    seed_vector_random(0);
    for (std::uint32_t lane = 0; lane < kPartitions; ++lane) {
      gpsimd_random[lane] = Xorwow::seeded(0, kPartitions * VectorRandom::kStates + lane);
    }
  }

  const Machine& machine() const { return *machine_; }
  int core_index() const { return core_index_; }

  // Every lane gets states of its own.
  void seed_vector_random(std::uint32_t seed) {
    std::uint32_t stream = 0;
    for (VectorRandom& lane : vector_random) {
      for (Xorwow& state : lane.states) {
        state = Xorwow::seeded(seed, stream++);
      }
    }
  }

  // 128 float32 reduce registers of the scalar engine, and the accumulator that range_select,
  // select_reduce, tensor_scalar_reduce … share on the vector engine (hw.md §3.7).
  std::array<float, kPartitions> scalar_accumulators{};
  std::array<float, kPartitions> vector_accumulators{};

  // Random number generators, one set per lane; the seed is 0 until a kernel sets another.
  std::array<VectorRandom, kPartitions> vector_random;
  std::array<Xorwow, kPartitions> gpsimd_random;

 private:
  const Machine* machine_;
  int core_index_;
};

}  // namespace trena
