// core_barrier: two cores of one HBM stack wait for each other (v3+, LNC 2; hw.md §5.4). Only the
// engine that runs it blocks. The rendezvous itself is core/pair.h's; the instruction is what each
// core records.
#pragma once

#include <vector>

#include "trena/isa/rules.h"

namespace trena {

class CoreBarrier final : public Instruction {
 public:
  // `data`: the shared HBM tensor whose earlier accesses on this core come before, and later ones
  // after.
  CoreBarrier(Tensor data, std::vector<int> cores, EngineRequest engine)
      : data_(std::move(data)), cores_(std::move(cores)), engine_(engine) {}

  std::string_view name() const override { return "core_barrier"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;
  std::int64_t rendezvous() const override { return rendezvous_; }
  void set_rendezvous(std::int64_t id) { rendezvous_ = id; }

 private:
  Tensor data_;
  std::vector<int> cores_;
  EngineRequest engine_;
  std::int64_t rendezvous_ = -1;
};

// `pair-refused`: two cores that meet share an HBM stack, from NeuronCore-v3 on.
void require_pair(const Machine& machine, std::string_view instruction);

}  // namespace trena
