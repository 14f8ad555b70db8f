// Tensor: the view algebra of src/trena/memory/views.h under the names of the public NkiTensor.
#include <nanobind/ndarray.h>

#include <algorithm>
#include <array>
#include <span>

#include "bindings.h"
#include "objects.h"
#include "trena/memory/region.h"
#include "trena/memory/rows.h"
#include "trena/memory/views.h"

namespace trena::bindings {
namespace {

using views::Index;

// nl.ds(start, size, step): `start` may be a register or a tensor of one element.
struct DynamicSlice {
  nb::object start;
  std::int64_t size;
  std::int64_t step;
};

[[noreturn]] void refuse_index(nb::handle object) {
  throw Error(ErrorKind::kUsage, "index-type",
              {.rule = "a tensor is indexed by integers, slices, nl.ds, `...`, registers and "
                       "tensors of one integer",
               .here = nb::cast<std::string>(nb::repr(object)),
               .fix = "use .ap(), .select(), .vector_select() or .expand_dim() for other views"});
}

// An int, a NumPy integer, a register: whatever has an index.
std::int64_t integer(PyObject* object) {
  if (PyLong_Check(object)) {
    const std::int64_t value = PyLong_AsLongLong(object);
    if (value == -1 && PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      throw Error(ErrorKind::kBounds, "out-of-bounds",
                  {.rule = "no tensor has so many elements",
                   .here = nb::cast<std::string>(nb::repr(object)),
                   .limit = "64 bits"});
    }
    return value;
  }
  nb::object number = nb::steal(PyNumber_Index(object));
  if (!number.is_valid()) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) {
      throw nb::python_error();
    }
    PyErr_Clear();
    refuse_index(object);
  }
  return integer(number.ptr());
}

const Tensor* tensor_or_null(nb::handle object) {
  Tensor* tensor = nullptr;
  return nb::try_cast<Tensor*>(object, tensor) ? tensor : nullptr;
}

bool slice_bound(PyObject* object, std::int64_t& value) {
  if (object == Py_None) {
    return false;
  }
  value = integer(object);
  return true;
}

Index window(const DynamicSlice& slice) {
  Index index{.kind = Index::Kind::kWindow, .stop = slice.size, .step = slice.step};
  index.value = tensor_or_null(slice.start);
  if (index.value == nullptr) {
    index.start = integer(slice.start.ptr());
  }
  return index;
}

// Any object with `start` and `size` is a window.
bool window_like(nb::handle object, Index& index) {
  const nb::object start = nb::getattr(object, "start", nb::none());
  const nb::object size = nb::getattr(object, "size", nb::none());
  if (start.is_none() || size.is_none()) {
    return false;
  }
  const nb::object step = nb::getattr(object, "step", nb::none());
  index = window({start, integer(size.ptr()), step.is_none() ? 1 : integer(step.ptr())});
  return true;
}

Index parse_index(PyObject* object) {
  if (PyLong_Check(object)) {
    return {.kind = Index::Kind::kInteger, .start = integer(object)};
  }
  if (PySlice_Check(object)) {
    const auto* slice = reinterpret_cast<PySliceObject*>(object);
    Index index{.kind = Index::Kind::kSlice};
    index.has_start = slice_bound(slice->start, index.start);
    index.has_stop = slice_bound(slice->stop, index.stop);
    slice_bound(slice->step, index.step);
    return index;
  }
  if (object == Py_Ellipsis) {
    return {.kind = Index::Kind::kEllipsis};
  }
  DynamicSlice* slice = nullptr;
  if (nb::try_cast<DynamicSlice*>(nb::handle(object), slice) && slice != nullptr) {
    return window(*slice);
  }
  if (const Tensor* tensor = tensor_or_null(object)) {
    return {.kind = Index::Kind::kDynamic, .value = tensor};
  }
  if (PyIndex_Check(object)) {
    return {.kind = Index::Kind::kInteger, .start = integer(object)};
  }
  Index index;
  if (!window_like(object, index)) {
    refuse_index(object);
  }
  return index;
}

