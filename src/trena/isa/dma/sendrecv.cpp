#include "trena/isa/dma/sendrecv.h"

#include <fmt/format.h>

#include <algorithm>

#include "trena/isa/core_state.h"
#include "trena/isa/dma/transfer.h"
#include "trena/isa/dma/trigger.h"
#include "trena/isa/sync/core_barrier.h"

namespace trena {
namespace {

// The limit is stated for 32-bit elements and shrinks with them: it is a number of elements.
std::int64_t gpsimd_limit_bytes(const Machine& machine, DType dtype) {
  return machine.pair.gpsimd_partition_bytes * static_cast<std::int64_t>(size_bytes(dtype)) / 4;
}

Layout packed_layout(DType dtype, const std::byte* bytes, std::int64_t count) {
  return {dtype,
          const_cast<std::byte*>(bytes),
          {{count, static_cast<std::int64_t>(size_bytes(dtype))}}};
}

}  // namespace

EngineKind SendRecv::engine(const Machine& machine) const {
  return resolve_engine(
      machine, name(),
      path_ == SendRecvPath::kGpsimd ? EngineRequest(EngineKind::kGpsimd) : std::nullopt);
}

void SendRecv::check(const Machine& machine) const {
  require_pair(machine, name());
  require_space(name(), "src", src_, {Space::kSbuf});
  require_space(name(), "dst", dst_, {Space::kSbuf});
  if (src_.dtype() != dst_.dtype()) {
    refuse("dtype-mismatch",
           {.rule = "sendrecv moves bits: both sides have one type",
            .here = fmt::format("`src` is {}, `dst` is {}", src_.describe(), dst_.describe())});
  }
  require_same_partitions(name(), "src", src_, "dst", dst_);
  require_same_elements(name(), "src", src_, "dst", dst_);
  for (const int rank : {send_to_, receive_from_}) {
    if (rank != 0 && rank != 1) {
      refuse("pair-cores", {.rule = "the cores of a pair are 0 and 1",
                            .here = fmt::format("sendrecv with send_to_rank={}, recv_from_rank={}",
                                                send_to_, receive_from_)});
    }
  }
  const std::int64_t limit = gpsimd_limit_bytes(machine, src_.dtype());
  if (path_ == SendRecvPath::kGpsimd && src_.free_bytes() > limit) {
    refuse("sendrecv-size",
           {.rule = "GpSimd's own DMA swaps small tiles only",
            .here = fmt::format("{}: {} bytes per partition", src_.describe(), src_.free_bytes()),
            .limit = fmt::format("{} bytes per partition of {}", limit, trena::name(src_.dtype())),
            .fix = "split the tile, or use dma_engine.dma"});
  }
}

void SendRecv::access(AccessList& list) const {
  list.read(src_);
  list.write(dst_);
}

SendRecv::Bytes SendRecv::pack() const {
  src_.buffer()->storage->settle();
  auto bytes =
      std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(src_.size_bytes()));
  transfer(packed_layout(src_.dtype(), bytes->data(), src_.element_count()), layout_of(src_));
  return bytes;
}

void SendRecv::receive(std::int64_t rendezvous, Bytes bytes) {
  rendezvous_ = rendezvous;
  received_ = std::move(bytes);
}

void SendRecv::deliver(const std::vector<std::byte>& bytes) const {
  transfer(layout_of(dst_), packed_layout(dst_.dtype(), bytes.data(), dst_.element_count()));
}

void SendRecv::execute(CoreState&) const { deliver(*received_); }

// Both cores start together. About 2 µs are measured for small tiles (hw.md §5.4); that the bytes
// come on top, at the rate of the engines that move them, is an estimate.
Cost SendRecv::cost(const Machine& machine) const {
  const Dma& dma = machine.core.dma;
  const auto bytes = static_cast<double>(src_.size_bytes());
  const std::int64_t engines = std::clamp<std::int64_t>(
      (src_.partitions() + dma.partitions_per_engine - 1) / dma.partitions_per_engine, 1,
      dma.engines);
  const double rate = path_ == SendRecvPath::kGpsimd
                          ? dma.gpsimd_gbs
                          : static_cast<double>(engines) * dma.engine_bytes_per_ns;
  Cost cost;
  cost.interval = ticks_from_ns(dma_mode(machine, DgeMode::kNone, false).issue_ns);
  cost.completion = ticks_from_ns(machine.pair.sendrecv_ns + bytes / rate);
  return cost;
}

}  // namespace trena
