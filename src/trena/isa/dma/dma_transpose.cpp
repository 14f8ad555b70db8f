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

}  // namespace

DmaTranspose::DmaTranspose(Tensor dst, Tensor src, std::optional<std::vector<int>> axes,
                           DmaRequest request)
    : dst_(std::move(dst)),
      src_(std::move(src)),
      src_reach_(reachable(src_)),
      axes_(axes ? *axes : permutation(src_.rank())),
      request_(request) {
  src_.unpin();  // src_reach_ keeps the bytes
}

DmaTrigger DmaTranspose::trigger(const Machine& machine) const {
  DmaRequest request = request_;
  const bool gather = is_vector_indirect(src_);
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
  return resolve_trigger(machine, name(), request, {dst_.dtype() == src_.dtype(), gather});
}

EngineKind DmaTranspose::engine(const Machine& machine) const { return trigger(machine).engine; }

void DmaTranspose::check_shape() const {
  if (axes_.empty() || axes_ != permutation(src_.rank())) {
    refuse("dma-transpose-axes",
           {.rule = "a DMA transpose permutes [1,0], [2,1,0] or [3,1,2,0]",
            .here = fmt::format("axes [{}] of {}", fmt::join(axes_, ", "), src_.describe())});
  }
  bool same = dst_.element_count() == src_.element_count();
  for (int axis = 0; same && dst_.rank() == src_.rank() && axis < dst_.rank(); ++axis) {
    same = dst_.size(axis) == src_.size(axes_[static_cast<std::size_t>(axis)]);
  }
  if (!same) {
    refuse_shape(fmt::format("`dst` is {}, `src` is {}", dst_.describe(), src_.describe()),
                 "dst.shape[i] == src.shape[axes[i]]");
  }
  if (dst_.dtype() != src_.dtype()) {
    refuse("dtype-mismatch",
           {.rule = "dma_transpose moves bits: both sides have one type",
            .here = fmt::format("`dst` is {}, `src` is {}", dst_.describe(), src_.describe())});
  }
  const std::size_t width = size_bytes(src_.dtype());
  if (width != 2 && width != 4) {
    refuse("dtype-refused", {.rule = "the DMA transpose has a datapath for 2- and 4-byte types",
                             .here = fmt::format("`src` is {}", src_.describe()),
                             .limit = "2- or 4-byte types"});
  }
}

void DmaTranspose::check_hardware_descriptors() const {
  const std::int64_t rows = src_.size(0);
  const std::int64_t columns = src_.size(src_.rank() - 1);
  const bool power = rows == 1 || rows == 2 || rows == 4 || rows == 8 || rows == kBlockRows;
  const bool block = src_.rank() == 2
                         ? rows == kBlockRows
                         : power && rows * src_.size(src_.rank() - 2) % kBlockRows == 0;
  if (!block || columns > kMaxColumns || size_bytes(src_.dtype()) != 2) {
    refuse_shape(fmt::format("dge_mode=hwdge of {}", src_.describe()),
                 "2-byte types, at most 128 columns, and 16 rows (3-d and 4-d: 1, 2, 4, 8 or 16 "
                 "rows whose product "
                 "with src.shape[-2] is a multiple of 16)");
  }
}

void DmaTranspose::check_gather() const {
  const Tensor& index = *src_.indirection()->index;
  const std::int64_t index_columns = index.free_size();
  const std::int64_t partitions = index.partitions();
  const bool source = size_bytes(src_.dtype()) == 2 && src_.size(src_.rank() - 1) <= kMaxColumns &&
                      src_.size(0) % kBlockRows == 0 &&
                      (src_.rank() != 4 || src_.size(1) == 1 || src_.size(2) == 1);
  if (!source) {
    refuse_shape(fmt::format("a gathering transpose of {}", src_.describe()),
                 "2-byte types, at most 128 columns, a multiple of 16 rows; 4-d: src.shape[1] or "
                 "src.shape[2] is 1");
  }
  if (dst_.rank() != src_.rank()) {
    refuse_shape(fmt::format("`dst` is {}, `src` is {}", dst_.describe(), src_.describe()),
                 "as many dimensions: row i of `src` becomes the last column i of `dst`");
  }
  const bool shape = partitions % kBlockRows == 0 && partitions <= kMaxIndexPartitions &&
                     (index_columns == 1 || partitions == kMaxIndexPartitions) &&
                     partitions * index_columns >= src_.size(0);
  if (!shape || index.dtype() != DType::kUint32 || index.space() != Space::kSbuf) {
    refuse_shape(
        fmt::format("its index is {}", index.describe()),
        "uint32 in SBUF, [16 … 128 in steps of 16, 1] or [128, N], at least one index per row");
  }
}

void DmaTranspose::check(const Machine& machine) const {
  require_dma_tensor(machine, name(), "dst", dst_);
  require_dma_tensor(machine, name(), "src", src_);
  require_space(name(), "dst", dst_, {Space::kSbuf});
  check_shape();
  const DmaTrigger chosen = trigger(machine);
  if (is_vector_indirect(src_)) {
    check_gather();
  } else if (request_.oob == OobMode::kSkip) {
    refuse("oob-refused", {.rule = "oob_mode.skip says what to do with an index outside the tensor",
                           .here = "dma_transpose of a view without an index vector",
                           .fix = "leave `oob_mode` out"});
  }
  if (chosen.mode == DgeMode::kHardware) {
    check_hardware_descriptors();
  }
}

void DmaTranspose::access(AccessList& list) const {
  const bool gather = is_vector_indirect(src_);
  read_index(src_, list);
  list.add(src_reach_, gather ? AccessKind::kReadCarry : AccessKind::kRead);
  list.add(dst_, gather ? AccessKind::kWriteSome : AccessKind::kWrite);
}

bool DmaTranspose::judges_values() const { return is_vector_indirect(src_); }

void DmaTranspose::execute(CoreState&) const {
  if (!is_vector_indirect(src_)) {
    std::vector<Dim> dims = permuted_tail(src_, axes_);
    dims.push_back(src_.dim(0));
    transfer(layout_of(dst_), {src_.dtype(), src_.data(), std::move(dims)});
    return;
  }
  // Row i of src becomes the last column i of dst.
  const Dim last = dst_.dim(dst_.rank() - 1);
  std::vector<Dim> column;
  for (int axis = 0; axis + 1 < dst_.rank(); ++axis) {
    column.push_back(dst_.dim(axis));
  }
  for (const auto& [row, source] : resolve_rows(name(), src_, request_.oob)) {
    const Tensor target =
        dst_.with(dst_.dtype(), dst_.offset_bytes() + row * last.stride_bytes, column);
    transfer(layout_of(target), {src_.dtype(), source.data(), permuted_tail(source, axes_)});
    mark_written(target);
  }
}

Cost DmaTranspose::cost(const Machine& machine) const {
  const Dma& dma = machine.core.dma;
  DmaTraffic traffic = copy_traffic(dst_, src_);
  traffic.runs = std::max<std::int64_t>(1, src_.element_count() / run_elements(src_));
  // All engines work on one block of [128, 16] (AWS trainium2_arch.rst).
  traffic.partitions = machine.core.sbuf.partitions;
  traffic.indirect_rows = is_vector_indirect(src_) ? src_.size(0) : 0;
  traffic.slowdown = 1.0 / (src_.on_chip() ? dma.transpose_rate_sbuf : dma.transpose_rate);
  return dma_cost(machine, trigger(machine), traffic);
}

}  // namespace trena
