#include "trena/report/summary.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "trena/report/advice.h"

namespace trena {
namespace {

// A row that is busy for less than this part of the time does not bind it: something waits.
constexpr double kBindingFraction = 0.5;
// Of what the DMA engines of a core can draw: above it the stack is what a transfer waits for.
constexpr double kBandwidthFraction = 0.8;

Evidence worst_of(const Machine& machine, std::initializer_list<std::string_view> keys) {
  Evidence worst = Evidence::kDocumented;
  for (const std::string_view key : keys) {
    const auto found = machine.sources.find(key);  // a feature this generation lacks has no figure
    if (found != machine.sources.end()) {
      worst = std::max(worst, found->second.evidence);
    }
  }
  return worst;
}

double fraction(double part, double whole) { return whole > 0 ? part / whole : 0.0; }

// What the events of each engine say about their laws; DMA has no law of its own per instruction.
std::array<EvidenceShare, kEngineCount> busy_by_evidence(const Run& run, const Machine& machine) {
  std::array<EvidenceShare, kEngineCount> shares;
  std::array<Evidence, kEngineCount> usual{};
  for (int engine = 0; engine < kEngineCount; ++engine) {
    usual[static_cast<std::size_t>(engine)] =
        engine_evidence(machine, static_cast<EngineKind>(engine));
  }
  for (const RunEvent& event : run.events) {
    if (!event.dma) {
      const auto engine = static_cast<std::size_t>(event.engine);
      shares[engine].add(event.evidence.value_or(usual[engine]),
                         static_cast<double>(event.busy_until - event.start));
    }
  }
  return shares;
}

// `share` in proportion, so that it adds up to the active time (events may overlap, or be left
// out).
EvidenceShare scaled(const EvidenceShare& share, Ticks active, Evidence usual) {
  EvidenceShare result;
  const double total = share.total();
  if (total <= 0) {
    result.add(usual, static_cast<double>(active));
    return result;
  }
  for (std::size_t k = 0; k < share.ticks.size(); ++k) {
    result.ticks[k] = share.ticks[k] / total * static_cast<double>(active);
  }
  return result;
}

void add_engines(Summary& summary, const Run& run, const Machine& machine) {
  const auto shares = busy_by_evidence(run, machine);
  for (std::size_t k = 0; k < summary.engines.size(); ++k) {
    EngineSummary& engine = summary.engines[k];
    engine.engine = static_cast<EngineKind>(k);
    for (const CoreRun& core : run.per_core) {
      engine.instructions += core.engines[k].instructions;
      engine.active += core.engines[k].active;
    }
    engine.active_fraction =
        fraction(static_cast<double>(engine.active), static_cast<double>(run.time) * run.cores);
    engine.evidence = scaled(shares[k], engine.active, engine_evidence(machine, engine.engine));
    summary.instructions += engine.instructions;
    summary.evidence.add(engine.evidence);
  }
}

double stacks_in_use(const Run& run, const Machine& machine) {
  const std::int64_t per_stack = std::max<std::int64_t>(1, machine.hbm.cores_per_stack);
  const std::int64_t stacks = (run.cores + per_stack - 1) / per_stack;
  return static_cast<double>(stacks);
}

void add_dma(Summary& summary, const Run& run, const Machine& machine) {
  DmaSummary& dma = summary.dma;
  for (const CoreRun& core : run.per_core) {
    dma.transfers += core.dma_transfers;
    summary.instructions += core.dma_transfers;
    dma.descriptors += core.descriptors;
    dma.active += core.dma_active;
    dma.packet_time += core.packet_time;
    dma.hbm_read_bytes += core.hbm_read_bytes;
    dma.hbm_write_bytes += core.hbm_write_bytes;
    dma.spilled_bytes += core.spilled_bytes;
  }
  const double time = static_cast<double>(run.time);
  const auto bytes = static_cast<double>(dma.hbm_read_bytes + dma.hbm_write_bytes);
  dma.active_fraction = fraction(static_cast<double>(dma.active), time * run.cores);
  dma.mean_descriptor_bytes = fraction(bytes, static_cast<double>(dma.descriptors));
  dma.mbu = fraction(bytes,
                     ns_from_ticks(run.time) * machine.hbm.stack_gbs * stacks_in_use(run, machine));
  dma.evidence.add(dma_evidence(machine), static_cast<double>(dma.active));
  summary.evidence.add(dma.evidence);
}

void add_tensor(Summary& summary, const Run& run, const Machine& machine) {
  TensorSummary& tensor = summary.tensor;
  double transposes = 0;
  double model = 0;
  double hardware = 0;
  for (const CoreRun& core : run.per_core) {
    tensor.multiply_accumulates += core.multiply_accumulates;
    transposes += static_cast<double>(core.transpose_multiply_accumulates);
    model += core.model_flops;
    hardware += core.hardware_flops;
  }
  const double possible = ns_from_ticks(run.time) * machine.peak_flops_per_ns() * run.cores;
  const auto useful = static_cast<double>(tensor.multiply_accumulates);
  tensor.mfu = fraction(2.0 * useful, possible);
  tensor.hfu = fraction(2.0 * (useful + transposes), possible);
  tensor.adjusted_mfu = fraction(model, possible);
  tensor.adjusted_hfu = fraction(hardware, possible);
}

void add_memory(Summary& summary, const Run& run, const Machine& machine) {
  for (const CoreRun& core : run.per_core) {
    summary.memory.sbuf_peak_bytes = std::max(summary.memory.sbuf_peak_bytes, core.sbuf_peak_bytes);
    summary.memory.psum_peak_banks = std::max(summary.memory.psum_peak_banks, core.psum_peak_banks);
    summary.table_loads += core.table_loads;
    summary.table_load_time += core.table_load_time;
  }
  summary.memory.sbuf_usable_bytes = machine.core.sbuf.usable_bytes();
  summary.memory.psum_banks = machine.core.psum.banks;
}

struct Row {
  std::string name;
  std::string what;
  double fraction;
};

std::string dma_row_name(const Summary& summary, const Machine& machine) {
  const auto bytes = static_cast<double>(summary.dma.hbm_read_bytes + summary.dma.hbm_write_bytes);
  const double drawn =
      fraction(bytes, ns_from_ticks(summary.dma.active));  // bytes per ns of a core
  return drawn >= kBandwidthFraction * machine.hbm.core_gbs ? "HBM bandwidth" : "DMA";
}

std::vector<Row> busy_rows(const Summary& summary, const Machine& machine) {
  std::vector<Row> rows;
  for (const EngineSummary& engine : summary.engines) {
    const std::string row(name(engine.engine));
    rows.push_back({row, row + " engine", engine.active_fraction});
  }
  rows.push_back({"dma", dma_row_name(summary, machine), summary.dma.active_fraction});
  rows.push_back(
      {"launch", "launch",
       fraction(static_cast<double>(summary.launch_time), static_cast<double>(summary.time))});
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.fraction > b.fraction; });
  return rows;
}

