// Run: what one launch produced, as plain data (run.h names and units).
#include "bindings.h"
#include "trena/core/run.h"

namespace trena::bindings {

void bind_run(nb::module_& module) {
  nb::class_<Run>(module, "Run")
      .def_prop_ro("time_ns", [](const Run& run) { return ns_from_ticks(run.time); })
      .def_ro("machine", &Run::machine)
      .def_ro("cores", &Run::cores)
      .def_prop_ro("debug", [](const Run& run) {
        const CoreRun& core = run.per_core[0];
        const double total = ns_from_ticks(run.time);
        nb::dict result;
        for (int engine = 0; engine < kEngineCount; ++engine) {
          result[std::string(name(static_cast<EngineKind>(engine))).c_str()] =
              100.0 * ns_from_ticks(core.engines[engine].active) / total;
        }
        result["dma"] = 100.0 * ns_from_ticks(core.dma_active) / total;
        result["gb"] = static_cast<double>(core.hbm_read_bytes + core.hbm_write_bytes) / 1e9;
        result["spilled_gb"] = static_cast<double>(core.spilled_bytes) / 1e9;
        result["packet_ms"] = ns_from_ticks(core.packet_time) / 1e6;
        result["macs"] = core.multiply_accumulates;
        return result;
      });
}

}  // namespace trena::bindings
