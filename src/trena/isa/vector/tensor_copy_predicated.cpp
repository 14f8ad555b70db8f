#include "trena/isa/vector/tensor_copy_predicated.h"

#include <cstring>

#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"
#include "trena/number/convert.h"

namespace trena {
namespace {

class TensorCopyPredicatedInstruction final : public InstructionOf<TensorCopyPredicated> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "tensor_copy_predicated"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_tile(machine, name(), "dst", args_.dst);
    require_tile(machine, name(), "predicate", args_.predicate);
    require_dtype(name(), "predicate", args_.predicate,
                  {DType::kUint8, DType::kUint16, DType::kUint32});
    require_same_partitions(name(), "dst", args_.dst, "predicate", args_.predicate);
    require_same_elements(name(), "dst", args_.dst, "predicate", args_.predicate);
    if (const Tensor* src = std::get_if<Tensor>(&args_.src)) {
      require_tile(machine, name(), "src", *src);
      require_same_dtype(name(), "dst", args_.dst, "src", *src);
      require_same_partitions(name(), "dst", args_.dst, "src", *src);
      require_same_elements(name(), "dst", args_.dst, "src", *src);
      require_not_both_psum(name(), "src", *src, "predicate", args_.predicate);
    }
  }

  void access(AccessList& list) const override {
    list.read(args_.predicate);
    list.read(args_.src);
    list.add(args_.dst, AccessKind::kWriteSome);
  }

  void execute(CoreState&) const override {
    const Tensor* src = std::get_if<Tensor>(&args_.src);
    const TileRows out(args_.dst), predicate(args_.predicate),
        in(src != nullptr ? *src : args_.dst);
    const std::uint32_t number = src != nullptr ? 0 : number_in_dst();
    const bool was_written = is_written(args_.dst);
    const auto block_of = [&](const Block& block) {
      const std::size_t count = out.elements(block);
      const std::uint32_t* chosen = predicate.read_bits(block, 0);
      const std::uint32_t* x = src != nullptr ? in.read_bits(block, 1) : nullptr;
      const std::uint32_t* old = out.read_bits(block, 2);
      auto* z = scratch<std::uint32_t>(3, count);
      for (std::size_t i = 0; i < count; ++i) {
        const bool copies = (chosen[i] != 0) != args_.reverse;
        z[i] = copies ? (x != nullptr ? x[i] : number) : old[i];
      }
      out.write_bits(block, z);
      if (!was_written) {
        auto* mask = scratch<std::uint32_t>(4, count);
        for (std::size_t i = 0; i < count; ++i) {
          mask[i] = (chosen[i] != 0) != args_.reverse ? 1 : 0;
        }
        out.mark_written(block, mask, *args_.dst.buffer()->storage);
      }
    };
    // Written bits of neighbours share words: one thread.
    const double cost_per_element = was_written ? 1.5 : 0.0;
    for_each_block(args_.dst.partitions(), out.row_elements(), cost_per_element, block_of);
  }

  Cost cost(const Machine& machine) const override {
    const VectorEngine& vector = machine.core.vector;
    const Tensor* src = std::get_if<Tensor>(&args_.src);
    const bool both_sbuf =
        src != nullptr && src->space() == Space::kSbuf && args_.predicate.space() == Space::kSbuf;
    return stream_cost(machine, EngineKind::kVector,
                       both_sbuf ? vector.predicated_sbuf : vector.predicated,
                       args_.dst.free_size(), {&args_.dst, &args_.predicate});
  }

  IndirectOperands indirect_operands() const override { return {&args_.dst, &args_.predicate}; }

 private:
  // The bits of a number in dst's type.
  std::uint32_t number_in_dst() const {
    std::array<std::byte, 4> bytes{};
    from_float(args_.dst.dtype(), static_cast<float>(std::get<double>(args_.src)), bytes.data());
    std::uint32_t bits = 0;
    std::memcpy(&bits, bytes.data(), bytes.size());
    return bits;
  }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(TensorCopyPredicated args) {
  return std::make_unique<TensorCopyPredicatedInstruction>(std::move(args));
}

}  // namespace trena
