// Run: what one launch produced, as plain data (run.h and report/summary.h name and define it).
#include "trena/core/run.h"

#include <nanobind/ndarray.h>

#include <chrono>
#include <map>

#include "bindings.h"
#include "trena/core/placement/placement.h"
#include "trena/core/timeline/timeline.h"
#include "trena/report/critical_path.h"
#include "trena/report/perfetto.h"
#include "trena/report/summary.h"

namespace trena::bindings {
namespace {

// The layout of Run.summary(); a change that removes or renames a key counts it up.
constexpr std::string_view kSchema = "trena.run/1";

constexpr std::array<Evidence, kEvidenceCount> kEvidences = {
    Evidence::kDocumented, Evidence::kMeasured, Evidence::kEstimate, Evidence::kExtrapolated,
    Evidence::kGiven};

// One engine, or the DMA rings, over all cores.
struct RowUse {
  double active = 0;  // as a part of the time
  double active_ns = 0;
  std::int64_t instructions = 0;
};

RowUse row_use(const Run& run, Ticks active, std::int64_t instructions) {
  const double whole = static_cast<double>(run.time) * run.cores;
  return {whole > 0 ? static_cast<double>(active) / whole : 0.0, ns_from_ticks(active),
          instructions};
}

nb::dict engines(const Run& run) {
  nb::dict result;
  for (int k = 0; k < kEngineCount; ++k) {
    EngineUse sum;
    for (const CoreRun& core : run.per_core) {
      sum.instructions += core.engines[static_cast<std::size_t>(k)].instructions;
      sum.active += core.engines[static_cast<std::size_t>(k)].active;
    }
    const std::string name(trena::name(static_cast<EngineKind>(k)));
    result[name.c_str()] = row_use(run, sum.active, sum.instructions);
  }
  return result;
}

RowUse dma(const Run& run) {
  CoreRun sum;
  for (const CoreRun& core : run.per_core) {
    sum.dma_active += core.dma_active;
    sum.dma_transfers += core.dma_transfers;
  }
  return row_use(run, sum.dma_active, sum.dma_transfers);
}

template <auto Member>
auto total(const Run& run) {
  std::int64_t sum = 0;
  for (const CoreRun& core : run.per_core) {
    sum += static_cast<std::int64_t>(core.*Member);
  }
  return sum;
}

template <auto Member>
auto peak(const Run& run) {
  std::int64_t most = 0;
  for (const CoreRun& core : run.per_core) {
    most = std::max(most, static_cast<std::int64_t>(core.*Member));
  }
  return most;
}

nb::dict evidence_dict(const EvidenceShare& share) {
  nb::dict result;
  result["worst"] = std::string(to_string(share.worst()));
  nb::dict parts;
  for (const Evidence evidence : kEvidences) {
    parts[std::string(to_string(evidence)).c_str()] = share.fraction(evidence);
  }
  result["parts"] = parts;
  return result;
}

nb::dict line_dict(const SourceLine& line) {
  nb::dict result;
  result["file"] = line.file;
  result["line"] = line.line;
  return result;
}

// What a line spent its time on, in a list of stalls and on the critical path alike.
template <typename Part>
nb::dict time_of_line(const Part& part) {
  nb::dict result;
  result["time_ns"] = ns_from_ticks(part.time);
  result["count"] = part.count;
  result["row"] = part.row;
  result["instruction"] = part.name;
  result["at"] = line_dict(part.line);
  return result;
}

nb::list stall_list(const std::vector<Stall>& stalls, std::size_t most) {
  nb::list result;
  for (std::size_t k = 0; k < std::min(most, stalls.size()); ++k) {
    const Stall& stall = stalls[k];
    nb::dict entry = time_of_line(stall);
    entry["waited_for_row"] = stall.cause_row;
    entry["waited_for"] = stall.cause_name;
    entry["waited_for_at"] = line_dict(stall.cause_line);
    entry["waited_for_spill"] = stall.cause_spill;
    result.append(entry);
  }
  return result;
}

nb::dict engine_dicts(const Summary& summary) {
  nb::dict result;
  for (const EngineSummary& engine : summary.engines) {
    nb::dict entry;
    entry["active"] = engine.active_fraction;
    entry["active_ns"] = ns_from_ticks(engine.active);
    entry["instructions"] = engine.instructions;
    entry["evidence"] = evidence_dict(engine.evidence);
    result[std::string(name(engine.engine)).c_str()] = entry;
  }
  return result;
}

nb::dict dma_dict(const DmaSummary& dma) {
  nb::dict result;
  result["active"] = dma.active_fraction;
  result["active_ns"] = ns_from_ticks(dma.active);
  result["transfers"] = dma.transfers;
  result["descriptors"] = dma.descriptors;
  result["mean_descriptor_bytes"] = dma.mean_descriptor_bytes;
  result["packet_time_ns"] = ns_from_ticks(dma.packet_time);
  result["hbm_read_bytes"] = dma.hbm_read_bytes;
  result["hbm_write_bytes"] = dma.hbm_write_bytes;
  result["spilled_bytes"] = dma.spilled_bytes;
  result["mbu"] = dma.mbu;
  result["evidence"] = evidence_dict(dma.evidence);
  return result;
}

nb::dict utilisation_dict(const TensorSummary& tensor) {
  nb::dict result;
  result["mfu"] = tensor.mfu;
  result["hfu"] = tensor.hfu;
  result["adjusted_mfu"] = tensor.adjusted_mfu;
  result["adjusted_hfu"] = tensor.adjusted_hfu;
  result["multiply_accumulates"] = tensor.multiply_accumulates;
  return result;
}

nb::dict memory_dict(const MemorySummary& memory) {
  nb::dict result;
  result["sbuf_peak_bytes_per_partition"] = memory.sbuf_peak_bytes;
  result["sbuf_usable_bytes_per_partition"] = memory.sbuf_usable_bytes;
  result["psum_peak_banks"] = memory.psum_peak_banks;
  result["psum_banks"] = memory.psum_banks;
  return result;
}

nb::dict bound_dict(const Bound& bound) {
  nb::dict result;
  result["by"] = bound.what;
  result["row"] = bound.row;
  result["active"] = bound.fraction;
  result["then"] = bound.then;
  result["then_active"] = bound.then_fraction;
  return result;
}

nb::list path_list(const std::vector<PathPart>& parts) {
  nb::list result;
  for (const PathPart& part : parts) {
    nb::dict entry = time_of_line(part);
    entry["spill"] = part.spill;
    result.append(entry);
  }
  return result;
}

nb::list advice_list(const std::vector<Advice>& advice) {
  nb::list result;
  for (const Advice& item : advice) {
    nb::dict entry;
    entry["id"] = item.id;
    entry["text"] = item.text;
    result.append(entry);
  }
  return result;
}

nb::dict evidence_of_time(const Summary& summary) {
  nb::dict result = evidence_dict(summary.evidence);
  // What a real compiler would have scheduled is Trena's own guess (design.md §6).
  result["schedule"] = summary.options.schedule == SchedulePolicy::kList
                           ? "estimate (Trena schedule)"
                           : "as written";
  return result;
}

nb::dict summary_dict(const Run& run, const Machine& machine) {
  const Summary summary = summarise(run, machine);
  nb::dict result;
  result["schema"] = std::string(kSchema);
  result["machine"] = summary.machine;
  result["cores"] = summary.cores;
  result["schedule"] = std::string(name(summary.options.schedule));
  result["spill_policy"] = std::string(name(summary.options.spill));
  result["time_ns"] = ns_from_ticks(summary.time);
  result["launch_ns"] = ns_from_ticks(summary.launch_time);
  result["instructions"] = summary.instructions;
  result["bound"] = bound_dict(summary.bound);
  result["engines"] = engine_dicts(summary);
  result["dma"] = dma_dict(summary.dma);
  result["utilisation"] = utilisation_dict(summary.tensor);
  result["tables"] = nb::dict();
  result["tables"]["loads"] = summary.table_loads;
  result["tables"]["time_ns"] = ns_from_ticks(summary.table_load_time);
  result["memory"] = memory_dict(summary.memory);
  result["stalls"] = stall_list(summary.stalls, summary.stalls.size());
  result["advice"] = advice_list(summary.advice);
  result["evidence"] = evidence_of_time(summary);
  return result;
}

// A column of the events as a NumPy array that owns its values.
template <typename T, typename Get>
nb::object column(const Run& run, Get&& get) {
  auto* values = new std::vector<T>();
  values->reserve(run.events.size());
  for (const RunEvent& event : run.events) {
    values->push_back(static_cast<T>(get(event)));
  }
  nb::capsule owner(values, [](void* data) noexcept { delete static_cast<std::vector<T>*>(data); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(values->data(), {values->size()}, owner));
}

nb::list event_names(const Run& run) {
  std::map<std::string_view, nb::object> texts;
  nb::list result;
  for (const RunEvent& event : run.events) {
    const auto [found, fresh] = texts.try_emplace(event.name);
    if (fresh) {
      found->second = nb::cast(std::string(event.name));
    }
    result.append(found->second);
  }
  return result;
}

nb::list row_names() {
  nb::list result;
  for (int queue = 0; queue < kQueuesPerCore; ++queue) {
    result.append(queue_name(queue));
  }
  return result;
}

nb::dict events(const Run& run) {
  nb::dict result;
  result["name"] = event_names(run);
  result["rows"] = row_names();
  result["core"] = column<std::int32_t>(run, [](const RunEvent& e) { return e.core; });
  result["row"] = column<std::int32_t>(run, [](const RunEvent& e) { return e.queue; });
  result["file"] = column<std::int32_t>(run, [](const RunEvent& e) { return e.position.file; });
  result["line"] = column<std::int32_t>(run, [](const RunEvent& e) { return e.position.line; });
  result["issue_ns"] =
      column<double>(run, [](const RunEvent& e) { return ns_from_ticks(e.issue); });
  result["start_ns"] =
      column<double>(run, [](const RunEvent& e) { return ns_from_ticks(e.start); });
  result["busy_until_ns"] =
      column<double>(run, [](const RunEvent& e) { return ns_from_ticks(e.busy_until); });
  result["end_ns"] = column<double>(run, [](const RunEvent& e) { return ns_from_ticks(e.end); });
  result["cause"] = column<std::int64_t>(run, [](const RunEvent& e) { return e.cause; });
  result["stall_ns"] =
      column<double>(run, [](const RunEvent& e) { return ns_from_ticks(e.stall); });
  result["bytes"] = column<std::int64_t>(run, [](const RunEvent& e) { return e.bytes; });
  result["load_weights_ns"] =
      column<double>(run, [](const RunEvent& e) { return ns_from_ticks(e.load_weights); });
  result["multiply_ns"] =
      column<double>(run, [](const RunEvent& e) { return ns_from_ticks(e.multiply); });
  result["trigger_ns"] =
      column<double>(run, [](const RunEvent& e) { return ns_from_ticks(e.trigger); });
  result["packets_ns"] =
      column<double>(run, [](const RunEvent& e) { return ns_from_ticks(e.packets); });
  result["packet_count"] =
      column<std::int64_t>(run, [](const RunEvent& e) { return e.packet_count; });
  result["spill"] = column<std::uint8_t>(run, [](const RunEvent& e) { return e.spill; });
  return result;
}

// What finishing a program costs this host: (placement, clock). For bench/, which may not guess.
std::pair<double, double> phase_seconds(const Program& program, std::string_view schedule) {
  using Clock = std::chrono::steady_clock;
  Run run;
  run.options.schedule = schedule == "program" ? SchedulePolicy::kProgram : SchedulePolicy::kList;
  run.cores = program.core_count();
  run.per_core.resize(static_cast<std::size_t>(run.cores));
  const Clock::time_point start = Clock::now();
  std::vector<Stream> streams;
  for (int core = 0; core < run.cores; ++core) {
    streams.push_back(place(program, core, program.machine(), SpillPolicy::kAuto));
  }
  const Clock::time_point placed = Clock::now();
  simulate(program, program.machine(), streams, run);
  const Clock::time_point timed = Clock::now();
  return {std::chrono::duration<double>(placed - start).count(),
          std::chrono::duration<double>(timed - placed).count()};
}

}  // namespace

void bind_run(nb::module_& module) {
  nb::class_<RowUse>(module, "RowUse",
                     "How busy one engine, or the DMA rings, were over all cores.")
      .def_ro("active", &RowUse::active, "part of the whole time, 0 to 1")
      .def_ro("active_ns", &RowUse::active_ns, "summed over cores")
      .def_ro("instructions", &RowUse::instructions)
      .def("__repr__", [](const RowUse& use) {
        return "RowUse(active=" + std::to_string(use.active) +
               ", instructions=" + std::to_string(use.instructions) + ")";
      });

  nb::class_<Run>(module, "Run", "What the clock says about one launch; times are of the device.")
      .def_prop_ro("time_ns", [](const Run& run) { return ns_from_ticks(run.time); })
      .def_prop_ro("time_us", [](const Run& run) { return us_from_ticks(run.time); })
      .def_prop_ro(
          "launch_ns", [](const Run& run) { return ns_from_ticks(run.launch_time); },
          "fixed part of the time: start and stop of a kernel")
      .def_ro("machine", &Run::machine)
      .def_ro("cores", &Run::cores)
      .def_prop_ro("schedule",
                   [](const Run& run) { return std::string(name(run.options.schedule)); })
      .def_prop_ro("spill_policy",
                   [](const Run& run) { return std::string(name(run.options.spill)); })
      .def_prop_ro("engines", engines, "name -> RowUse")
      .def_prop_ro("dma", dma, "RowUse of the DMA rings; instructions counts transfers")
      .def_prop_ro("hbm_read_bytes", total<&CoreRun::hbm_read_bytes>)
      .def_prop_ro("hbm_write_bytes", total<&CoreRun::hbm_write_bytes>)
      .def_prop_ro("spilled_bytes", total<&CoreRun::spilled_bytes>,
                   "of the HBM bytes, what placement added")
      .def_prop_ro("descriptors", total<&CoreRun::descriptors>)
      .def_prop_ro("packet_time_ns",
                   [](const Run& run) { return ns_from_ticks(total<&CoreRun::packet_time>(run)); })
      .def_prop_ro("multiply_accumulates", total<&CoreRun::multiply_accumulates>)
      .def_prop_ro("table_loads", total<&CoreRun::table_loads>)
      .def_prop_ro(
          "table_load_ns",
          [](const Run& run) { return ns_from_ticks(total<&CoreRun::table_load_time>(run)); })
      .def_prop_ro("sbuf_peak_bytes", peak<&CoreRun::sbuf_peak_bytes>,
                   "per partition, fullest core")
      .def_prop_ro("psum_peak_banks", peak<&CoreRun::psum_peak_banks>)
      .def_prop_ro("event_count", [](const Run& run) { return run.events.size(); })
      .def_ro("files", &Run::files)
      .def_prop_ro(
          "findings", [](const Run& run) { return finding_list(run.findings); },
          "what check/ found: dicts with id, kind, severity, rule, here, limit, device, fix, at, "
          "other, core, count")
      .def(
          "stalls",
          [](const Run& run, std::size_t n) { return stall_list(aggregate_stalls(run), n); },
          "n"_a = 10, "who waited longest, for whom, at which lines")
      .def(
          "critical_path", [](const Run& run) { return path_list(critical_path(run)); },
          "why it took that long: parts, by line, that add up to the time without the launch")
      .def("events", events, "columns, one entry per instruction; `cause` indexes them, -1 is none")
      .def("to_perfetto", write_perfetto, "path"_a, "a trace for https://ui.perfetto.dev")
      .def("summary", summary_dict, "machine"_a, "every figure of a report, schema trena.run/1");

  module.def("phase_seconds", phase_seconds, "program"_a, "schedule"_a = "program",
             "(placement, clock) in seconds of this host, for benchmarks");
}

}  // namespace trena::bindings