Tensor get_item(const Tensor& self, nb::handle key) {
  constexpr Py_ssize_t kMaxIndices = Tensor::kMaxRank + 1;
  std::array<Index, kMaxIndices> indices;
  if (!PyTuple_Check(key.ptr())) {
    indices[0] = parse_index(key.ptr());
    return views::index(self, std::span(indices).first(1));
  }
  const Py_ssize_t count = PyTuple_GET_SIZE(key.ptr());
  if (count > kMaxIndices) {
    refuse_index(key);
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    indices[static_cast<std::size_t>(i)] = parse_index(PyTuple_GET_ITEM(key.ptr(), i));
  }
  return views::index(self, std::span(indices).first(static_cast<std::size_t>(count)));
}

// Short sequences of integers without heap memory of their own.
struct Integers {
  std::array<std::int64_t, 32> values;
  std::size_t count = 0;
  std::span<const std::int64_t> span() const { return {values.data(), count}; }
};

Integers integers(nb::handle sequence, std::string_view what) {
  nb::object fast = nb::steal(PySequence_Fast(sequence.ptr(), "a sequence of integers"));
  if (!fast.is_valid()) {
    throw nb::python_error();
  }
  Integers result;
  result.count = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(fast.ptr()));
  if (result.count > result.values.size()) {
    throw Error(ErrorKind::kUsage, "rank-limit",
                {.rule = "a view has a limited number of dimensions",
                 .here = std::string(what) + " of " + std::to_string(result.count) + " numbers"});
  }
  PyObject** items = PySequence_Fast_ITEMS(fast.ptr());
  for (std::size_t i = 0; i < result.count; ++i) {
    result.values[i] = integer(items[i]);
  }
  return result;
}

Tensor permute(const Tensor& self, nb::handle dims) {
  const Integers wide = integers(dims, "dims");
  std::array<int, 32> axes;
  for (std::size_t i = 0; i < wide.count; ++i) {
    constexpr std::int64_t kNone = Tensor::kMaxRank;  // no dimension, whatever the number
    axes[i] = static_cast<int>(std::clamp(wide.values[i], -kNone - 1, kNone));
  }
  return views::permute(self, std::span(axes.data(), wide.count));
}

views::ScalarOffset scalar_offset(nb::handle object) {
  views::ScalarOffset offset;
  offset.tensor = tensor_or_null(object);
  if (offset.tensor == nullptr) {
    offset.value = integer(object.ptr());
  }
  return offset;
}

Tensor select(const Tensor& self, int dim, nb::handle index) {
  if (PyLong_Check(index.ptr())) {
    return views::select(self, dim, integer(index.ptr()));
  }
  return views::select(self, dim, scalar_offset(index));
}

// `patterns` as nki_views writes them: names, or groups of names.
std::vector<views::Group> groups(nb::handle pattern) {
  std::vector<views::Group> result;
  for (nb::handle entry : nb::borrow<nb::iterable>(pattern)) {
    views::Group group;
    if (nb::isinstance<nb::str>(entry)) {
      group.push_back(nb::cast<std::string>(entry));
    } else {
      for (nb::handle name : nb::borrow<nb::iterable>(entry)) {
        group.push_back(nb::cast<std::string>(name));
      }
    }
    result.push_back(std::move(group));
  }
  return result;
}

Tensor rearrange(const Tensor& self, nb::handle source, nb::handle destination,
                 std::optional<nb::dict> fixed_sizes) {
  std::vector<std::pair<std::string, std::int64_t>> sizes;
  if (fixed_sizes) {
    for (const auto& [name, size] : *fixed_sizes) {
      sizes.emplace_back(nb::cast<std::string>(name), integer(size.ptr()));
    }
  }
  return views::rearrange(self, groups(source), groups(destination), sizes);
}

