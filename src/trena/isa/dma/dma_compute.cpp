#include "trena/isa/dma/dma_compute.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "trena/isa/core_state.h"
#include "trena/isa/dma/indirect.h"
#include "trena/isa/dma/transfer.h"
#include "trena/memory/rows.h"
#include "trena/number/threads.h"

namespace trena {
namespace {

constexpr std::size_t kMaxSources = 16;  // AWS nki.isa reference

// The elements of a view as packed float32.
std::vector<float> packed(const Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.element_count()));
  const Layout stage{DType::kFloat32,
                     reinterpret_cast<std::byte*>(values.data()),
                     {{tensor.element_count(), sizeof(float)}}};
  transfer(stage, layout_of(tensor));
  return values;
}

// dst = the sum of `sources`, from the first to the last.
void sum(const Tensor& dst, const std::vector<Tensor>& sources) {
  std::vector<float> total = packed(sources.front());
  for (std::size_t i = 1; i < sources.size(); ++i) {
    const std::vector<float> next = packed(sources[i]);
    parallel_for_partitions(total.size(), total.size() / 8,
                            [&](std::size_t begin, std::size_t end) {
                              for (std::size_t element = begin; element < end; ++element) {
                                total[element] += next[element];
                              }
                            });
  }
  const auto count = static_cast<std::int64_t>(total.size());
  transfer(layout_of(dst),
           {DType::kFloat32, reinterpret_cast<std::byte*>(total.data()), {{count, sizeof(float)}}});
}

bool matches(const Tensor& a, const Tensor& b) {
  return a.buffer() == b.buffer() && a.offset_bytes() == b.offset_bytes() &&
         a.shape() == b.shape() && is_vector_indirect(a) == is_vector_indirect(b);
}

[[noreturn]] void refuse_form(std::string rule, std::string here) {
  refuse("dma-compute-form", {.rule = std::move(rule), .here = std::move(here)});
}

}  // namespace

DmaCompute::DmaCompute(Tensor dst, std::vector<Tensor> sources, AluOp op,
                       std::optional<std::vector<float>> scales, bool unique_indices, OobMode oob)
    : dst_(std::move(dst)),
      sources_(std::move(sources)),
      dst_reach_(reachable(dst_)),
      op_(op),
      scales_(std::move(scales)),
      unique_indices_(unique_indices),
      oob_(oob) {
  for (const Tensor& source : sources_) {
    source_reach_.push_back(reachable(source));
    source.unpin();  // what access() lists keeps the bytes
  }
  dst_.unpin();
}

bool DmaCompute::indirect() const {
  return is_vector_indirect(dst_) ||
         std::any_of(sources_.begin(), sources_.end(), is_vector_indirect);
}

std::int64_t DmaCompute::rows() const {
  if (is_vector_indirect(dst_)) {
    return dst_.size(0);
  }
  const auto indirect_source = std::find_if(sources_.begin(), sources_.end(), is_vector_indirect);
  return indirect_source == sources_.end() ? 0 : indirect_source->size(0);
}

// AWS nki.isa reference: read-modify-write uses software descriptors, everything else static ones.
DmaTrigger DmaCompute::trigger(const Machine& machine) const {
  DmaRequest request;
  request.mode = indirect() ? DgeMode::kSoftware : DgeMode::kNone;
  return resolve_trigger(machine, name(), request, {false, indirect()});
}

EngineKind DmaCompute::engine(const Machine& machine) const { return trigger(machine).engine; }

void DmaCompute::check(const Machine& machine) const {
  if (sources_.empty() || sources_.size() > kMaxSources) {
    refuse_form("dma_compute combines 1 to 16 tensors", fmt::format("{} sources", sources_.size()));
  }
  if (op_ != AluOp::kAdd) {
    refuse("operator-refused",
           {.rule = "dma_compute adds", .here = "another `reduce_op`", .limit = "nl.add"});
  }
  if (scales_ &&
      (scales_->size() != sources_.size() ||
       std::any_of(scales_->begin(), scales_->end(), [](float scale) { return scale != 1.0f; }))) {
    refuse_form("`scales` are all 1.0, one for each source",
                fmt::format("{} scales", scales_->size()));
  }
  require_dma_tensor(machine, name(), "dst", dst_);
  for (const Tensor& source : sources_) {
    require_dma_tensor(machine, name(), "srcs", source);
    if (source.element_count() != dst_.element_count()) {
      refuse(
          "dma-element-count",
          {.rule = "every source of dma_compute has as many elements as `dst`",
           .here = fmt::format("`dst` is {}, a source is {}", dst_.describe(), source.describe())});
    }
    if (is_packed_x4(source.dtype()) || is_packed_x4(dst_.dtype())) {
      refuse("dma-cast", {.rule = "DMA computes in float32; packed MX types have no value there",
                          .here = fmt::format("a source is {}", source.describe())});
    }
  }
  if (indirect()) {
    check_indirect();
  }
  trigger(machine);
}

