// Who triggers a DMA and where its descriptors come from (hw.md §1.7, §2.5).
#pragma once

#include "trena/isa/rules.h"

namespace trena {

enum class OobMode : std::uint8_t { kError, kSkip };

// What the kernel asked for.
struct DmaRequest {
  DgeMode mode = DgeMode::kUnknown;
  EngineRequest engine = {};
  OobMode oob = OobMode::kError;
  std::optional<int> priority = {};  // service class 0 (first) to 3, v4
};

struct DmaTrigger {
  DgeMode mode;
  EngineKind engine;
  bool requested = false;  // by the kernel, not chosen here
  int priority = -1;       // as DmaWork::priority
};

// What of the transfer limits the choice.
struct DmaNeeds {
  bool equal_dtypes = true;      // hardware descriptors cannot cast
  bool vector_indirect = false;  // only software descriptors gather and scatter
};

// `unknown` is software descriptors on v3+ (the tutorial's profile: GpSimd queue, 599 ns per
// transfer; hw.md §2.5) and prepared ones on v2, unless an engine was named: scalar and sync then
// use hardware descriptors where those can do the transfer. Throws dge-refused, engine-refused,
// dma-priority.
DmaTrigger resolve_trigger(const Machine& machine, std::string_view instruction,
                           const DmaRequest& request, const DmaNeeds& needs);

const DmaMode& dma_mode(const Machine& machine, DgeMode mode, bool to_hbm);

void check_priority(const Machine& machine, std::string_view instruction,
                    std::optional<int> priority);

// `memory-refused` for PSUM: DMA reaches HBM and SBUF (nki 0.3 release notes).
// `dtype-refused` for types this machine does not know.
void require_dma_tensor(const Machine& machine, std::string_view instruction, std::string_view role,
                        const Tensor& tensor);

// `dma-cast`: DMA casts through float32, which packed MX types have no value in (hw.md §1.7).
void require_castable(std::string_view instruction, const Tensor& dst, const Tensor& src);

// What a transfer moves, before it is cut into packets.
struct DmaTraffic {
  std::int64_t runs = 1;        // pieces that are contiguous on both sides
  std::int64_t bytes = 0;       // of all runs, on the wider side
  std::int64_t partitions = 0;  // of the on-chip side with more; 0: HBM to HBM
  std::int64_t hbm_read_bytes = 0;
  std::int64_t hbm_write_bytes = 0;
  bool to_hbm = false;
  std::int64_t indirect_rows = 0;
  double slowdown = 1.0;
};
DmaTraffic copy_traffic(const Tensor& dst, const Tensor& src);

// Packets of at most Dma::packet_bytes, the engines of the partitions touched, and the trigger's
// issue time, which grows with the rows of an index vector (software descriptors only).
Cost dma_cost(const Machine& machine, const DmaTrigger& trigger, const DmaTraffic& traffic);

}  // namespace trena