[[noreturn]] void refuse_pattern(nb::handle pattern) {
  throw Error(ErrorKind::kUsage, "ap-pattern",
              {.rule = "an access pattern is a list of [stride, count] pairs, outermost first",
               .here = nb::cast<std::string>(nb::repr(pattern))});
}

struct Pattern {
  std::array<views::Step, 16> steps;
  std::size_t count = 0;
};

Pattern parse_pattern(nb::handle pattern) {
  nb::object fast =
      nb::steal(PySequence_Fast(pattern.ptr(), "pattern is a list of [stride, count] pairs"));
  if (!fast.is_valid()) {
    throw nb::python_error();
  }
  Pattern result;
  result.count = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(fast.ptr()));
  if (result.count > result.steps.size()) {
    refuse_pattern(pattern);
  }
  PyObject** items = PySequence_Fast_ITEMS(fast.ptr());
  for (std::size_t i = 0; i < result.count; ++i) {
    nb::object pair =
        nb::steal(PySequence_Fast(items[i], "pattern is a list of [stride, count] pairs"));
    if (!pair.is_valid()) {
      throw nb::python_error();
    }
    if (PySequence_Fast_GET_SIZE(pair.ptr()) != 2) {
      refuse_pattern(pattern);
    }
    PyObject** numbers = PySequence_Fast_ITEMS(pair.ptr());
    result.steps[i] = {integer(numbers[0]), integer(numbers[1])};
  }
  return result;
}

Tensor ap(const Tensor& self, nb::handle pattern, nb::handle offset, nb::handle scalar,
          nb::handle vector, int indirect_dim, nb::handle dtype) {
  const Pattern steps = parse_pattern(pattern);
  views::ApRequest request{.pattern = std::span(steps.steps).first(steps.count)};
  request.indirect_dim = indirect_dim;
  if (!offset.is_none()) {
    request.offset = integer(offset.ptr());
  }
  if (!scalar.is_none()) {
    request.scalar_offset = scalar_offset(scalar);
  }
  if (!vector.is_none()) {
    request.vector_offset = &nb::cast<const Tensor&>(vector);
  }
  if (!dtype.is_none()) {
    request.dtype = dtype_from(dtype);
  }
  views::ApView result = views::ap(self, request);
  if (result.offset_is_contested) {
    warn(
        "ap(offset=N) on a view that has an offset: Trena adds N to it, as the 0.6 API says; older "
        "documents count N from the start of the tensor. Call ap on the whole tensor to be clear.");
  }
  return std::move(result.tensor);
}

nb::object integer_tuple(std::span<const std::int64_t> values) {
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  for (std::size_t i = 0; i < values.size(); ++i) {
    PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(values[i]));
  }
  return tuple;
}

nb::object shape(const Tensor& self) {
  std::array<std::int64_t, Tensor::kMaxRank> sizes;
  for (int axis = 0; axis < self.rank(); ++axis) {
    sizes[static_cast<std::size_t>(axis)] = self.size(axis);
  }
  return integer_tuple(std::span(sizes).first(static_cast<std::size_t>(self.rank())));
}

nb::list get_pattern(const Tensor& self) {
  nb::list result;
  for (const views::Step& step : views::pattern(self)) {
    nb::list pair;
    pair.append(step.stride);
    pair.append(step.count);
    result.append(pair);
  }
  return result;
}

// The bytes of a tensor that is its whole buffer, not copied; they live as long as the result.
nb::object shared_bytes(const Tensor& self) {
  auto* owner = new std::shared_ptr<Storage>(self.buffer()->storage);
  nb::capsule capsule(owner, [](void* pointer) noexcept {
    delete static_cast<std::shared_ptr<Storage>*>(pointer);
  });
  (*owner)->settle();
  return nb::cast(nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(
      self.data(), {static_cast<std::size_t>(self.size_bytes())}, capsule));
}

