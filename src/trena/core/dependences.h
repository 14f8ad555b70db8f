// The order relation: what the compiler guarantees (design.md §6). Two accesses of the same tensor that overlap,
// at least one of them a write, happen in program order; a matmul accumulating behind another one needs no wait.
// Overlap of *bytes* between different tensors (manual addresses, two views of one HBM range) is a matter for
// check/, not for the clock.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "trena/core/stream.h"
#include "trena/memory/region.h"

namespace trena {

// Fed with the items of one core in program order; answers with the earlier items each must wait for.
class Dependences {
 public:
  // `written[id]`: some instruction writes buffer `id`. Buffers that are only read order nothing.
  explicit Dependences(std::vector<bool> written) : written_(std::move(written)) {}

  // Calls `wait(earlier item)` for every direct predecessor of `item`, possibly more than once.
  template <typename Wait>
  void add(std::uint32_t item, EngineKind engine, bool dma, const AccessList& accesses, Wait&& wait) {
    found_.clear();
    for (const Access& access : accesses) {
      visit(item, engine, dma, access);
    }
    for (const std::uint32_t earlier : found_) {
      wait(earlier);
    }
  }

 private:
  // An access that later ones may still have to wait for.
  struct Pending {
    std::uint32_t item;
    EngineKind engine;
    bool dma;
    AccessKind kind;
    Region region;
  };
  using Bucket = std::vector<Pending>;

  // By block of rows, so that each access of a large HBM tensor looks at few others; on the chip one block.
  using History = std::unordered_map<std::int64_t, Bucket>;

  void visit(std::uint32_t item, EngineKind engine, bool dma, const Access& access);
  void visit_bucket(Bucket& bucket, const Pending& access);

  std::vector<bool> written_;
  std::unordered_map<const Buffer*, History> histories_;
  std::vector<std::uint32_t> found_;
};

}  // namespace trena
