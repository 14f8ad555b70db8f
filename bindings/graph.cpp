// The device `neuron` of PyTorch, as far as it is C++: memory as DLPack capsules, operators as
// calls of graph/. No ABI of PyTorch: a capsule is a plain C struct, and a tensor arrives as
// address, dtype, sizes, strides (facts: host.md §3).
#include <nanobind/stl/unique_ptr.h>

#include "bindings.h"
#include "trena/core/run.h"
#include "trena/graph/heap.h"
#include "trena/graph/lower/copy.h"
#include "trena/graph/lower/elementwise.h"
#include "trena/graph/lower/matmul.h"
#include "trena/graph/lower/nll_loss.h"
#include "trena/graph/lower/reduce.h"
#include "trena/graph/session.h"

namespace trena::bindings {
namespace {

// ---- DLPack 0.8 (a public C interface)
// -----------------------------------------------------------

struct DLDevice {
  std::int32_t device_type;
  std::int32_t device_id;
};
struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};

constexpr std::int32_t kExtensionDevice = 12;  // kDLExtDev: PyTorch's PrivateUse1

struct ManagedTensor {
  DLManagedTensor managed;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  const std::byte* data;
};

// Called by PyTorch from any thread, also after Python is gone: no Python in here.
void free_managed(DLManagedTensor* managed) {
  auto* owner = static_cast<ManagedTensor*>(managed->context);
  Heap::instance().release(owner->data);
  delete owner;
}

void free_unused_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor") != 0) {
    auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
    managed->deleter(managed);
  }
}

std::uint8_t dlpack_code(DType dtype) {
  if (dtype == DType::kBool) {
    return 6;
  }
  if (dtype == DType::kBfloat16) {
    return 4;
  }
  const DTypeInfo& about = info(dtype);
  return about.is_float ? 2 : about.is_signed ? 0 : 1;
}

DType dtype_named(std::string_view name) {
  const std::optional<DType> dtype = dtype_from_name(name);
  if (!dtype || is_packed_x4(*dtype)) {
    throw Error(
        ErrorKind::kNotModelled, "graph-dtype",
        {.rule = "device neuron has the element types of the hardware and PyTorch's 64-bit ones",
         .here = std::string(name)});
  }
  return *dtype;
}

// Bytes from the first to the last element.
std::int64_t extent_bytes(const std::vector<std::int64_t>& shape,
                          const std::vector<std::int64_t>& strides, DType dtype) {
  std::int64_t last = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 0) {
      return 0;
    }
    last += (shape[axis] - 1) * strides[axis];
  }
  return (last + 1) * static_cast<std::int64_t>(size_bytes(dtype));
}

nb::object allocate(std::vector<std::int64_t> shape, std::vector<std::int64_t> strides,
                    std::string_view dtype_name) {
  const DType dtype = dtype_named(dtype_name);
  auto owner = std::make_unique<ManagedTensor>();
  const Heap::Allocation memory =
      Heap::instance().allocate(static_cast<std::size_t>(extent_bytes(shape, strides, dtype)));
  owner->data = memory.data;
  owner->shape = std::move(shape);
  owner->strides = std::move(strides);
  const auto bits = static_cast<std::uint8_t>(8 * size_bytes(dtype));
  owner->managed = {{memory.data,
                     {kExtensionDevice, 0},
                     static_cast<std::int32_t>(owner->shape.size()),
                     {dlpack_code(dtype), bits, 1},
                     owner->shape.data(),
                     owner->strides.data(),
                     0},
                    owner.get(),
                    free_managed};
  DLManagedTensor* managed = &owner.release()->managed;
  return nb::steal(PyCapsule_New(managed, "dltensor", free_unused_capsule));
}

// ---- Operators
// -----------------------------------------------------------------------------------

// Lowers one operator; what goes wrong carries the user's line.
template <typename Fn>
void lower(Session& session, std::string_view op, Fn&& fn) {
  Program& program = session.program();
  mark_position(program);
  try {
    Lowering lowering(program, op);
    fn(lowering);
    program.settle();
  } catch (Error& error) {
    if (!error.has_where()) {
      error.set_where(program.source_line(program.position()));
    }
    throw;
  }
}

AluOp reduction_named(std::string_view name) {
  const std::optional<AluOp> op = alu_op_from_name(name);
  if (!op || !is_reduction(*op)) {
    throw Error(ErrorKind::kNotModelled, "graph-operator",
                {.rule = "a reduction is add, maximum or minimum", .here = std::string(name)});
  }
  return *op;
}

NllLossOptions loss_options(std::int64_t reduction, std::int64_t ignore_index) {
  return {static_cast<LossReduction>(reduction), ignore_index};
}

