// nki.isa: DMA and synchronisation, with the public enums that they take. See nki_isa.cpp.
#include "bindings.h"
#include "objects.h"
#include "trena/isa/dma/dma_compute.h"
#include "trena/isa/dma/dma_copy.h"
#include "trena/isa/dma/dma_transpose.h"
#include "trena/isa/sync/registers.h"

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
  nb::enum_<SendRecvPath>(module, "dma_engine")
      .value("dma", SendRecvPath::kDma)
      .value("gpsimd_dma", SendRecvPath::kGpsimd);
}

}  // namespace

void bind_nki_dma(nb::module_& module, nb::module_& isa) {
  bind_enums(module);
  isa.def(
      "core_barrier",
      [](const Tensor& data, std::vector<int> cores, EngineChoice engine, const Name& name) {
        auto barrier = std::make_unique<CoreBarrier>(data, std::move(cores), request(engine));
        const Seat seat = prepare(*barrier, name);
        nb::gil_scoped_release free_python;
        append_core_barrier(seat, std::move(barrier));
        return last_instruction(seat);
      },
      "data"_a, "cores"_a, "engine"_a = EngineChoice::kGpsimd, "name"_a = nb::none());
  isa.def(
      "dma_compute",
      [](const Tensor& dst, std::vector<Tensor> srcs, const Operator& reduce_op,
         std::optional<std::vector<float>> scales, bool unique_indices, OobMode oob_mode,
         const Name& name) {
        return emit(DmaCompute{dst, std::move(srcs), alu_of(reduce_op, "reduce_op"),
                               std::move(scales), unique_indices, oob_mode},
                    name);
      },
      "dst"_a, "srcs"_a, "reduce_op"_a, "scales"_a = nb::none(), "unique_indices"_a = true,
      "oob_mode"_a = OobMode::kError, "name"_a = nb::none());
  isa.def(
      "dma_copy",
      [](const Tensor& dst, const Tensor& src, std::optional<int> priority, OobMode oob_mode,
         DgeMode dge_mode, EngineChoice engine, const Name& name) {
        return emit(
            DmaCopy{dst, src, DmaRequest{dge_mode, trigger_request(engine), oob_mode, priority}},
            name);
      },
      "dst"_a, "src"_a, "priority"_a = nb::none(), "oob_mode"_a = OobMode::kError,
      "dge_mode"_a = DgeMode::kUnknown, "engine"_a = EngineChoice::kUnknown, "name"_a = nb::none());
  isa.def(
      "dma_transpose",
      [](const Tensor& dst, const Tensor& src, std::optional<std::vector<int>> axes,
         std::optional<int> priority, DgeMode dge_mode, OobMode oob_mode, const Name& name) {
        return emit(
            DmaTranspose{dst, src, std::move(axes), DmaRequest{dge_mode, {}, oob_mode, priority}},
            name);
      },
      "dst"_a, "src"_a, "axes"_a = nb::none(), "priority"_a = nb::none(),
      "dge_mode"_a = DgeMode::kUnknown, "oob_mode"_a = OobMode::kError, "name"_a = nb::none());
  // The live value of a register is Python's (nki/registers.py); these are its instructions.
  isa.def(
      "register_load",
      [](const Tensor& src) {
        if (!current_tracer().program->options().values) {
          throw_not_modelled("a register loaded from data that a time-only run does not have");
        }
        std::int64_t value = 0;
        emit(RegisterLoad{src, &value}, std::nullopt);
        return value;
      },
      "src"_a);
  isa.def(
      "register_move",
      [](std::int64_t value) {
        require_register_range(value);
        emit(RegisterMove{}, std::nullopt);
        return value;
      },
      "value"_a);
  isa.def(
      "register_store",
      [](const Tensor& dst, std::int64_t value) { emit(RegisterStore{dst, value}, std::nullopt); },
      "dst"_a, "value"_a);
  isa.def(
      "sendrecv",
      [](const Tensor& src, const Tensor& dst, int send_to_rank, int recv_from_rank, int pipe_id,
         SendRecvPath dma_engine, const Name& name) {
        auto swap = std::make_unique<SendRecv>(src, dst, send_to_rank, recv_from_rank, dma_engine);
        const Seat seat = prepare(*swap, name);
        nb::gil_scoped_release free_python;
        append_sendrecv(seat, std::move(swap), pipe_id);
        return last_instruction(seat);
      },
      "src"_a, "dst"_a, "send_to_rank"_a, "recv_from_rank"_a, "pipe_id"_a,
      "dma_engine"_a = SendRecvPath::kDma, "name"_a = nb::none());
}

}  // namespace trena::bindings
