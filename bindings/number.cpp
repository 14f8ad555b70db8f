// Casts between element types as the device does them, on plain bytes: for tests and for host arrays.
#include "bindings.h"
#include "objects.h"
#include "trena/number/convert.h"

namespace trena::bindings {
namespace {

// Every element of `data` (C-contiguous) as another type: nearest even, integers saturate.
nb::object cast_bytes(nb::handle data, nb::handle source, nb::handle destination) {
  const DType from = dtype_from(source);
  const DType to = dtype_from(destination);
  Py_buffer view;
  if (PyObject_GetBuffer(data.ptr(), &view, PyBUF_C_CONTIGUOUS) != 0) {
    throw nb::python_error();
  }
  const auto count = static_cast<std::size_t>(view.len) / size_bytes(from);
  nb::object result =
      nb::steal(PyByteArray_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(count * size_bytes(to))));
  cast(from, static_cast<const std::byte*>(view.buf), to,
       reinterpret_cast<std::byte*>(PyByteArray_AS_STRING(result.ptr())), count);
  PyBuffer_Release(&view);
  return result;
}

}  // namespace

void bind_number(nb::module_& module) {
  module.def("cast_bytes", cast_bytes, "data"_a, "source"_a, "destination"_a,
             "The elements of `data` cast from one dtype to another, as a bytearray.");
}

}  // namespace trena::bindings
