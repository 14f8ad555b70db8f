// nki.isa: one line per instruction, in the alphabetical order of the public API. Documentation
// lives in python/trena/nki/isa.py; rules, values and costs in src/trena/isa/.
#include "bindings.h"
#include "trena/isa/vector/tensor_copy.h"

namespace trena::bindings {
namespace {

using Name = std::optional<std::string>;

}  // namespace

void bind_nki_isa(nb::module_& module) {
  nb::module_ isa = module.def_submodule("isa");
  isa.def(
      "tensor_copy",
      [](const Tensor& dst, const Tensor& src, EngineRequest engine, const Name& name) {
        emit(std::make_unique<TensorCopy>(dst, src, engine), name);
      },
      "dst"_a, "src"_a, "engine"_a = nb::none(), "name"_a = nb::none());
}

}  // namespace trena::bindings