void bind_operators(nb::class_<Session>& session) {
  using View = HbmView;
  session
      .def(
          "matmul",
          [](Session& self, std::string_view op, const View& out, const View& a, const View& b,
             const std::optional<View>& bias, float alpha, float beta) {
            lower(self, op, [&](Lowering& lowering) {
              lower_matmul(lowering, out, a, b, bias, {alpha, beta});
            });
          },
          "op"_a, "out"_a, "a"_a, "b"_a, "bias"_a = nb::none(), "alpha"_a = 1.0F, "beta"_a = 1.0F)
      .def("elementwise",
           [](Session& self, std::string_view op, std::string_view name, const View& out,
              const std::vector<View>& inputs, const std::vector<double>& scalars) {
             lower(self, op, [&](Lowering& lowering) {
               lower_elementwise(lowering, name, out, inputs, scalars);
             });
           })
      .def("fill",
           [](Session& self, std::string_view op, const View& out, double value) {
             lower(self, op, [&](Lowering& lowering) { lower_fill(lowering, out, value); });
           })
      .def("copy",
           [](Session& self, std::string_view op, const View& out, const View& source) {
             lower(self, op, [&](Lowering& lowering) { lower_copy(lowering, out, source); });
           })
      .def("reduce",
           [](Session& self, std::string_view op, std::string_view reduction, const View& out,
              const View& in, const std::vector<std::int64_t>& axes, float scale) {
             lower(self, op, [&](Lowering& lowering) {
               lower_reduce(lowering, reduction_named(reduction), out, in, axes, scale);
             });
           })
      .def("argmax",
           [](Session& self, std::string_view op, const View& out, const View& in,
              std::int64_t axis) {
             lower(self, op, [&](Lowering& lowering) { lower_argmax(lowering, out, in, axis); });
           })
      .def("softmax",
           [](Session& self, std::string_view op, const View& out, const View& in,
              std::int64_t axis, bool logarithm) {
             lower(self, op,
                   [&](Lowering& lowering) { lower_softmax(lowering, out, in, axis, logarithm); });
           })
      .def("softmax_backward",
           [](Session& self, std::string_view op, const View& grad_input, const View& grad,
              const View& output, std::int64_t axis, bool logarithm) {
             lower(self, op, [&](Lowering& lowering) {
               lower_softmax_backward(lowering, grad_input, grad, output, axis, logarithm);
             });
           })
      .def("nll_loss",
           [](Session& self, std::string_view op, const View& output, const View& total_weight,
              const View& log_probabilities, const View& labels, std::int64_t reduction,
              std::int64_t ignore_index) {
             lower(self, op, [&](Lowering& lowering) {
               lower_nll_loss(lowering, output, total_weight, log_probabilities, labels,
                              loss_options(reduction, ignore_index));
             });
           })
      .def("nll_loss_backward",
           [](Session& self, std::string_view op, const View& grad_input, const View& grad_output,
              const View& labels, const View& total_weight, std::int64_t reduction,
              std::int64_t ignore_index) {
             lower(self, op, [&](Lowering& lowering) {
               lower_nll_loss_backward(lowering, grad_input, grad_output, labels, total_weight,
                                       loss_options(reduction, ignore_index));
             });
           });
}

}  // namespace

void bind_graph(nb::module_& module) {
  nb::module_ graph = module.def_submodule("graph");
  graph.def("allocate", allocate, "shape"_a, "strides"_a, "dtype"_a);
  graph.def("usage", [] {
    const Heap::Usage usage = Heap::instance().usage();
    nb::dict result;
    result["allocated_bytes"] = usage.allocated_bytes;
    result["peak_bytes"] = usage.peak_bytes;
    result["allocations"] = usage.allocations;
    result["freed"] = usage.freed;
    return result;
  });
  graph.def("reset_peak", [] { Heap::instance().reset_peak(); });
  graph.def("hbm_bytes", core_hbm_bytes, "machine"_a);
  nb::class_<HbmView>(graph, "View");
  nb::class_<Session> session(graph, "Session");
  session.def(nb::init<const Machine&>(), "machine"_a)
      .def(
          "view",
          [](Session& self, std::uintptr_t address, std::string_view dtype,
             const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides) {
            return self.view(reinterpret_cast<const std::byte*>(address), dtype_named(dtype), sizes,
                             strides);
          },
          "address"_a, "dtype"_a, "sizes"_a, "strides"_a)
      .def_prop_ro("instruction_count", &Session::instruction_count)
      .def(
          "finish",
          [](Session& self, std::string_view schedule, std::string_view spill) {
            RunOptions options;
            options.schedule =
                schedule == "program" ? SchedulePolicy::kProgram : SchedulePolicy::kList;
            options.spill = spill == "error" ? SpillPolicy::kError : SpillPolicy::kAuto;
            return self.finish(options);
          },
          "schedule"_a = "list", "spill"_a = "auto")
      .def("take_program", &Session::take_program,
           "The program of the step, which ends with this; None when nothing ran.")
      .def("drop", &Session::drop);
  bind_operators(session);
}

}  // namespace trena::bindings
