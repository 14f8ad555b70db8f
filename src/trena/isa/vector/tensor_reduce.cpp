#include "trena/isa/vector/tensor_reduce.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "trena/isa/operators.h"
#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"
#include "trena/isa/vector/copy_law.h"

namespace trena {
namespace {

class TensorReduceInstruction final : public InstructionOf<TensorReduce> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "tensor_reduce"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    require_tile(machine, name(), "dst", args_.dst);
    require_tile(machine, name(), "data", args_.data);
    require_same_partitions(name(), "dst", args_.dst, "data", args_.data);
    require_operator(machine, name(), "op", args_.op, engine(machine));
    require_reduction(name(), "op", args_.op);
    check_axes();
    const std::int64_t results = args_.data.free_size() / window();
    if (args_.dst.free_size() != results) {
      refuse("element-mismatch",
             {.rule = "dst has one element for every window of `data` that is reduced",
              .here = fmt::format("`dst` is {}, `data` is {}, axis [{}]", args_.dst.describe(),
                                  args_.data.describe(), fmt::join(args_.axes, ", ")),
              .limit = fmt::format("{} elements per partition", results)});
    }
    if (is_bitvec(args_.op)) {
      require_integer(name(), "dst", args_.dst);
      require_integer(name(), "data", args_.data);
      if (args_.negate) {
        refuse("reduce-negate",
               {.rule = "negate multiplies by -1: bitvec operators have no sign",
                .here = fmt::format("op=nl.{}, negate=True", trena::name(args_.op)),
                .limit = "negate=False"});
      }
    }
  }

  void access(AccessList& list) const override {
    list.read(args_.data);
    list.write(args_.dst);
  }

  void execute(CoreState&) const override {
    const TileRows out(args_.dst), in(args_.data);
    const auto window = static_cast<std::size_t>(this->window());
    for_each_block(args_.dst.partitions(), in.row_elements(), 1.0, [&](const Block& block) {
      const std::size_t results = out.elements(block);
      if (is_bitvec(args_.op)) {
        const std::uint32_t* x = in.read_bits(block, 0);
        auto* z = scratch<std::uint32_t>(1, results);
        for (std::size_t i = 0; i < results; ++i) {
          z[i] = reduce_row_uint32(args_.op, x + i * window, window);
        }
        out.write_bits(block, z);
        return;
      }
      const float* x = in.read(block, 0);
      auto* z = scratch<float>(1, results);
      const float sign = args_.negate ? -1.0F : 1.0F;
      for (std::size_t i = 0; i < results; ++i) {
        z[i] = sign * reduce_row(args_.op, x + i * window, window);
      }
      out.write(block, z);
    });
  }

  Cost cost(const Machine& machine) const override {
    const VectorEngine& vector = machine.core.vector;
    const bool fast = streams_fast(machine, {&args_.dst, &args_.data}) &&
                      (args_.op == AluOp::kAdd || args_.op == AluOp::kMaximum);
    return stream_cost(machine, EngineKind::kVector, fast ? vector.reduce_16bit : vector.reduce,
                       args_.data.free_size(), {&args_.data});
  }

  IndirectOperands indirect_operands() const override { return {&args_.dst, &args_.data}; }

 private:
  // Elements of one result.
  std::int64_t window() const {
    std::int64_t count = 1;
    for (const std::int64_t axis : args_.axes) {
      count *= args_.data.size(static_cast<int>(axis < 0 ? axis + args_.data.rank() : axis));
    }
    return count;
  }

  void check_axes() const {
    std::vector<std::int64_t> axes = args_.axes;
    for (std::int64_t& axis : axes) {
      axis += axis < 0 ? args_.data.rank() : 0;
    }
    std::sort(axes.begin(), axes.end());
    const auto first = args_.data.rank() - static_cast<std::int64_t>(axes.size());
    bool trailing = !axes.empty() && first >= 1;
    for (std::size_t i = 0; i < axes.size() && trailing; ++i) {
      trailing = axes[i] == first + static_cast<std::int64_t>(i);
    }
    if (!trailing) {
      refuse(
          "reduce-axes",
          {.rule =
               "the axes are the last dimensions of `data`, up to its final one; dimension 0, the "
               "partitions, is never among them",
           .here =
               fmt::format("axis [{}] of {}", fmt::join(args_.axes, ", "), args_.data.describe()),
           .limit = fmt::format("the last 1 to {} of its {} dimensions", args_.data.rank() - 1,
                                args_.data.rank()),
           .fix = "permute the free dimensions, or view them in another order with .ap()"});
    }
  }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(TensorReduce args) {
  return std::make_unique<TensorReduceInstruction>(std::move(args));
}

}  // namespace trena
