// The baton that several programs of one launch pass on, for Python threads: the GIL is free while
// one waits, and Ctrl-C still reaches the main thread.
#include "trena/core/rendezvous.h"

#include "bindings.h"

namespace trena::bindings {
namespace {

void check_signals() {
  nb::gil_scoped_acquire python;
  if (PyErr_CheckSignals() != 0) {
    throw nb::python_error();
  }
}

}  // namespace

void bind_rendezvous(nb::module_& module) {
  // No kernel's `except Exception` may catch it.
  nb::exception<Abandoned>(module, "Abandoned", PyExc_BaseException);
  using Release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Baton>(module, "Baton")
      .def(
          "__init__",
          [](Baton* self, int count, std::string noun) {
            new (self) Baton(count, std::move(noun), check_signals);
          },
          "count"_a, "noun"_a = "core")
      .def_prop_ro("count", &Baton::count)
      .def("start", &Baton::start, "member"_a, Release())
      .def("finish", &Baton::finish, "member"_a, Release())
      .def("fail", &Baton::fail, "member"_a, Release());
}

}  // namespace trena::bindings
