// Casts between element types as the device does them, on plain bytes: for tests and for host
// arrays.
#include "bindings.h"
#include "objects.h"
#include "trena/number/convert.h"
#include "trena/number/simd.h"
#include "trena/number/threads.h"
#include "trena/number/tile_product.h"

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
  nb::object result = nb::steal(
      PyByteArray_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(count * size_bytes(to))));
  cast(from, static_cast<const std::byte*>(view.buf), to,
       reinterpret_cast<std::byte*>(PyByteArray_AS_STRING(result.ptr())), count);
  PyBuffer_Release(&view);
  return result;
}

// The four values of each x4 element, as float32, low element first.
nb::object unpack_x4(nb::handle data, nb::handle source) {
  const DType from = dtype_from(source);
  Py_buffer view;
  if (PyObject_GetBuffer(data.ptr(), &view, PyBUF_C_CONTIGUOUS) != 0) {
    throw nb::python_error();
  }
  const auto count = static_cast<std::size_t>(view.len) / size_bytes(from);
  nb::object result = nb::steal(
      PyByteArray_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(4 * count * sizeof(float))));
  unpack_x4_row(from, static_cast<const std::byte*>(view.buf),
                static_cast<std::ptrdiff_t>(size_bytes(from)), count,
                reinterpret_cast<float*>(PyByteArray_AS_STRING(result.ptr())));
  PyBuffer_Release(&view);
  return result;
}

}  // namespace

void bind_number(nb::module_& module) {
  module.def("cast_bytes", cast_bytes, "data"_a, "source"_a, "destination"_a,
             "The elements of `data` cast from one dtype to another, as a bytearray.");
  module.def("unpack_x4", unpack_x4, "data"_a, "source"_a,
             "The float32 values of packed x4 elements, as a bytearray.");
  module.def("simd_targets", simd_targets, "SIMD targets this CPU can run, best first.");
  module.def("simd_target", simd_target, "The SIMD target in use.");
  module.def("force_simd_target", force_simd_target, "name"_a,
             "Use one of simd_targets() from now on; \"\" goes back to the best.");
  module.def("uses_bfloat16_dot", uses_bfloat16_dot,
             "Whether bfloat16 products take AVX512-BF16 (the bytes are the same).");
  module.def("set_thread_count", set_thread_count, "count"_a);
  module.def("thread_count", thread_count);
  module.def("set_product_fault", set_product_fault, "on"_a,
             "Test hook: flips the sign of element [0][0] of every tensor-engine product.");
}

}  // namespace trena::bindings
