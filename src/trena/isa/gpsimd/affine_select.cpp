#include "trena/isa/gpsimd/affine_select.h"

#include <cstring>

#include "trena/isa/operators.h"
#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"
#include "trena/number/convert.h"

namespace trena {
namespace {

class AffineSelectInstruction final : public InstructionOf<AffineSelect> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "affine_select"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_space(name(), "dst", args_.dst, {Space::kSbuf});
    require_space(name(), "on_true_tile", args_.on_true, {Space::kSbuf});
    require_elementwise(machine, name(), args_.dst, "on_true_tile", args_.on_true);
    require_one_of(name(), "cmp_op", args_.compare,
                   {AluOp::kEqual, AluOp::kNotEqual, AluOp::kGreaterEqual, AluOp::kGreater,
                    AluOp::kLessEqual, AluOp::kLess});
    args_.pattern.check(name(), args_.dst);
  }

  void access(AccessList& list) const override {
    list.read(args_.on_true);
    list.write(args_.dst);
  }

  // Equal types keep their bits; others go through float32.
  void execute(CoreState&) const override {
    const TileRows out(args_.dst), in(args_.on_true);
    const std::vector<std::int32_t> first = args_.pattern.first_row();
    const bool exact = args_.dst.dtype() == args_.on_true.dtype();
    std::array<std::byte, 4> bytes{};
    from_float(args_.dst.dtype(), args_.on_false, bytes.data());
    std::uint32_t false_bits = 0;
    std::memcpy(&false_bits, bytes.data(), bytes.size());
    for_each_block(args_.dst.partitions(), first.size(), 2.0, [&](const Block& block) {
      const std::size_t count = out.elements(block);
      auto* mask = scratch<std::int32_t>(0, count);
      for (std::int64_t p = 0; p < block.partitions; ++p) {
        // value compare 0 is first_row compare -(channel) only without wrap-around: add, then
        // compare.
        std::int32_t* row = mask + static_cast<std::size_t>(p) * first.size();
        const std::uint32_t add = args_.pattern.channel(block.first + p);
        for (std::size_t i = 0; i < first.size(); ++i) {
          row[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(first[i]) + add);
        }
      }
      const std::int32_t zero = 0;
      binary_row_int32(args_.compare, mask, 1, &zero, 0, mask, count);
      if (exact) {
        const std::uint32_t* x = in.read_bits(block, 1);
        auto* z = scratch<std::uint32_t>(2, count);
        for (std::size_t i = 0; i < count; ++i) {
          z[i] = mask[i] != 0 ? x[i] : false_bits;
        }
        out.write_bits(block, z);
      } else {
        const float* x = in.read(block, 1);
        auto* z = scratch<float>(2, count);
        for (std::size_t i = 0; i < count; ++i) {
          z[i] = mask[i] != 0 ? x[i] : args_.on_false;
        }
        out.write(block, z);
      }
    });
  }

  Cost cost(const Machine& machine) const override {
    return stream_cost(machine, EngineKind::kGpsimd, machine.core.gpsimd.affine,
                       args_.dst.free_size(), {&args_.dst, &args_.on_true});
  }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(AffineSelect args) {
  return std::make_unique<AffineSelectInstruction>(std::move(args));
}

}  // namespace trena
