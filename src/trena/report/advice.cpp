#include "trena/report/advice.h"

#include <fmt/format.h>

namespace trena {
namespace {

constexpr double kMost = 0.5;             // "more than half"
constexpr double kBusy = 0.7;             // of a row that binds without a doubt
constexpr std::int64_t kThrashLoads = 4;  // fewer loads may be one per function, which is fair
constexpr double kThrashFraction = 0.02;  // of the time
constexpr double kFp32Factor = 2.0;       // adjusted against plain flops

double part(Ticks some, Ticks all) {
  return all > 0 ? static_cast<double>(some) / static_cast<double>(all) : 0.0;
}

void launch_bound(const Summary& summary, std::vector<Advice>& advice) {
  if (part(summary.launch_time, summary.time) > kMost) {
    advice.push_back(
        {"launch-bound",
         fmt::format("starting the kernel takes {:.1f} of {:.1f} µs: give one launch more work",
                     us_from_ticks(summary.launch_time), us_from_ticks(summary.time))});
  }
}

void spilled(const Summary& summary, std::vector<Advice>& advice) {
  if (summary.dma.spilled_bytes > 0) {
    constexpr double kKib = 1024.0;
    advice.push_back(
        {"spilled",
         fmt::format("tensors alive at once need {:.0f} KiB per partition, SBUF has {:.0f}: "
                     "smaller blocks save {:.1f} MB of HBM traffic",
                     static_cast<double>(summary.memory.sbuf_peak_bytes) / kKib,
                     static_cast<double>(summary.memory.sbuf_usable_bytes) / kKib,
                     static_cast<double>(summary.dma.spilled_bytes) * 1e-6)});
  }
}

// A packet's bytes against all of its time (hw.md §2.7).
void tiny_descriptors(const Summary& summary, const Machine& machine, std::vector<Advice>& advice) {
  const DmaSummary& dma = summary.dma;
  if (dma.descriptors == 0 || dma.active_fraction < kBusy) {
    return;
  }
  const auto bytes = static_cast<std::int64_t>(dma.mean_descriptor_bytes);
  const double moving_ns = static_cast<double>(bytes) / machine.core.dma.packet_bytes_per_ns;
  const double efficiency = moving_ns / machine.core.dma.packet_time_ns(bytes);
  if (efficiency < kMost) {
    advice.push_back(
        {"tiny-descriptors",
         fmt::format("a descriptor moves {} B on average: {:.0f} % of a DMA engine's time is "
                     "overhead; make the innermost runs longer",
                     bytes, 100.0 * (1.0 - efficiency))});
  }
}

void table_thrash(const Summary& summary, std::vector<Advice>& advice) {
  const double share = part(summary.table_load_time, summary.time) / summary.cores;
  if (summary.table_loads >= kThrashLoads && share > kThrashFraction) {
    advice.push_back(
        {"table-thrash",
         fmt::format("{} activation table loads take {:.1f} µs of the scalar engine: group "
                     "the calls of one function",
                     summary.table_loads, us_from_ticks(summary.table_load_time))});
  }
}

void fp32_products(const Summary& summary, std::vector<Advice>& advice) {
  const auto tensor = static_cast<std::size_t>(EngineKind::kTensor);
  const bool binds = summary.engines[tensor].active_fraction >= kBusy;
  if (binds && summary.tensor.adjusted_hfu > kFp32Factor * summary.tensor.hfu) {
    advice.push_back(
        {"fp32-products",
         fmt::format("float32 products keep the tensor engine {:.1f} x as busy as bfloat16 ones "
                     "would",
                     summary.tensor.adjusted_hfu / summary.tensor.hfu)});
  }
}

}  // namespace

std::vector<Advice> find_advice(const Summary& summary, const Machine& machine) {
  std::vector<Advice> advice;
  launch_bound(summary, advice);
  spilled(summary, advice);
  tiny_descriptors(summary, machine, advice);
  table_thrash(summary, advice);
  fp32_products(summary, advice);
  return advice;
}

}  // namespace trena
