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

class DmaComputeInstruction final : public InstructionOf<DmaCompute> {
 public:
  explicit DmaComputeInstruction(DmaCompute args)
      : InstructionOf(std::move(args)), dst_reach_(reachable(args_.dst)) {
    for (const Tensor& source : args_.sources) {
      source_reach_.push_back(reachable(source));
      source.unpin();  // what access() lists keeps the bytes
    }
    args_.dst.unpin();
  }

  std::string_view name() const override { return "dma_compute"; }

  EngineKind engine(const Machine& machine) const override { return trigger(machine).engine; }

  void check(const Machine& machine) const override {
    if (args_.sources.empty() || args_.sources.size() > kMaxSources) {
      refuse_form("dma_compute combines 1 to 16 tensors",
                  fmt::format("{} sources", args_.sources.size()));
    }
    if (args_.op != AluOp::kAdd) {
      refuse("operator-refused",
             {.rule = "dma_compute adds", .here = "another `reduce_op`", .limit = "nl.add"});
    }
    if (args_.scales && (args_.scales->size() != args_.sources.size() ||
                         std::any_of(args_.scales->begin(), args_.scales->end(),
                                     [](float scale) { return scale != 1.0f; }))) {
      refuse_form("`scales` are all 1.0, one for each source",
                  fmt::format("{} scales", args_.scales->size()));
    }
    require_dma_tensor(machine, name(), "dst", args_.dst);
    for (const Tensor& source : args_.sources) {
      require_dma_tensor(machine, name(), "srcs", source);
      if (source.element_count() != args_.dst.element_count()) {
        refuse("dma-element-count",
               {.rule = "every source of dma_compute has as many elements as `dst`",
                .here = fmt::format("`dst` is {}, a source is {}", args_.dst.describe(),
                                    source.describe())});
      }
      if (is_packed_x4(source.dtype()) || is_packed_x4(args_.dst.dtype())) {
        refuse("dma-cast", {.rule = "DMA computes in float32; packed MX types have no value there",
                            .here = fmt::format("a source is {}", source.describe())});
      }
    }
    if (indirect()) {
      check_indirect();
    }
    trigger(machine);
  }

  void access(AccessList& list) const override {
    for (std::size_t i = 0; i < args_.sources.size(); ++i) {
      read_index(args_.sources[i], list);
      list.add(source_reach_[i],
               is_vector_indirect(args_.sources[i]) ? AccessKind::kReadCarry : AccessKind::kRead);
    }
    read_index(args_.dst, list);
    list.add(dst_reach_, indirect() ? AccessKind::kWriteSome : AccessKind::kWrite);
  }

  void chosen_by_index(AccessList& list) const override {
    for (const Tensor& source : args_.sources) {
      if (is_vector_indirect(source)) {
        list.read(source);
      }
    }
    if (is_vector_indirect(args_.dst)) {
      list.add(args_.dst, AccessKind::kUpdate);
    }
  }

  void execute(CoreState&) const override {
    if (indirect()) {
      execute_rows();
    } else {
      sum(args_.dst, args_.sources);
    }
  }

  Cost cost(const Machine& machine) const override {
    const Dma& dma = machine.core.dma;
    DmaTraffic traffic = copy_traffic(args_.dst, args_.sources.front());
    traffic.hbm_read_bytes = 0;
    bool accumulates = machine.legality.dma_accumulate_sbuf && args_.dst.space() == Space::kSbuf &&
                       args_.sources.size() == 2;
    for (const Tensor& source : args_.sources) {
      const DmaTraffic part = copy_traffic(args_.dst, source);
      traffic.runs = std::max(traffic.runs, part.runs);
      traffic.partitions = std::max(traffic.partitions, part.partitions);
      traffic.hbm_read_bytes += part.hbm_read_bytes;
      accumulates = accumulates && source.dtype() == args_.dst.dtype() &&
                    (source.dtype() == DType::kFloat32 || source.dtype() == DType::kBfloat16);
    }
    // Each source streams through the engine; adding into SBUF in place is the memory's own work
    // (v4, hw.md §1.7).
    accumulates = accumulates &&
                  std::any_of(args_.sources.begin(), args_.sources.end(),
                              [&](const Tensor& source) { return matches(source, args_.dst); });
    const auto streams = static_cast<double>(args_.sources.size());
    traffic.slowdown = accumulates ? 1.0 : std::max(streams, 1.0 / dma.accumulate_rate);
    traffic.indirect_rows = rows();
    return dma_cost(machine, trigger(machine), traffic);
  }

  bool is_dma() const override { return true; }
  bool judges_values() const override { return indirect(); }

 private:
  bool indirect() const {
    return is_vector_indirect(args_.dst) ||
           std::any_of(args_.sources.begin(), args_.sources.end(), is_vector_indirect);
  }

  std::int64_t rows() const {
    if (is_vector_indirect(args_.dst)) {
      return args_.dst.size(0);
    }
    const auto indirect_source =
        std::find_if(args_.sources.begin(), args_.sources.end(), is_vector_indirect);
    return indirect_source == args_.sources.end() ? 0 : indirect_source->size(0);
  }

  // AWS nki.isa reference: read-modify-write uses software descriptors, everything else static
  // ones.
  DmaTrigger trigger(const Machine& machine) const {
    DmaRequest request;
    request.mode = indirect() ? DgeMode::kSoftware : DgeMode::kNone;
    return resolve_trigger(machine, name(), request, {false, indirect()});
  }

  void check_indirect() const {
    const auto indirect_sources =
        std::count_if(args_.sources.begin(), args_.sources.end(), is_vector_indirect);
    const bool has_dst =
        std::any_of(args_.sources.begin(), args_.sources.end(),
                    [&](const Tensor& source) { return matches(source, args_.dst); });
    const bool scatters = is_vector_indirect(args_.dst);
    const bool memories = scatters || args_.dst.space() == Space::kSbuf;
    if (args_.sources.size() != 2 || indirect_sources != 1 || !has_dst || !memories) {
      refuse_form(
          "with an index vector dma_compute is dst(HBM)[index] += src(SBUF) or dst(SBUF) += "
          "src(HBM)[index]",
          fmt::format("`dst` is {}, {} sources, {} of them with vector_offset",
                      args_.dst.describe(), args_.sources.size(), indirect_sources));
    }
    if (!args_.unique_indices) {
      refuse_form("indices that repeat are not supported by the device", "unique_indices=False");
    }
  }

  void execute_rows() const {
    const Tensor& gathered =
        *std::find_if(args_.sources.begin(), args_.sources.end(), is_vector_indirect);
    const bool first_is_gathered = &gathered == &args_.sources.front();
    const Tensor& plain = first_is_gathered ? args_.sources.back() : args_.sources.front();
    const bool scatters = is_vector_indirect(args_.dst);
    const RowSplit plain_rows(name(), plain, rows());
    const std::vector<ResolvedRow> resolved = resolve_rows(name(), gathered, args_.oob);
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

  Tensor dst_reach_;
  std::vector<Tensor> source_reach_;
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(DmaCompute args) {
  return std::make_unique<DmaComputeInstruction>(std::move(args));
}

}  // namespace trena
