#include "trena/isa/sync/branch.h"

namespace trena {
namespace {

class BranchInstruction final : public InstructionOf<Branch> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "compare_branch"; }
  EngineKind engine(const Machine&) const override { return args_.engine; }
  void check(const Machine&) const override {}
  void access(AccessList&) const override {}
  void execute(CoreState&) const override {}

  Cost cost(const Machine& machine) const override {
    Cost cost;
    cost.interval = ticks(machine.core.sequencer.branch_cycles, machine.core.sequencer.clock_ghz);
    cost.completion = cost.interval;
    return cost;
  }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(Branch args) {
  return std::make_unique<BranchInstruction>(std::move(args));
}

}  // namespace trena
