#include "trena/core/placement/manual_addresses.h"

#include <algorithm>

namespace trena {
namespace {

ByteSpan whole_grains(const Buffer& buffer, std::int64_t grain) {
  const std::int64_t first = buffer.address->offset_bytes;
  const std::int64_t past = first + buffer.row_bytes;
  return {first / grain * grain, (past + grain - 1) / grain * grain};
}

}  // namespace

ManualAddresses::ManualAddresses(const Lifetimes& lifetimes, const Machine& machine)
    : shared_(lifetimes.lives().size(), false) {
  for (const Life& life : lifetimes.lives()) {
    if (!life.addressed()) {
      continue;
    }
    if (life.buffer->space == Space::kPsum) {
      psum_banks_.push_back(whole_grains(*life.buffer, machine.core.psum.bank_bytes));
    } else {
      sbuf_.push_back(whole_grains(*life.buffer, 1));
    }
  }
  note_owners_of_banks(lifetimes);
  note_shared(lifetimes);
}

// A tensor that finds its contents at its address keeps the bank from the beginning.
void ManualAddresses::note_owners_of_banks(const Lifetimes& lifetimes) {
  if (std::none_of(lifetimes.tiles().begin(), lifetimes.tiles().end(),
                   [](const Tile& tile) { return tile.psum(); })) {
    return;
  }
  for (const Life& life : lifetimes.lives()) {
    if (life.addressed() && life.buffer->space == Space::kPsum) {
      owners_of_banks_.push_back(life);
      owners_of_banks_.back().first = life.inherits ? 0 : life.first;
      shared_[life.buffer->id] = true;
    }
  }
}

// Most tensors with an address have it to themselves.
void ManualAddresses::note_shared(const Lifetimes& lifetimes) {
  std::vector<const Buffer*> addressed;
  for (const Life& life : lifetimes.lives()) {
    if (life.addressed()) {
      addressed.push_back(life.buffer);
    }
  }
  const auto place = [](const Buffer* buffer) {
    return std::pair(buffer->space, buffer->address->offset_bytes);
  };
  std::sort(addressed.begin(), addressed.end(),
            [&](const Buffer* a, const Buffer* b) { return place(a) < place(b); });
  const Buffer* farthest = nullptr;  // of those before, the one that reaches farthest
  std::int64_t end = 0;
  for (const Buffer* buffer : addressed) {
    if (farthest != nullptr && place(buffer) < std::pair(farthest->space, end)) {
      shared_[farthest->id] = shared_[buffer->id] = true;
    }
    const std::int64_t its_end = buffer->address->offset_bytes + buffer->row_bytes;
    if (farthest == nullptr || farthest->space != buffer->space || its_end > end) {
      farthest = buffer;
      end = its_end;
    }
  }
}

}  // namespace trena
