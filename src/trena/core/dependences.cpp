#include "trena/core/dependences.h"

#include <algorithm>

namespace trena {
namespace {

// Rows of an HBM tensor per bucket: the tallest tile (hw.md §1.4: 128 partitions).
constexpr std::int64_t kRowsPerBlock = kPartitions;

bool reads_only(AccessKind kind) {
  return kind == AccessKind::kRead || kind == AccessKind::kReadCarry;
}

}  // namespace

Dependences::History& Dependences::history(Key key) {
  if (key >= kSparse) {
    return sparse_histories_[key];
  }
  if (key >= histories_.size()) {
    histories_.resize(key + 1);
  }
  return histories_[key];
}

Dependences::Bucket& Dependences::block(History& history, std::int64_t number) {
  const auto index = static_cast<std::size_t>(number);
  if (index >= history.size()) {
    history.resize(index + 1);
  }
  return history[index];
}

void Dependences::open(Key stay, const Region& whole, const std::vector<Key>& former) {
  Bucket& bucket = block(history(stay), 0);
  for (const Key key : former) {  // older stays: their histories do not move any more
    for (const Bucket& old : histories_[key]) {
      for (const std::vector<Pending>* list : {&old.writers, &old.readers}) {
        for (const Pending& pending : *list) {
          bucket.readers.push_back(remember({pending.item, AccessKind::kRead, whole, Box(whole)}));
        }
      }
    }
  }
}

void Dependences::visit(Key key, std::uint32_t item, const Tensor& tensor, AccessKind kind) {
  const Region region = region_of(tensor);
  const Visit access{item, kind, region, Box(region)};
  History& blocks = history(key);
  if (tensor.on_chip() || tensor.buffer()->rows <= kRowsPerBlock) {
    visit_bucket(block(blocks, 0), access);
    return;
  }
  const std::int64_t last = access.region.row_last / kRowsPerBlock;
  for (std::int64_t number = access.region.row_first / kRowsPerBlock; number <= last; ++number) {
    visit_bucket(block(blocks, number), access);
  }
}

Dependences::Pending Dependences::remember(const Visit& access) {
  std::uint32_t slot;
  if (free_regions_.empty()) {
    slot = static_cast<std::uint32_t>(regions_.size());
    regions_.push_back(access.region);
  } else {
    slot = free_regions_.back();
    free_regions_.pop_back();
    regions_[slot] = access.region;
  }
  return {access.item, slot, access.kind, access.box};
}

// Waits for what overlaps `access`, and forgets what everybody who waits for `access` waits for
// anyway.
void Dependences::settle(std::vector<Pending>& list, const Visit& access) {
  const bool reads = reads_only(access.kind);
  const auto settled = [&](const Pending& pending) {
    if (pending.item == access.item || pending.box.apart(access.box) ||
        !overlaps(regions_[pending.region], access.region)) {
      return false;
    }
    // PSUM adds in the order of arrival and the array keeps products in order (hw.md §2.2):
    // starting later is enough.
    const bool chain =
        pending.kind == AccessKind::kAccumulate && access.kind == AccessKind::kAccumulate;
    found_.push_back(chain ? Wait::after_start(pending.item) : Wait::after_end(pending.item));
    if (reads || !covers(access.region, regions_[pending.region])) {
      return false;
    }
    free_regions_.push_back(pending.region);
    return true;
  };
  list.erase(std::remove_if(list.begin(), list.end(), settled), list.end());
}

void Dependences::visit_bucket(Bucket& bucket, const Visit& access) {
  settle(bucket.writers, access);
  if (reads_only(access.kind)) {
    bucket.readers.push_back(remember(access));
    return;
  }
  settle(bucket.readers, access);
  bucket.writers.push_back(remember(access));
}

void Dependences::visit_state(HiddenState state, std::uint32_t item) {
  std::int64_t& last = last_of_state_[static_cast<std::size_t>(state)];
  if (last >= 0) {
    // One sequencer holds the registers and works in order: the next one needs no semaphore.
    const auto earlier = static_cast<std::uint32_t>(last);
    found_.push_back(state == HiddenState::kRegisters ? Wait::after_start(earlier)
                                                      : Wait::after_end(earlier));
  }
  last = item;
}

void Dependences::finish(Edges& waits) {
  std::sort(found_.begin(), found_.end());
  found_.erase(std::unique(found_.begin(), found_.end(),
                           [](Wait a, Wait b) { return a.item() == b.item(); }),
               found_.end());
  for (const Wait wait : found_) {
    waits.add(wait);
  }
  waits.close();
  found_.clear();
}

}  // namespace trena
