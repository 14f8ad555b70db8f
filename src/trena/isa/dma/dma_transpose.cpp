#include "trena/isa/dma/dma_transpose.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "trena/isa/core_state.h"
#include "trena/isa/dma/indirect.h"
#include "trena/isa/dma/transfer.h"
#include "trena/memory/rows.h"

namespace trena {
namespace {

// AWS nki.isa reference: the block of rows that the engines transpose together, and the widest row.
constexpr std::int64_t kBlockRows = 16;
constexpr std::int64_t kMaxColumns = 128;
constexpr std::int64_t kMaxIndexPartitions = 128;

std::vector<int> permutation(int rank) {
  switch (rank) {
    case 2:
      return {1, 0};
    case 3:
      return {2, 1, 0};
    case 4:
      return {3, 1, 2, 0};
    default:
      return {};
  }
}

// The dimensions of `tensor` without the first, in the order in which dst has them.
std::vector<Dim> permuted_tail(const Tensor& tensor, const std::vector<int>& axes) {
  std::vector<Dim> dims;
  for (std::size_t i = 0; i + 1 < axes.size(); ++i) {
    dims.push_back(tensor.dim(axes[i]));
  }
  return dims;
}

[[noreturn]] void refuse_shape(std::string here, std::string limit) {
  refuse("dma-transpose-shape",
         {.rule = "a DMA transpose moves blocks of rows whose shape its descriptors can express",
          .here = std::move(here),
          .limit = std::move(limit),
          .fix = "split the tensor, or transpose on the tensor engine (nc_transpose)"});
}

class DmaTransposeInstruction final : public InstructionOf<DmaTranspose> {
 public:
  explicit DmaTransposeInstruction(DmaTranspose args)
      : InstructionOf(std::move(args)),
        src_reach_(reachable(args_.src)),
        axes_(args_.axes ? *args_.axes : permutation(args_.src.rank())) {
    args_.src.unpin();  // src_reach_ keeps the bytes
  }

  std::string_view name() const override { return "dma_transpose"; }

  EngineKind engine(const Machine& machine) const override { return trigger(machine).engine; }

  void check(const Machine& machine) const override {
    require_dma_tensor(machine, name(), "dst", args_.dst);
    require_dma_tensor(machine, name(), "src", args_.src);
    require_space(name(), "dst", args_.dst, {Space::kSbuf});
    check_shape();
    const DmaTrigger chosen = trigger(machine);
    if (is_vector_indirect(args_.src)) {
      check_gather();
    } else if (args_.request.oob == OobMode::kSkip) {
      refuse("oob-refused",
             {.rule = "oob_mode.skip says what to do with an index outside the tensor",
              .here = "dma_transpose of a view without an index vector",
              .fix = "leave `oob_mode` out"});
    }
    if (chosen.mode == DgeMode::kHardware) {
      check_hardware_descriptors();
    }
  }

  void access(AccessList& list) const override {
    const bool gather = is_vector_indirect(args_.src);
    read_index(args_.src, list);
    list.add(src_reach_, gather ? AccessKind::kReadCarry : AccessKind::kRead);
    list.add(args_.dst, gather ? AccessKind::kWriteSome : AccessKind::kWrite);
  }

  void chosen_by_index(AccessList& list) const override {
    if (is_vector_indirect(args_.src)) {
      list.read(args_.src);
    }
  }

  void execute(CoreState&) const override {
    if (!is_vector_indirect(args_.src)) {
      std::vector<Dim> dims = permuted_tail(args_.src, axes_);
      dims.push_back(args_.src.dim(0));
      transfer(layout_of(args_.dst), {args_.src.dtype(), args_.src.data(), std::move(dims)});
      return;
    }
    // Row i of src becomes the last column i of dst.
    const Dim last = args_.dst.dim(args_.dst.rank() - 1);
    std::vector<Dim> column;
    for (int axis = 0; axis + 1 < args_.dst.rank(); ++axis) {
      column.push_back(args_.dst.dim(axis));
    }
    for (const auto& [row, source] : resolve_rows(name(), args_.src, args_.request.oob)) {
      const Tensor target = args_.dst.with(
          args_.dst.dtype(), args_.dst.offset_bytes() + row * last.stride_bytes, column);
      transfer(layout_of(target), {args_.src.dtype(), source.data(), permuted_tail(source, axes_)});
      mark_written(target);
    }
  }

  Cost cost(const Machine& machine) const override {
    const Dma& dma = machine.core.dma;
    DmaTraffic traffic = copy_traffic(args_.dst, args_.src);
    traffic.runs = std::max<std::int64_t>(1, args_.src.element_count() / run_elements(args_.src));
    // All engines work on one block of [128, 16] (AWS trainium2_arch.rst).
    traffic.partitions = machine.core.sbuf.partitions;
    traffic.indirect_rows = is_vector_indirect(args_.src) ? args_.src.size(0) : 0;
    traffic.slowdown = 1.0 / (args_.src.on_chip() ? dma.transpose_rate_sbuf : dma.transpose_rate);
    return dma_cost(machine, trigger(machine), traffic);
  }