Bound find_bound(const Summary& summary, const Machine& machine) {
  const std::vector<Row> rows = busy_rows(summary, machine);
  const Row& first = rows[0];
  const Row& second = rows[1];
  Bound bound;
  const bool binds = first.fraction >= kBindingFraction;
  bound.what = binds ? first.what : "waiting";
  bound.fraction = first.fraction;
  bound.row = first.name;
  const Row& next = binds ? second : first;
  if (next.fraction > 0) {
    bound.then = next.what;
    bound.then_fraction = next.fraction;
  }
  return bound;
}

}  // namespace

void EvidenceShare::add(const EvidenceShare& other) {
  for (std::size_t k = 0; k < ticks.size(); ++k) {
    ticks[k] += other.ticks[k];
  }
}

double EvidenceShare::total() const { return std::accumulate(ticks.begin(), ticks.end(), 0.0); }

double EvidenceShare::fraction(Evidence evidence) const {
  return trena::fraction(ticks[static_cast<std::size_t>(evidence)], total());
}

Evidence EvidenceShare::worst() const {
  for (std::size_t k = ticks.size(); k-- > 0;) {
    if (ticks[k] > 0) {
      return static_cast<Evidence>(k);
    }
  }
  return Evidence::kDocumented;
}

std::string_view name(SchedulePolicy policy) {
  return policy == SchedulePolicy::kProgram ? "program" : "list";
}

std::string_view name(SpillPolicy policy) {
  return policy == SpillPolicy::kAuto ? "auto" : "error";
}

Evidence engine_evidence(const Machine& machine, EngineKind engine) {
  switch (engine) {
    case EngineKind::kTensor:
      return worst_of(
          machine, {"core.tensor.clock_ghz", "core.tensor.moving_cycles_per_column",
                    "core.tensor.stationary_cycles_per_column", "core.tensor.matmul_fixed_cycles",
                    "core.tensor.load_fixed_cycles", "core.tensor.throttle.floor"});
    case EngineKind::kVector:
      return worst_of(machine, {"core.vector.clock_ghz", "core.vector.issue_overhead_cycles"});
    case EngineKind::kScalar:
      return worst_of(machine, {"core.scalar.clock_ghz", "core.scalar.issue_overhead_cycles"});
    case EngineKind::kGpsimd:
      return worst_of(machine, {"core.gpsimd.clock_ghz", "core.gpsimd.issue_overhead_cycles"});
    case EngineKind::kSync:
      return worst_of(machine, {"core.sequencer.clock_ghz", "core.sync.compute_ns"});
  }
  return Evidence::kEstimate;
}

Evidence dma_evidence(const Machine& machine) {
  return worst_of(
      machine, {"core.dma.packet_ns", "core.dma.packet_bytes_per_ns", "core.dma.load.dispatch_ns",
                "core.dma.store.dispatch_ns", "hbm.core_gbs"});
}

Summary summarise(const Run& run, const Machine& machine) {
  Summary summary;
  summary.machine = run.machine;
  summary.cores = run.cores;
  summary.options = run.options;
  summary.time = run.time;
  summary.launch_time = run.launch_time;
  add_engines(summary, run, machine);
  add_dma(summary, run, machine);
  add_tensor(summary, run, machine);
  add_memory(summary, run, machine);
  summary.bound = find_bound(summary, machine);
  summary.stalls = aggregate_stalls(run);
  summary.advice = find_advice(summary, machine);
  return summary;
}

}  // namespace trena
