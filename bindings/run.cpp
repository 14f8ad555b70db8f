// Run: what one launch produced, as plain data (run.h names and units).
#include "bindings.h"
#include "trena/core/run.h"

namespace trena::bindings {

void bind_run(nb::module_& module) {
  nb::class_<Run>(module, "Run")
      .def_prop_ro("time_ns", [](const Run& run) { return ns_from_ticks(run.time); })
      .def_ro("machine", &Run::machine)
      .def_ro("cores", &Run::cores);
}

}  // namespace trena::bindings
