#include "trena/core/placement/repeatable_loads.h"

#include <algorithm>

#include "trena/memory/region.h"

namespace trena {
namespace {

// The part of `tile` that this step fills from constant HBM bytes; null: it does something else.
const Tensor* loaded_part(const Lifetimes& lifetimes, std::size_t index, std::int32_t tile) {
  const Step& step = lifetimes.steps()[index];
  const std::span<const Use> uses = lifetimes.uses_of(index);
  if (!step.dma || uses.size() != 2 || step.awaited || !step.instruction->depends_on.empty() ||
      step.instruction->order_block != 0 || step.instruction->rendezvous() >= 0) {
    return nullptr;
  }
  const bool source_first = uses[0].kind == AccessKind::kRead;
  const Use& source = uses[source_first ? 0 : 1];
  const Use& target = uses[source_first ? 1 : 0];
  const bool loads = source.kind == AccessKind::kRead && target.kind == AccessKind::kWrite &&
                     target.tile == tile && source.tensor->space() == Space::kHbm &&
                     !lifetimes.written(*source.tensor->buffer());
  return loads ? target.tensor : nullptr;
}

}  // namespace

std::size_t repeatable_loads(const Lifetimes& lifetimes, std::int32_t id) {
  constexpr std::size_t kMostParts = 64;
  const Tile& tile = lifetimes.tile(id);
  const std::int64_t size = tile.buffer->size_bytes();
  std::vector<Region> parts;
  std::int64_t filled = 0;
  while (filled < size && parts.size() < std::min(tile.uses.size(), kMostParts)) {
    const Tensor* target = loaded_part(lifetimes, tile.uses[parts.size()], id);
    if (target == nullptr) {
      return 0;
    }
    const Region part = region_of(*target);
    if (std::any_of(parts.begin(), parts.end(),
                    [&](const Region& other) { return overlaps(part, other); })) {
      return 0;
    }
    parts.push_back(part);
    filled += target->size_bytes();
  }
  return filled == size && tile.uses.size() > parts.size() ? parts.size() : 0;
}

}  // namespace trena