  bool is_dma() const override { return true; }

  bool judges_values() const override { return is_vector_indirect(args_.src); }

 private:
  DmaTrigger trigger(const Machine& machine) const {
    DmaRequest request = args_.request;
    const bool gather = is_vector_indirect(args_.src);
    if (request.mode == DgeMode::kUnknown && !gather) {
      request.mode =
          DgeMode::kNone;  // known before the run; nothing published says what a compiler picks
    }
    if (request.mode == DgeMode::kSoftware && !gather) {
      refuse("dge-refused",
             {.rule = "software descriptors transpose only rows chosen by an index vector",
              .here = "dma_transpose with dge_mode=swdge of an ordinary view",
              .limit = "unknown, none or hwdge",
              .fix = "leave `dge_mode` out"});
    }
    return resolve_trigger(machine, name(), request,
                           {args_.dst.dtype() == args_.src.dtype(), gather});
  }

  void check_shape() const {
    if (axes_.empty() || axes_ != permutation(args_.src.rank())) {
      refuse("dma-transpose-axes", {.rule = "a DMA transpose permutes [1,0], [2,1,0] or [3,1,2,0]",
                                    .here = fmt::format("axes [{}] of {}", fmt::join(axes_, ", "),
                                                        args_.src.describe())});
    }
    bool same = args_.dst.element_count() == args_.src.element_count();
    for (int axis = 0; same && args_.dst.rank() == args_.src.rank() && axis < args_.dst.rank();
         ++axis) {
      same = args_.dst.size(axis) == args_.src.size(axes_[static_cast<std::size_t>(axis)]);
    }
    if (!same) {
      refuse_shape(
          fmt::format("`dst` is {}, `src` is {}", args_.dst.describe(), args_.src.describe()),
          "dst.shape[i] == src.shape[axes[i]]");
    }
    if (args_.dst.dtype() != args_.src.dtype()) {
      refuse("dtype-mismatch", {.rule = "dma_transpose moves bits: both sides have one type",
                                .here = fmt::format("`dst` is {}, `src` is {}",
                                                    args_.dst.describe(), args_.src.describe())});
    }
    const std::size_t width = size_bytes(args_.src.dtype());
    if (width != 2 && width != 4) {
      refuse("dtype-refused", {.rule = "the DMA transpose has a datapath for 2- and 4-byte types",
                               .here = fmt::format("`src` is {}", args_.src.describe()),
                               .limit = "2- or 4-byte types"});
    }
  }

  void check_hardware_descriptors() const {
    const std::int64_t rows = args_.src.size(0);
    const std::int64_t columns = args_.src.size(args_.src.rank() - 1);
    const bool power = rows == 1 || rows == 2 || rows == 4 || rows == 8 || rows == kBlockRows;
    const bool block = args_.src.rank() == 2
                           ? rows == kBlockRows
                           : power && rows * args_.src.size(args_.src.rank() - 2) % kBlockRows == 0;
    if (!block || columns > kMaxColumns || size_bytes(args_.src.dtype()) != 2) {
      refuse_shape(fmt::format("dge_mode=hwdge of {}", args_.src.describe()),
                   "2-byte types, at most 128 columns, and 16 rows (3-d and 4-d: 1, 2, 4, 8 or 16 "
                   "rows whose product "
                   "with src.shape[-2] is a multiple of 16)");
    }
  }

  void check_gather() const {
    const Tensor& index = *args_.src.indirection()->index;
    const std::int64_t index_columns = index.free_size();
    const std::int64_t partitions = index.partitions();
    const bool source = size_bytes(args_.src.dtype()) == 2 &&
                        args_.src.size(args_.src.rank() - 1) <= kMaxColumns &&
                        args_.src.size(0) % kBlockRows == 0 &&
                        (args_.src.rank() != 4 || args_.src.size(1) == 1 || args_.src.size(2) == 1);
    if (!source) {
      refuse_shape(fmt::format("a gathering transpose of {}", args_.src.describe()),
                   "2-byte types, at most 128 columns, a multiple of 16 rows; 4-d: src.shape[1] or "
                   "src.shape[2] is 1");
    }
    if (args_.dst.rank() != args_.src.rank()) {
      refuse_shape(
          fmt::format("`dst` is {}, `src` is {}", args_.dst.describe(), args_.src.describe()),
          "as many dimensions: row i of `src` becomes the last column i of `dst`");
    }
    const bool shape = partitions % kBlockRows == 0 && partitions <= kMaxIndexPartitions &&
                       (index_columns == 1 || partitions == kMaxIndexPartitions) &&
                       partitions * index_columns >= args_.src.size(0);
    if (!shape || index.dtype() != DType::kUint32 || index.space() != Space::kSbuf) {
      refuse_shape(
          fmt::format("its index is {}", index.describe()),
          "uint32 in SBUF, [16 … 128 in steps of 16, 1] or [128, N], at least one index per row");
    }
  }

  Tensor src_reach_;
  std::vector<int> axes_;
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(DmaTranspose args) {
  return std::make_unique<DmaTransposeInstruction>(std::move(args));
}

}  // namespace trena