// (bytes of the elements in row-major order, shape, dtype): trena.launch makes the NumPy array. A
// result that nobody else can name need not be copied.
nb::tuple to_numpy(const Tensor& self, bool share) {
  if (self.indirection() != nullptr && self.indirection()->escape) {
    throw Error(ErrorKind::kBounds, "out-of-bounds", *self.indirection()->escape);
  }
  const bool whole = self.buffer()->has_data() && self.buffer()->role != BufferRole::kInput &&
                     self.buffer()->origin_bytes == 0 &&
                     self.size_bytes() == self.buffer()->size_bytes() && views::is_contiguous(self);
  if (share && whole) {
    return nb::make_tuple(shared_bytes(self), shape(self), dtype_object(self.dtype()));
  }
  nb::object bytes =
      nb::steal(PyByteArray_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(self.size_bytes())));
  read_bits(self, reinterpret_cast<std::byte*>(PyByteArray_AS_STRING(bytes.ptr())));
  return nb::make_tuple(bytes, shape(self), dtype_object(self.dtype()));
}

// Fills a tensor from C-contiguous bytes and marks it written.
void from_numpy(const Tensor& self, nb::handle data) {
  Py_buffer view;
  if (PyObject_GetBuffer(data.ptr(), &view, PyBUF_C_CONTIGUOUS) != 0) {
    throw nb::python_error();
  }
  const bool fits = view.len == self.size_bytes();
  const auto bytes = view.len;
  if (fits) {
    write_bits(self, static_cast<const std::byte*>(view.buf));
    mark_written(self);
  }
  PyBuffer_Release(&view);
  if (!fits) {
    throw Error(ErrorKind::kUsage, "external-size",
                {.rule = "the bytes fill the tensor exactly",
                 .here = std::to_string(bytes) + " bytes",
                 .limit = std::to_string(self.size_bytes()) + " bytes"});
  }
}

// A tensor that belongs to no program, for tests of views: its elements are the bytes of `data`,
// spread over rows of `pitch_bytes` from `origin_bytes` on (a window on the chip).
Tensor tensor_from_bytes(nb::handle data, nb::handle dtype, const std::vector<std::int64_t>& sizes,
                         const std::string& space, std::int64_t pitch_bytes,
                         std::int64_t origin_bytes) {
  auto buffer = std::make_shared<Buffer>();
  buffer->space = space == "sbuf" ? Space::kSbuf : space == "psum" ? Space::kPsum : Space::kHbm;
  buffer->name = "t";
  const DType type = dtype_from(dtype);
  std::int64_t elements = 1;
  for (const std::int64_t size : sizes) {
    elements *= size;
  }
  const std::int64_t bytes = elements * static_cast<std::int64_t>(size_bytes(type));
  buffer->rows = sizes.empty() ? 1 : buffer->on_chip() ? sizes.front() : elements / sizes.back();
  buffer->row_bytes = bytes / buffer->rows;
  buffer->pitch_bytes = std::max(pitch_bytes, buffer->row_bytes);
  buffer->origin_bytes = origin_bytes;
  buffer->storage = Storage::allocate(
      static_cast<std::size_t>(origin_bytes + buffer->rows * buffer->pitch_bytes));
  Tensor tensor(buffer, type, sizes);
  from_numpy(tensor, data);
  return tensor;
}

}  // namespace

