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

}  // namespace

DmaCopy::DmaCopy(Tensor dst, Tensor src, DmaRequest request)
    : dst_(std::move(dst)),
      src_(std::move(src)),
      dst_reach_(reachable(dst_)),
      src_reach_(reachable(src_)),
      request_(request) {
  // What access() lists keeps the bytes until the copy is done, and no longer.
  dst_.unpin();
  src_.unpin();
}

bool DmaCopy::indirect() const { return is_vector_indirect(dst_) || is_vector_indirect(src_); }

DmaNeeds DmaCopy::needs() const { return {dst_.dtype() == src_.dtype(), indirect()}; }

EngineKind DmaCopy::engine(const Machine& machine) const {
  return resolve_trigger(machine, name(), request_, needs()).engine;
}

void DmaCopy::check(const Machine& machine) const {
  require_dma_tensor(machine, name(), "dst", dst_);
  require_dma_tensor(machine, name(), "src", src_);
  require_castable(name(), dst_, src_);
  if (dst_.element_count() != src_.element_count()) {
    refuse("dma-element-count",
           {.rule = "a DMA copies as many elements as it reads; shapes may differ",
            .here =
                fmt::format("`dst` is {} ({} elements), `src` is {} ({} elements)", dst_.describe(),
                            dst_.element_count(), src_.describe(), src_.element_count()),
            .fix = "slice one of them"});
  }
  if (is_vector_indirect(dst_) && is_vector_indirect(src_) && dst_.size(0) != src_.size(0)) {
    refuse("dma-indirect-shape", {.rule = "a gather that also scatters moves row by row",
                                  .here = fmt::format("{} rows from {} to {}", src_.size(0),
                                                      src_.describe(), dst_.describe())});
  }
  resolve_trigger(machine, name(), request_, needs());
}

void DmaCopy::access(AccessList& list) const {
  read_index(src_, list);
  read_index(dst_, list);
  const bool some_rows = is_vector_indirect(src_);
  list.add(src_reach_, carries() || some_rows ? AccessKind::kReadCarry : AccessKind::kRead);
  list.add(dst_reach_, indirect()  ? AccessKind::kWriteSome
                       : carries() ? AccessKind::kWriteCarry
                                   : AccessKind::kWrite);
}

void DmaCopy::execute(CoreState&) const {
  if (indirect()) {
    copy_rows();
    return;
  }
  transfer(layout_of(dst_), layout_of(src_));
}

void DmaCopy::copy_rows() const {
  const std::int64_t rows = is_vector_indirect(src_) ? src_.size(0) : dst_.size(0);
  const Rows to(name(), dst_, rows, request_.oob);
  const Rows from(name(), src_, rows, request_.oob);
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
        require_row_written(name(), src_, *src, row);
      }
      moves.push_back({std::move(*dst), std::move(*src)});
    }
  }
  for (const Move& move : moves) {
    carry_written(move.dst, move.src);
    transfer(layout_of(move.dst), layout_of(move.src));  // a row scattered twice keeps the last
  }
}

Cost DmaCopy::cost(const Machine& machine) const {
  DmaTraffic traffic = copy_traffic(dst_, src_);
  traffic.indirect_rows = !indirect() ? 0 : is_vector_indirect(src_) ? src_.size(0) : dst_.size(0);
  return dma_cost(machine, resolve_trigger(machine, name(), request_, needs()), traffic);
}

}  // namespace trena
