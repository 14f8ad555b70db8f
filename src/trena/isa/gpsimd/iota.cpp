#include "trena/isa/gpsimd/iota.h"

#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"

namespace trena {
namespace {

class IotaInstruction final : public InstructionOf<Iota> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "iota"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_space(name(), "dst", args_.dst, {Space::kSbuf});
    require_tile(machine, name(), "dst", args_.dst);
    args_.pattern.check(name(), args_.dst);
  }

  void access(AccessList& list) const override { list.write(args_.dst); }

  void execute(CoreState&) const override {
    const TileRows out(args_.dst);
    const std::vector<std::int32_t> first = args_.pattern.first_row();
    for_each_block(args_.dst.partitions(), first.size(), 1.0, [&](const Block& block) {
      auto* values = scratch<std::int32_t>(0, out.elements(block));
      std::int32_t* next = values;
      for (std::int64_t p = block.first; p < block.first + block.partitions; ++p) {
        const std::uint32_t add = args_.pattern.channel(p);
        for (const std::int32_t value : first) {
          *next++ = static_cast<std::int32_t>(static_cast<std::uint32_t>(value) + add);
        }
      }
      out.write_int32(block, values);
    });
  }

  Cost cost(const Machine& machine) const override {
    return stream_cost(machine, EngineKind::kGpsimd, machine.core.gpsimd.affine,
                       args_.dst.free_size(), {&args_.dst});
  }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(Iota args) {
  return std::make_unique<IotaInstruction>(std::move(args));
}

}  // namespace trena