void DmaCompute::check_indirect() const {
  const auto indirect_sources = std::count_if(sources_.begin(), sources_.end(), is_vector_indirect);
  const bool has_dst = std::any_of(sources_.begin(), sources_.end(),
                                   [&](const Tensor& source) { return matches(source, dst_); });
  const bool scatters = is_vector_indirect(dst_);
  const bool memories = scatters || dst_.space() == Space::kSbuf;
  if (sources_.size() != 2 || indirect_sources != 1 || !has_dst || !memories) {
    refuse_form(
        "with an index vector dma_compute is dst(HBM)[index] += src(SBUF) or dst(SBUF) += "
        "src(HBM)[index]",
        fmt::format("`dst` is {}, {} sources, {} of them with vector_offset", dst_.describe(),
                    sources_.size(), indirect_sources));
  }
  if (!unique_indices_) {
    refuse_form("indices that repeat are not supported by the device", "unique_indices=False");
  }
}

void DmaCompute::access(AccessList& list) const {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    read_index(sources_[i], list);
    list.add(source_reach_[i],
             is_vector_indirect(sources_[i]) ? AccessKind::kReadCarry : AccessKind::kRead);
  }
  read_index(dst_, list);
  list.add(dst_reach_, indirect() ? AccessKind::kWriteSome : AccessKind::kWrite);
}

void DmaCompute::execute(CoreState&) const {
  if (indirect()) {
    execute_rows();
  } else {
    sum(dst_, sources_);
  }
}

void DmaCompute::execute_rows() const {
  const Tensor& gathered = *std::find_if(sources_.begin(), sources_.end(), is_vector_indirect);
  const bool first_is_gathered = &gathered == &sources_.front();
  const Tensor& plain = first_is_gathered ? sources_.back() : sources_.front();
  const bool scatters = is_vector_indirect(dst_);
  const RowSplit plain_rows(name(), plain, rows());
  const std::vector<ResolvedRow> resolved = resolve_rows(name(), gathered, oob_);
  std::set<std::int64_t> seen;
  for (const ResolvedRow& entry : resolved) {
    const std::int64_t index = row_index(gathered, entry.place);
    if (scatters && !seen.insert(index).second) {
      throw Error(ErrorKind::kHazard, "dma-duplicate-index",
                  {.rule = "rows that dma_compute adds into are all different",
                   .here = fmt::format("index {} occurs again at row {}", index, entry.place),
                   .device = "one of the additions may be lost",
                   .fix = "combine rows of the same index first"});
    }
  }
  for (const auto& [place, row] : resolved) {
    const Tensor other = plain_rows.row(place);
    const Tensor target = scatters ? row : other;
    sum(target,
        first_is_gathered ? std::vector<Tensor>{row, other} : std::vector<Tensor>{other, row});
    mark_written(target);
  }
}

Cost DmaCompute::cost(const Machine& machine) const {
  const Dma& dma = machine.core.dma;
  DmaTraffic traffic = copy_traffic(dst_, sources_.front());
  traffic.hbm_read_bytes = 0;
  bool accumulates =
      machine.legality.dma_accumulate_sbuf && dst_.space() == Space::kSbuf && sources_.size() == 2;
  for (const Tensor& source : sources_) {
    const DmaTraffic part = copy_traffic(dst_, source);
    traffic.runs = std::max(traffic.runs, part.runs);
    traffic.partitions = std::max(traffic.partitions, part.partitions);
    traffic.hbm_read_bytes += part.hbm_read_bytes;
    accumulates = accumulates && source.dtype() == dst_.dtype() &&
                  (source.dtype() == DType::kFloat32 || source.dtype() == DType::kBfloat16);
  }
  // Each source streams through the engine; adding into SBUF in place is the memory's own work (v4,
  // hw.md §1.7).
  accumulates =
      accumulates && std::any_of(sources_.begin(), sources_.end(),
                                 [&](const Tensor& source) { return matches(source, dst_); });
  const auto streams = static_cast<double>(sources_.size());
  traffic.slowdown = accumulates ? 1.0 : std::max(streams, 1.0 / dma.accumulate_rate);
  traffic.indirect_rows = rows();
  return dma_cost(machine, trigger(machine), traffic);
}

}  // namespace trena
