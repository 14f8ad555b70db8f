// nki.isa: DMA and synchronisation, with the public enums that they take. See nki_isa.cpp.
#include "bindings.h"
#include "objects.h"
#include "trena/isa/dma/dma_compute.h"
#include "trena/isa/dma/dma_copy.h"
#include "trena/isa/dma/dma_transpose.h"

namespace trena::bindings {
namespace {

using Name = std::optional<std::string>;

// engine.dma says no more than that it is a DMA.
EngineRequest trigger_request(EngineChoice choice) {
  return choice == EngineChoice::kDma ? EngineRequest{} : request(choice);
}

// Python finds them by name.
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

void bind_nki_dma(nb::module_& module, nb::module_& isa) {
  bind_enums(module);
  isa.def(
      "dma_compute",
      [](const Tensor& dst, std::vector<Tensor> srcs, const Operator& reduce_op,
         std::optional<std::vector<float>> scales, bool unique_indices, OobMode oob_mode,
         const Name& name) {
        emit(std::make_unique<DmaCompute>(dst, std::move(srcs), alu_of(reduce_op, "reduce_op"),
                                          std::move(scales), unique_indices, oob_mode),
             name);
      },
      "dst"_a, "srcs"_a, "reduce_op"_a, "scales"_a = nb::none(), "unique_indices"_a = true,
      "oob_mode"_a = OobMode::kError, "name"_a = nb::none());
  isa.def(
      "dma_copy",
      [](const Tensor& dst, const Tensor& src, std::optional<int> priority, OobMode oob_mode,
         DgeMode dge_mode, EngineChoice engine, const Name& name) {
        emit(std::make_unique<DmaCopy>(
                 dst, src, DmaRequest{dge_mode, trigger_request(engine), oob_mode, priority}),
             name);
      },
      "dst"_a, "src"_a, "priority"_a = nb::none(), "oob_mode"_a = OobMode::kError,
      "dge_mode"_a = DgeMode::kUnknown, "engine"_a = EngineChoice::kUnknown, "name"_a = nb::none());
  isa.def(
      "dma_transpose",
      [](const Tensor& dst, const Tensor& src, std::optional<std::vector<int>> axes,
         std::optional<int> priority, DgeMode dge_mode, OobMode oob_mode, const Name& name) {
        emit(std::make_unique<DmaTranspose>(dst, src, std::move(axes),
                                            DmaRequest{dge_mode, {}, oob_mode, priority}),
             name);
      },
      "dst"_a, "src"_a, "axes"_a = nb::none(), "priority"_a = nb::none(),
      "dge_mode"_a = DgeMode::kUnknown, "oob_mode"_a = OobMode::kError, "name"_a = nb::none());
}

}  // namespace trena::bindings
