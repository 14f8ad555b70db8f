// nki.isa: one line per instruction, in the alphabetical order of the public API. Documentation
// lives in python/trena/nki/isa.py; rules, values and costs in src/trena/isa/.
#include "bindings.h"
#include "objects.h"
#include "trena/isa/dma/dma_copy.h"
#include "trena/isa/vector/tensor_copy.h"

namespace trena::bindings {
namespace {

using Name = std::optional<std::string>;

// engine.dma says no more than that it is a DMA.
EngineRequest trigger_request(EngineChoice choice) {
  return choice == EngineChoice::kDma ? EngineRequest{} : request(choice);
}

// The public enums that instructions take; Python finds them by name.
void bind_enums(nb::module_& module) {
  nb::enum_<DgeMode>(module, "dge_mode")
      .value("unknown", DgeMode::kUnknown)
      .value("swdge", DgeMode::kSoftware)
      .value("hwdge", DgeMode::kHardware)
      .value("none", DgeMode::kNone);
  nb::enum_<OobMode>(module, "oob_mode")
      .value("error", OobMode::kError)
      .value("skip", OobMode::kSkip);
}

}  // namespace

void bind_nki_isa(nb::module_& module) {
  bind_enums(module);
  nb::module_ isa = module.def_submodule("isa");
  isa.def(
      "dma_copy",
      [](const Tensor& dst, const Tensor& src, std::optional<int> priority, OobMode oob_mode, DgeMode dge_mode,
         EngineChoice engine, const Name& name) {
        emit(std::make_unique<DmaCopy>(dst, src, DmaRequest{dge_mode, trigger_request(engine), oob_mode, priority}),
             name);
      },
      "dst"_a, "src"_a, "priority"_a = nb::none(), "oob_mode"_a = OobMode::kError,
      "dge_mode"_a = DgeMode::kUnknown, "engine"_a = EngineChoice::kUnknown, "name"_a = nb::none());
  isa.def(
      "tensor_copy",
      [](const Tensor& dst, const Tensor& src, EngineRequest engine, const Name& name) {
        emit(std::make_unique<TensorCopy>(dst, src, engine), name);
      },
      "dst"_a, "src"_a, "engine"_a = nb::none(), "name"_a = nb::none());
}

}  // namespace trena::bindings
