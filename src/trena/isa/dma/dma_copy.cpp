#include "trena/isa/dma/dma_copy.h"

#include <fmt/format.h>

#include "trena/isa/core_state.h"
#include "trena/isa/dma/indirect.h"
#include "trena/isa/dma/transfer.h"
#include "trena/memory/rows.h"

namespace trena {
namespace {

// One side of a copy whose other side is indirect: row i by its index, or the i-th part in element
// order.
class Rows {
 public:
  Rows(std::string_view instruction, const Tensor& tensor, std::int64_t rows, OobMode oob)
      : instruction_(instruction), tensor_(tensor), oob_(oob) {
    if (!is_vector_indirect(tensor)) {
      split_.emplace(instruction, tensor, rows);
    }
  }
  std::optional<Tensor> row(std::int64_t index) const {
    return split_ ? split_->row(index) : resolve_row(instruction_, tensor_, index, oob_);
  }

 private:
  std::string_view instruction_;
  const Tensor& tensor_;
  OobMode oob_;
  std::optional<RowSplit> split_;
};

class DmaCopyInstruction final : public InstructionOf<DmaCopy> {
 public:
  explicit DmaCopyInstruction(DmaCopy args)
      : InstructionOf(std::move(args)),
        dst_reach_(reachable(args_.dst)),
        src_reach_(reachable(args_.src)) {
    // What access() lists keeps the bytes until the copy is done, and no longer.
    args_.dst.unpin();
    args_.src.unpin();
  }

  std::string_view name() const override { return "dma_copy"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_trigger(machine, name(), args_.request, needs()).engine;
  }

  void check(const Machine& machine) const override {
    require_dma_tensor(machine, name(), "dst", args_.dst);
    require_dma_tensor(machine, name(), "src", args_.src);
    require_castable(name(), args_.dst, args_.src);
    if (args_.dst.element_count() != args_.src.element_count()) {
      refuse("dma-element-count",
             {.rule = "a DMA copies as many elements as it reads; shapes may differ",
              .here = fmt::format("`dst` is {} ({} elements), `src` is {} ({} elements)",
                                  args_.dst.describe(), args_.dst.element_count(),
                                  args_.src.describe(), args_.src.element_count()),
              .fix = "slice one of them"});
    }
    if (is_vector_indirect(args_.dst) && is_vector_indirect(args_.src) &&
        args_.dst.size(0) != args_.src.size(0)) {
      refuse("dma-indirect-shape",
             {.rule = "a gather that also scatters moves row by row",
              .here = fmt::format("{} rows from {} to {}", args_.src.size(0), args_.src.describe(),
                                  args_.dst.describe())});
    }
    resolve_trigger(machine, name(), args_.request, needs());
  }

  void access(AccessList& list) const override {
    read_index(args_.src, list);
    read_index(args_.dst, list);
    const bool some_rows = is_vector_indirect(args_.src);
    list.add(src_reach_, carries() || some_rows ? AccessKind::kReadCarry : AccessKind::kRead);
    list.add(dst_reach_, indirect()  ? AccessKind::kWriteSome
                         : carries() ? AccessKind::kWriteCarry
                                     : AccessKind::kWrite);
  }

  void chosen_by_index(AccessList& list) const override {
    if (is_vector_indirect(args_.src)) {
      list.read(args_.src);
    }
    if (is_vector_indirect(args_.dst)) {
      list.add(args_.dst, AccessKind::kWriteSome);
    }
  }

  void execute(CoreState&) const override {
    if (indirect()) {
      copy_rows();
      return;
    }
    transfer(layout_of(args_.dst), layout_of(args_.src));
  }

  Cost cost(const Machine& machine) const override {
    DmaTraffic traffic = copy_traffic(args_.dst, args_.src);
    traffic.indirect_rows = !indirect()                     ? 0
                            : is_vector_indirect(args_.src) ? args_.src.size(0)
                                                            : args_.dst.size(0);
    return dma_cost(machine, resolve_trigger(machine, name(), args_.request, needs()), traffic);
  }

  bool is_dma() const override { return true; }
  bool judges_values() const override { return indirect(); }
  bool skips_out_of_bounds() const override { return args_.request.oob == OobMode::kSkip; }

 private:
  DmaNeeds needs() const { return {args_.dst.dtype() == args_.src.dtype(), indirect()}; }

  bool indirect() const { return is_vector_indirect(args_.dst) || is_vector_indirect(args_.src); }

  bool carries() const { return !args_.dst.on_chip() && !args_.src.on_chip(); }

  void copy_rows() const {
    const std::int64_t rows = is_vector_indirect(args_.src) ? args_.src.size(0) : args_.dst.size(0);
    const Rows to(name(), args_.dst, rows, args_.request.oob);
    const Rows from(name(), args_.src, rows, args_.request.oob);
    struct Move {
      Tensor dst;
      Tensor src;
    };
    std::vector<Move> moves;
    for (std::int64_t row = 0; row < rows; ++row) {  // all indices are judged before anything moves
      std::optional<Tensor> dst = to.row(row);
      std::optional<Tensor> src = from.row(row);
      if (dst && src) {
        if (!carries()) {
          require_row_written(name(), args_.src, *src, row);
        }
        moves.push_back({std::move(*dst), std::move(*src)});
      }
    }
    for (const Move& move : moves) {
      carry_written(move.dst, move.src);
      transfer(layout_of(move.dst), layout_of(move.src));  // a row scattered twice keeps the last
    }
  }

  Tensor dst_reach_;  // what an indirect side may touch; else the side itself
  Tensor src_reach_;
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(DmaCopy args) {
  return std::make_unique<DmaCopyInstruction>(std::move(args));
}

}  // namespace trena
