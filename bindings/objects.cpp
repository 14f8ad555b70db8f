#include "objects.h"

#include <array>

#include "trena/error.h"

namespace trena::bindings {
namespace {

// Never destroyed: the interpreter is gone when static destructors run.
std::array<PyObject*, kDTypeCount>& dtype_objects() {
  static auto* objects = new std::array<PyObject*, kDTypeCount>{};
  return *objects;
}

enum class Memory : std::size_t { kHbm, kSharedHbm, kPrivateHbm, kSbuf, kPsum };
constexpr std::array<std::string_view, 5> kMemoryNames = {"hbm", "shared_hbm", "private_hbm",
                                                          "sbuf", "psum"};

std::array<PyObject*, kMemoryNames.size()>& memory_objects() {
  static auto* objects = new std::array<PyObject*, kMemoryNames.size()>{};
  return *objects;
}

Memory memory_of(const Buffer& buffer) {
  switch (buffer.space) {
    case Space::kSbuf:
      return Memory::kSbuf;
    case Space::kPsum:
      return Memory::kPsum;
    case Space::kHbm:
      break;
  }
  return buffer.role == BufferRole::kShared ? Memory::kSharedHbm : Memory::kHbm;
}

void register_memory(std::string_view name, nb::object object) {
  for (std::size_t index = 0; index < kMemoryNames.size(); ++index) {
    if (kMemoryNames[index] == name) {
      memory_objects()[index] = object.release().ptr();
      return;
    }
  }
  throw Error(ErrorKind::kUsage, "unknown-memory",
              {.rule = "a tensor lives in hbm, shared_hbm, private_hbm, sbuf or psum",
               .here = std::string(name)});
}

// "bfloat16" of "torch.bfloat16", of a NumPy scalar type, of an ml_dtypes type.
std::string foreign_name(nb::handle object) {
  std::string text = nb::cast<std::string>(nb::str(object));
  if (text.rfind("torch.", 0) == 0) {
    return text.substr(6);
  }
  nb::object attribute = nb::getattr(object, "dtype", nb::none());
  nb::object numpy_type =
      nb::isinstance<nb::str>(attribute) || attribute.is_none() ? nb::borrow(object) : attribute;
  try {
    return nb::cast<std::string>(
        nb::module_::import_("numpy").attr("dtype")(numpy_type).attr("name"));
  } catch (nb::python_error&) {
    return text;
  }
}

std::string supported_dtypes() {
  std::string text;
  for (std::size_t index = 0; index < kDTypeCount; ++index) {
    text += (index == 0 ? "" : ", ") + std::string(name(static_cast<DType>(index)));
  }
  return text;
}

[[noreturn]] void refuse_operator(const Operator& op, std::string_view role,
                                  std::string_view unit) {
  throw Error(ErrorKind::kIllegal, "operator-refused",
              {.rule = "an engine offers only the operators of its own unit",
               .here = std::string(role) + "=nl." + op.name,
               .limit = "operators of the " + std::string(unit)});
}

}  // namespace

EngineRequest request(EngineChoice choice) {
  switch (choice) {
    case EngineChoice::kTensor:
      return EngineKind::kTensor;
    case EngineChoice::kScalar:
      return EngineKind::kScalar;
    case EngineChoice::kGpsimd:
      return EngineKind::kGpsimd;
    case EngineChoice::kDma:  // a ring is no instruction queue; DMA instructions look at the choice
                              // themselves
      throw Error(
          ErrorKind::kIllegal, "engine-refused",
          {.rule = "only DMA instructions run on the DMA rings",
           .here = "engine=nki.isa.engine.dma",
           .limit = "tensor, vector, scalar, gpsimd or unknown, as the instruction allows"});
    case EngineChoice::kVector:
      return EngineKind::kVector;
    case EngineChoice::kSync:
      return EngineKind::kSync;
    case EngineChoice::kUnknown:
      break;
  }
  return std::nullopt;
}

DType dtype_from(nb::handle object) {
  DTypeObject* known = nullptr;
  if (nb::try_cast<DTypeObject*>(object, known) && known != nullptr) {
    return known->value;
  }
  const std::string wanted =
      nb::isinstance<nb::str>(object) ? nb::cast<std::string>(object) : foreign_name(object);
  if (const std::optional<DType> dtype = dtype_from_name(wanted)) {
    return *dtype;
  }
  throw Error(ErrorKind::kUsage, "unknown-dtype",
              {.rule = "a dtype is one of NKI's element types, or a NumPy, ml_dtypes or torch type "
                       "of the same name",
               .here = nb::cast<std::string>(nb::repr(object)),
               .limit = supported_dtypes()});
}

nb::object dtype_object(DType dtype) {
  PyObject*& slot = dtype_objects()[static_cast<std::size_t>(dtype)];
  if (slot == nullptr) {
    slot = nb::cast(DTypeObject{dtype}).release().ptr();
  }
  return nb::borrow(slot);
}

AluOp alu_of(const Operator& op, std::string_view role) {
  if (!op.alu) {
    refuse_operator(op, role, "arithmetic and logic unit");
  }
  return *op.alu;
}

MathFunction function_of(const Operator& op, std::string_view role) {
  if (!op.function) {
    refuse_operator(op, role, "activation function unit");
  }
  return *op.function;
}

nb::object memory_object(const Buffer& buffer) {
  const auto index = static_cast<std::size_t>(memory_of(buffer));
  PyObject*& slot = memory_objects()[index];
  if (slot == nullptr) {
    slot = nb::str(kMemoryNames[index].data()).release().ptr();
  }
  return nb::borrow(slot);
}

void bind_objects(nb::module_& module) {
  nb::class_<DTypeObject>(module, "DType")
      .def(
          "__init__",
          [](DTypeObject* self, nb::handle dtype) { new (self) DTypeObject{dtype_from(dtype)}; },
          "dtype"_a)
      .def_prop_ro("name", [](const DTypeObject& self) { return name(self.value); })
      .def_prop_ro("itemsize", [](const DTypeObject& self) { return size_bytes(self.value); })
      .def_prop_ro("is_float", [](const DTypeObject& self) { return info(self.value).is_float; })
      .def_prop_ro("is_integer",
                   [](const DTypeObject& self) { return info(self.value).is_integer; })
      .def_prop_ro("packed_elements",
                   [](const DTypeObject& self) { return info(self.value).packed_elements; })
      .def("__repr__", [](const DTypeObject& self) { return name(self.value); });
  module.def(
      "register_dtype",
      [](nb::object object) {
        // The right side of an assignment comes first: ask for the index before giving the object
        // away.
        const auto index = static_cast<std::size_t>(nb::cast<const DTypeObject&>(object).value);
        dtype_objects()[index] = object.release().ptr();
      },
      "dtype"_a, "Makes this instance the one that Tensor.dtype returns.");
  module.def("dtype_names", [] {
    std::vector<std::string_view> names;
    for (std::size_t index = 0; index < kDTypeCount; ++index) {
      names.push_back(name(static_cast<DType>(index)));
    }
    return names;
  });
  module.def("register_memory", register_memory, "name"_a, "memory"_a,
             "Makes this object the one that Tensor.buffer returns.");

  nb::class_<Operator>(module, "Operator")
      .def(
          "__init__",
          [](Operator* self, const std::string& name) {
            new (self) Operator{name, alu_op_from_name(name), math_function_from_name(name)};
          },
          "name"_a)
      .def_ro("name", &Operator::name)
      .def_prop_ro("is_alu", [](const Operator& self) { return self.alu.has_value(); })
      .def_prop_ro("is_function", [](const Operator& self) { return self.function.has_value(); })
      .def("__repr__", [](const Operator& self) { return "nl." + self.name; });

  nb::enum_<EngineChoice>(module, "engine")
      .value("unknown", EngineChoice::kUnknown)
      .value("tensor", EngineChoice::kTensor)
      .value("scalar", EngineChoice::kScalar)
      .value("gpsimd", EngineChoice::kGpsimd)
      .value("dma", EngineChoice::kDma)
      .value("vector", EngineChoice::kVector)
      .value("sync", EngineChoice::kSync);
}

}  // namespace trena::bindings
