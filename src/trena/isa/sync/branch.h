// A compare-and-branch of one engine's sequencer: what an iteration of a device loop costs besides
// its body (hw.md §4). Every engine that works in the loop runs its own.
#pragma once

#include "trena/isa/rules.h"

namespace trena {

class Branch final : public Instruction {
 public:
  explicit Branch(EngineKind engine) : engine_(engine) {}

  std::string_view name() const override { return "compare_branch"; }
  EngineKind engine(const Machine&) const override { return engine_; }
  void check(const Machine&) const override {}
  void access(AccessList&) const override {}
  void execute(CoreState&) const override {}
  Cost cost(const Machine& machine) const override;

 private:
  EngineKind engine_;
};

}  // namespace trena
