#include "trena/core/dependences.h"

#include <algorithm>

namespace trena {
namespace {

// Rows of an HBM tensor per bucket: the tallest tile (hw.md §1.4: 128 partitions).
constexpr std::int64_t kRowsPerBlock = kPartitions;

bool writes(AccessKind kind) { return kind != AccessKind::kRead && kind != AccessKind::kReadCarry; }

// Whether `later` has to wait for `earlier`, given that their bytes overlap.
bool conflicts(AccessKind earlier, AccessKind later) {
  if (earlier == AccessKind::kAccumulate && later == AccessKind::kAccumulate) {
    return false;  // PSUM adds in the order of arrival; the array keeps products in order (hw.md §2.2)
  }
  return writes(earlier) || writes(later);
}

}  // namespace

void Dependences::visit(std::uint32_t item, EngineKind engine, bool dma, const Access& access) {
  const Buffer& buffer = *access.tensor->buffer();
  if (!written_[buffer.id]) {
    return;
  }
  const Pending current{item, engine, dma, access.kind, region_of(*access.tensor)};
  History& history = histories_[&buffer];
  if (buffer.on_chip() || buffer.rows <= kRowsPerBlock) {
    visit_bucket(history[0], current);
    return;
  }
  const std::int64_t last = current.region.row_last / kRowsPerBlock;
  for (std::int64_t block = current.region.row_first / kRowsPerBlock; block <= last; ++block) {
    visit_bucket(history[block], current);
  }
}

void Dependences::visit_bucket(Bucket& bucket, const Pending& access) {
  const auto made_obsolete = [&](const Pending& pending) {
    if (!overlaps(pending.region, access.region)) {
      return false;
    }
    const bool conflict = conflicts(pending.kind, access.kind);
    if (conflict && pending.item != access.item) {
      found_.push_back(pending.item);
    }
    // Whoever waits for this access waits for the pending one through it, when this one waited for it or
    // follows it on the same in-order engine.
    const bool ordered = conflict || (pending.engine == access.engine && !pending.dma && !access.dma);
    const bool same_role = pending.kind == access.kind || writes(access.kind);
    return ordered && same_role && covers(access.region, pending.region);
  };
  bucket.erase(std::remove_if(bucket.begin(), bucket.end(), made_obsolete), bucket.end());
  bucket.push_back(access);
}

}  // namespace trena
