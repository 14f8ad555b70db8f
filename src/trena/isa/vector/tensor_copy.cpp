#include "trena/isa/vector/tensor_copy.h"

#include <algorithm>

#include "trena/isa/core_state.h"
#include "trena/isa/row_kernel.h"
#include "trena/isa/scalar/activation.h"
#include "trena/isa/stream.h"
#include "trena/isa/vector/copy_law.h"

namespace trena {
namespace {

class TensorCopyInstruction final : public InstructionOf<TensorCopy> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "tensor_copy"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), args_.engine);
  }

  void check(const Machine& machine) const override {
    require_space(name(), "dst", args_.dst, {Space::kSbuf, Space::kPsum});
    require_space(name(), "src", args_.src, {Space::kSbuf, Space::kPsum});
    require_same_tile(machine, name(), "dst", args_.dst, "src", args_.src);
    require_engine_reaches(machine, name(), engine(machine), {&args_.dst, &args_.src});
    for (const Tensor* tensor : {&args_.dst, &args_.src}) {
      const Indirection* indirection = tensor->indirection().get();
      if (indirection != nullptr && indirection->kind == Indirection::Kind::kColumns &&
          engine(machine) == EngineKind::kGpsimd) {
        refuse("indirect-operand", {.rule = "tensor_copy by an index runs on vector or scalar",
                                    .here = "engine gpsimd",
                                    .fix = "leave `engine` out"});
      }
    }
  }

  void access(AccessList& list) const override {
    list.read(args_.src);
    list.write(args_.dst);
  }

  void execute(CoreState& core) const override {
    const bool through_float32 =
        args_.dst.dtype() != args_.src.dtype() || (engine(core.machine()) == EngineKind::kScalar &&
                                                   !core.machine().legality.scalar_copy_exact);
    // Rows of one memory may overlap; then the source must leave it before dst is written.
    const bool may_overlap = args_.dst.buffer()->storage == args_.src.buffer()->storage;
    const TileRows out(args_.dst), in(args_.src);
    for_each_block(args_.dst.partitions(), out.row_elements(), 0.5, [&](const Block& block) {
      if (through_float32) {
        const float* x = in.read(block, 0);
        if (may_overlap) {
          const std::size_t count = in.elements(block);
          x = std::copy_n(x, count, scratch<float>(1, count)) - count;
        }
        out.write(block, x);
      } else {
        const std::byte* bits = in.read_packed(block, 0);
        if (may_overlap) {
          const std::size_t size = in.elements(block) * size_bytes(args_.src.dtype());
          bits = std::copy_n(bits, size, scratch<std::byte>(1, size)) - size;
        }
        out.write_packed(block, bits);
      }
    });
  }

  Cost cost(const Machine& machine) const override { return cost_on(machine, engine(machine)); }

  // The scalar engine beside the vector engine. GpSimd, for whose copies no time is published, only
  // copies what the kernel gives it.
  std::optional<Alternative> alternative(const Machine& machine) const override {
    const bool exact = machine.legality.scalar_copy_exact ||
                       args_.dst.dtype() != args_.src.dtype() || info(args_.src.dtype()).is_float;
    if (args_.engine || !exact || args_.dst.indirection() || args_.src.indirection()) {
      return std::nullopt;
    }
    return Alternative{EngineKind::kScalar, cost_on(machine, EngineKind::kScalar)};
  }

  IndirectOperands indirect_operands() const override { return {&args_.dst, &args_.src}; }

 private:
  Cost cost_on(const Machine& machine, EngineKind engine) const {
    const bool scalar = engine == EngineKind::kScalar;
    // There a copy is an activation (AWS nki.isa.tensor_copy).
    if (scalar && !machine.is_generation(3)) {
      Cost cost = activation_cost(machine, MathFunction::kCopy, args_.dst, args_.src, {}, 0);
      cost.gap = StartGap::kCopy;
      return cost;
    }
    const StreamLaw& law = scalar ? scalar_copy_law(machine, args_.dst, args_.src)
                           : engine == EngineKind::kGpsimd
                               ? machine.core.gpsimd.copy
                               : vector_copy_law(machine, args_.dst, args_.src);
    Cost cost = stream_cost(machine, engine, law, args_.src.free_size(), {&args_.dst, &args_.src},
                            scalar ? -scalar_psum_credit(machine, args_.src) : 0.0);
    cost.gap = StartGap::kCopy;
    return cost;
  }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(TensorCopy args) {
  return std::make_unique<TensorCopyInstruction>(std::move(args));
}

}  // namespace trena
