// Machine: a chip as Python sees it. What a figure means, and where it comes from, is in the
// hardware file.
#include "trena/machine/machine.h"

#include "bindings.h"
#include "trena/machine/load.h"

namespace trena::bindings {
namespace {

// (key, value, unit, evidence, source, meaning), in the order of the file.
nb::list describe_machine(const Machine& machine) {
  nb::list rows;
  for (const Description& row : describe(machine)) {
    rows.append(
        nb::make_tuple(row.key, row.value, row.unit, row.evidence, row.source, row.meaning));
  }
  return rows;
}

}  // namespace

void bind_machine(nb::module_& module) {
  nb::class_<Machine>(module, "Machine")
      .def_static(
          "find",
          [](std::string_view name, const std::string& hardware_dir) {
            return load_machine(find_machine(name, hardware_dir));
          },
          "name_or_path"_a, "hardware_dir"_a)
      .def(
          "copy", [](const Machine& self) { return self; }, "A machine of its own, to change.")
      .def(
          "set", [](Machine& self, std::string_view assignment) { set_value(self, assignment); },
          "assignment"_a, "Applies KEY=VALUE.")
      .def("describe", describe_machine)
      .def_prop_ro("name", [](const Machine& self) { return self.chip.name; })
      .def_prop_ro("product", [](const Machine& self) { return self.chip.product; })
      .def_prop_ro("generation", [](const Machine& self) { return self.chip.generation; })
      .def_prop_ro("origin", [](const Machine& self) { return self.origin; })
      .def_prop_ro("overrides", [](const Machine& self) { return self.overrides; })
      .def_prop_ro("hash", [](const Machine& self) { return content_hash(self); });
}

}  // namespace trena::bindings
