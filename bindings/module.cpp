#include "bindings.h"

NB_MODULE(_core, module) {
  namespace bindings = trena::bindings;
  // The element types and memories registered by Python live as long as the process: that is no
  // leak.
  nb::set_leak_warnings(false);
  module.attr("version") = TRENA_VERSION;
  bindings::bind_errors(module);
  bindings::bind_number(module);
  bindings::bind_machine(module);
  bindings::bind_objects(module);
  bindings::bind_memory(module);
  bindings::bind_run(module);
  bindings::bind_loops(module);
  bindings::bind_rendezvous(module);
  bindings::bind_program(module);
  bindings::bind_nki_isa(module);
  bindings::bind_fabric(module);
  bindings::bind_graph(module);
}