void bind_memory(nb::module_& module) {
  nb::class_<DynamicSlice>(module, "DynamicSlice")
      .def(
          "__init__",
          [](DynamicSlice* self, nb::object start, nb::handle size, nb::handle step) {
            new (self) DynamicSlice{std::move(start), integer(size.ptr()), integer(step.ptr())};
          },
          "start"_a, "size"_a, "step"_a = 1)
      .def_ro("start", &DynamicSlice::start)
      .def_ro("size", &DynamicSlice::size)
      .def_ro("step", &DynamicSlice::step);

  nb::class_<Tensor>(module, "Tensor")
      .def_prop_ro("shape", shape)
      .def_prop_ro("dtype", [](const Tensor& self) { return dtype_object(self.dtype()); })
      .def_prop_ro("ndim", &Tensor::rank)
      .def_prop_ro("size", &Tensor::element_count)
      .def_prop_ro("itemsize", [](const Tensor& self) { return size_bytes(self.dtype()); })
      .def_prop_ro("offset", views::offset)
      .def_prop_ro("strides",
                   [](const Tensor& self) { return integer_tuple(views::strides(self)); })
      .def_prop_ro("buffer", [](const Tensor& self) { return memory_object(*self.buffer()); })
      .def_prop_ro("name",
                   [](const Tensor& self) -> const std::string& { return self.buffer()->name; })
      .def_prop_ro("buffer_id", [](const Tensor& self) { return self.buffer()->id; })
      .def("is_contiguous", views::is_contiguous)
      .def("is_indirect", [](const Tensor& self) { return self.indirection() != nullptr; })
      .def("get_pattern", get_pattern)
      .def("__getitem__", get_item, "key"_a.none())
      .def("slice", views::slice, "dim"_a, "start"_a, "end"_a, "step"_a = 1)
      .def("select", select, "dim"_a, "index"_a)
      .def("vector_select", views::vector_select, "dim"_a, "vector_offset"_a)
      .def("permute", permute, "dims"_a)
      .def("broadcast", views::broadcast, "dim"_a, "size"_a)
      .def("expand_dim", views::expand_dim, "dim"_a)
      .def("squeeze_dim", views::squeeze_dim, "dim"_a)
      .def(
          "reshape",
          [](const Tensor& self, nb::handle sizes) {
            return views::reshape(self, integers(sizes, "shape").span());
          },
          "shape"_a)
      .def(
          "reshape_dim",
          [](const Tensor& self, int dim, nb::handle sizes) {
            return views::reshape_dim(self, dim, integers(sizes, "shape").span());
          },
          "dim"_a, "shape"_a)
      .def("flatten_dims", views::flatten_dims, "start_dim"_a, "end_dim"_a)
      .def("rearrange", rearrange, "src_pattern"_a, "dst_pattern"_a, "fixed_sizes"_a = nb::none())
      .def(
          "view",
          [](const Tensor& self, nb::handle dtype) { return views::view(self, dtype_from(dtype)); },
          "dtype"_a)
      .def(
          "reinterpret_cast",
          [](const Tensor& self, nb::handle dtype) { return views::view(self, dtype_from(dtype)); },
          "dtype"_a)
      .def("ap", ap, "pattern"_a, "offset"_a = nb::none(), "scalar_offset"_a = nb::none(),
           "vector_offset"_a = nb::none(), "indirect_dim"_a = 0, "dtype"_a = nb::none())
      .def("indirect", views::indirect, "index"_a, "num_elem"_a = nb::none())
      .def("is_written", is_written)
      .def_prop_ro(
          "made_at",
          [](const Tensor& self) {
            return std::pair(self.buffer()->where.file, self.buffer()->where.line);
          },
          "(file, line) of the user")
      .def(
          "same_buffer",
          [](const Tensor& self, const Tensor& other) { return self.buffer() == other.buffer(); },
          "other"_a)
      .def("__repr__", &Tensor::describe);

  module.def("to_numpy", to_numpy, "tensor"_a, "share"_a = false);
  module.def("from_numpy", from_numpy, "tensor"_a, "data"_a);
  module.def("tensor_from_bytes", tensor_from_bytes, "data"_a, "dtype"_a, "shape"_a,
             "space"_a = "hbm", "pitch_bytes"_a = 0, "origin_bytes"_a = 0);
  module.def(
      "overlaps", [](const Tensor& a, const Tensor& b) { return share_bytes(a, b); }, "a"_a, "b"_a,
      "Do two views share a byte? True when in doubt.");
  module.def(
      "covers",
      [](const Tensor& outer, const Tensor& inner) {
        return outer.buffer() == inner.buffer() && covers(region_of(outer), region_of(inner));
      },
      "outer"_a, "inner"_a, "Does `outer` hold every byte of `inner`? False when in doubt.");
}

}  // namespace trena::bindings
