// What the binding files share. Thin: no logic about the machine lives here.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>

#include "trena/core/pair.h"
#include "trena/core/program.h"
#include "trena/isa/rules.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace trena::bindings {

// The launch being traced on this thread: nki.* calls append to it, and meet other members of its
// baton.
using Tracer = Seat;
Tracer& current_tracer();  // throws nki-outside-kernel when nothing is being traced
void set_current_tracer(Tracer tracer);

// The innermost frame of this thread outside this package; number 0 when there is none.
struct UserLine {
  std::string_view file;  // lives as long as the process
  int number = 0;
};
UserLine user_line();

// Makes the user's Python line (the innermost frame outside this package) the program's position.
void mark_position(Program& program);

// Makes that line the position of what follows, until called with line 0.
void hold_position(std::string_view file, int line);

// For instructions that meet other cores first: makes the user's line the position and labels the
// instruction; the seat appends it.
const Seat& prepare(Instruction& instruction, const std::optional<std::string>& name);

// What a call asked for in vain, as a UserWarning at the user's line.
void warn(const char* text);

// The name of the Python exception of a kind: "Hazard".
const char* class_name(ErrorKind kind);

// A list of dicts: id, kind, severity, rule, here, limit, device, fix, at, other, core, count.
nb::list finding_list(const std::vector<Finding>& findings);

// Each file of this folder binds one floor.
void bind_errors(nb::module_& module);
void bind_number(nb::module_& module);
void bind_machine(nb::module_& module);
void bind_memory(nb::module_& module);
void bind_objects(nb::module_& module);
void bind_program(nb::module_& module);
void bind_run(nb::module_& module);
void bind_graph(nb::module_& module);
void bind_fabric(nb::module_& module);
void bind_rendezvous(nb::module_& module);
void bind_loops(nb::module_& module);
void bind_nki_isa(nb::module_& module);
void bind_nki_dma(nb::module_& module, nb::module_& isa);  // part of nki.isa

}  // namespace trena::bindings
