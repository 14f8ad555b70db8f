#include "trena/isa/vector/reciprocal.h"

#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"

namespace trena {
namespace {

class ReciprocalInstruction final : public InstructionOf<Reciprocal> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "reciprocal"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_elementwise(machine, name(), args_.dst, "data", args_.data);
  }

  void access(AccessList& list) const override {
    list.read(args_.data);
    list.write(args_.dst);
  }

  void execute(CoreState&) const override {
    const TileRows out(args_.dst), in(args_.data);
    for_each_block(args_.dst.partitions(), out.row_elements(), 1.0, [&](const Block& block) {
      const float* x = in.read(block, 0);
      float* z = out.target(block, 2, {x});
      apply_row(MathFunction::kReciprocal, x, z, out.elements(block));
      out.write(block, z);
    });
  }

  Cost cost(const Machine& machine) const override {
    return stream_cost(machine, EngineKind::kVector, machine.core.vector.reciprocal,
                       args_.data.free_size(), {&args_.dst, &args_.data});
  }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(Reciprocal args) {
  return std::make_unique<ReciprocalInstruction>(std::move(args));
}

}  // namespace trena
