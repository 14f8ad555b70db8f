// The moves that Placement inserts for tensors that the core computed and SBUF cannot keep: to HBM
// scratch and back. They change no values (a tensor keeps its own bytes while values are executed);
// they cost time and traffic.
#pragma once

#include "trena/isa/instruction.h"

namespace trena {

class SpillMove final : public Instruction {
 public:
  enum class Direction : std::uint8_t { kStore, kReload };

  SpillMove(Tensor tensor, Direction direction)
      : tensor_(std::move(tensor)), direction_(direction) {}

  std::string_view name() const override {
    return direction_ == Direction::kStore ? "spill_store" : "spill_reload";
  }
  // Hardware descriptors on the sync queue where they exist, else prepared ones (hw.md §4:
  // qSyncSpillReload0).
  EngineKind engine(const Machine&) const override { return EngineKind::kSync; }
  bool is_dma() const override { return true; }
  void check(const Machine&) const override {}
  void access(AccessList& list) const override;
  void execute(CoreState&) const override {}
  Cost cost(const Machine& machine) const override;

 private:
  Tensor tensor_;
  Direction direction_;
};

}  // namespace trena
