// Program and Run: launching, placing, timing. What Python sees of a Run is plain data (run.h names
// and units).
#include <nanobind/ndarray.h>

#include "bindings.h"
#include "objects.h"
#include "trena/check/check.h"
#include "trena/core/hardware_order.h"
#include "trena/core/run.h"
#include "trena/core/stream.h"

namespace trena::bindings {
namespace {

Space space_from(std::string_view text) {
  for (const Space space : {Space::kHbm, Space::kSbuf, Space::kPsum}) {
    if (name(space) == text) {
      return space;
    }
  }
  throw Error(ErrorKind::kUsage, "unknown-memory",
              {.rule = "a tensor lives in hbm, sbuf or psum", .here = std::string(text)});
}

BufferRole role_from(std::string_view text) {
  if (text == "shared") {
    return BufferRole::kShared;
  }
  if (text == "constant") {
    return BufferRole::kConstant;
  }
  return text == "input" ? BufferRole::kInput : BufferRole::kLocal;
}

Tensor make_tensor(Program& program, int core, std::string_view space, const DTypeObject& dtype,
                   const std::vector<std::int64_t>& shape, std::string_view label,
                   std::optional<std::pair<int, std::int64_t>> address, std::string_view role) {
  mark_position(program);
  BufferRequest request;
  request.space = space_from(space);
  request.dtype = dtype.value;
  request.shape = shape;
  request.name = label;
  request.role = role_from(role);
  if (address) {
    request.address = Address{address->first, address->second};
  }
  return program.make_tensor(core, request);
}

// The caller's bytes, kept alive by the tensor. A read-only array must be copied by the caller
// first.
Tensor make_external(Program& program, const nb::object& array, const DTypeObject& dtype,
                     const std::vector<std::int64_t>& shape, std::string_view label,
                     std::string_view role) {
  auto view = std::make_shared<Py_buffer>();
  if (PyObject_GetBuffer(array.ptr(), view.get(), PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) != 0) {
    throw nb::python_error();
  }
  std::shared_ptr<void> owner(view.get(), [view](void*) {
    nb::gil_scoped_acquire gil;
    PyBuffer_Release(view.get());
  });
  Tensor tensor = program.make_external(dtype.value, shape, label,
                                        static_cast<std::byte*>(view->buf), owner, role_from(role));
  if (tensor.buffer()->size_bytes() > view->len) {
    throw Error(ErrorKind::kUsage, "external-size",
                {.rule = "an argument's bytes hold its shape",
                 .here = std::to_string(view->len) + " bytes",
                 .limit = std::to_string(tensor.buffer()->size_bytes()) + " bytes"});
  }
  return tensor;
}

RunOptions run_options(std::string_view schedule, std::string_view spill) {
  RunOptions options;
  options.schedule = schedule == "program" ? SchedulePolicy::kProgram : SchedulePolicy::kList;
  options.spill = spill == "error" ? SpillPolicy::kError : SpillPolicy::kAuto;
  return options;
}

Run finish(Program& program, std::string_view schedule, std::string_view spill, bool checks) {
  const RunOptions options = run_options(schedule, spill);
  const std::vector<Stream> streams = place_program(program, program.machine(), options.spill);
  std::vector<Finding> findings;
  if (checks) {
    findings = check_program(program, streams);
    if (!program.options().go_on) {
      throw_first_error(findings);
    }
  }
  Run run = time_program(program, program.machine(), streams, options);
  program.settle();  // the clock does not wait for the values
  if (program.options().hardware_order) {
    compute_in_hardware_order(program, streams, run);
  }
  run.findings = std::move(findings);
  return run;
}

}  // namespace

void bind_program(nb::module_& module) {
  nb::class_<Program>(module, "Program")
      .def(
          "__init__",
          [](Program* self, const Machine& machine, int cores, bool values, bool sentinel,
             bool go_on, bool hardware_order) {
            check_core_count(machine, cores);
            const auto unwritten = sentinel ? UnwrittenPolicy::kSentinel : UnwrittenPolicy::kRefuse;
            new (self)
                Program(machine, cores, ProgramOptions{values, unwritten, go_on, hardware_order});
          },
          "machine"_a, "cores"_a = 1, "values"_a = true, "sentinel"_a = false, "go_on"_a = false,
          "hardware_order"_a = false)
      .def_prop_ro("machine", &Program::machine, nb::rv_policy::reference_internal)
      .def_prop_ro("core_count", &Program::core_count)
      .def_prop_ro("instruction_count", &Program::instruction_count)
      .def("tensor", make_tensor, "core"_a, "space"_a, "dtype"_a, "shape"_a, "name"_a = "",
           "address"_a = nb::none(), "role"_a = "local")
      .def("external", make_external, "array"_a, "dtype"_a, "shape"_a, "name"_a = "",
           "role"_a = "input")
      .def(
          "begin",
          [](Program& self, int core, Baton* baton, int member) {
            set_current_tracer({&self, core, baton, member < 0 ? core : member});
          },
          "core"_a = 0, "baton"_a.none() = nb::none(), "member"_a = -1)
      .def("finish", finish, "schedule"_a = "list", "spill"_a = "auto", "checks"_a = true)
      .def_prop_ro(
          "findings", [](const Program& self) { return finding_list(self.findings()); },
          "of instructions that were refused while going on, as Run.findings")
      .def(
          "time_on",
          [](const Program& self, const Machine& machine, std::string_view schedule,
             std::string_view spill) {
            self.check_on(machine);
            return run_program(self, machine, run_options(schedule, spill));
          },
          "machine"_a, "schedule"_a = "list", "spill"_a = "auto",
          "The same program placed and timed on another machine; nothing is traced again.")
      .def("end", [](Program&) { set_current_tracer({}); });
  module.def("hold_position", hold_position, "file"_a, "line"_a);
}

}  // namespace trena::bindings
