#include "trena/core/dependences.h"

#include <algorithm>

namespace trena {
namespace {

// Rows of an HBM tensor per bucket: the tallest tile (hw.md §1.4: 128 partitions).
constexpr std::int64_t kRowsPerBlock = kPartitions;
// Bytes of a partition per bucket: a bank of PSUM (hw.md §1.4), a usual tile of SBUF.
constexpr std::int64_t kBytesPerBlock = 2048;

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
  if (number == 0) {
    return history.first;
  }
  const auto index = static_cast<std::size_t>(number - 1);
  if (index >= history.others.size()) {
    history.others.resize(index + 1);
  }
  return history.others[index];
}

void Dependences::open(Key stay, const Region& whole, const std::vector<Key>& former) {
  Visit inherited{0, AccessKind::kRead, whole, Box(whole)};
  inherited.buffer = kInherited;
  Bucket& bucket = history(stay).first;
  for (const Key key : former) {  // older stays, on the chip: one block
    const Bucket& old = histories_[key].first;
    // Its writers waited for all that it inherited itself: whoever waits for one of them does so,
    // too. Stays that are written part by part would else hand on everything since the beginning.
    const bool written = old.writers != kNone;
    for (std::int32_t at : {old.writers, old.readers}) {
      for (; at != kNone; at = pending_[static_cast<std::size_t>(at)].next) {
        const Pending& pending = pending_[static_cast<std::size_t>(at)];
        if (!written || pending.buffer != kInherited) {
          inherited.item = pending.item;
          remember(bucket.readers, inherited);
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

void Dependences::visit_address(Space space, std::uint32_t item, const Region& region,
                                AccessKind kind, std::uint32_t buffer) {
  const Visit access{item, kind, region, Box(region), buffer};
  History& blocks = memories_[static_cast<std::size_t>(space)];
  const std::int64_t last = region.byte_last / kBytesPerBlock;
  for (std::int64_t number = region.byte_first / kBytesPerBlock; number <= last; ++number) {
    Bucket& bucket = block(blocks, number);
    if (only_reads(kind)) {
      remember(bucket.readers, access);
      continue;
    }
    settle(bucket.writers, access);
    settle(bucket.readers, access);
    remember(bucket.writers, access);
  }
}

void Dependences::remember(std::int32_t& list, const Visit& access) {
  std::int32_t place = unused_;
  if (place == kNone) {
    place = static_cast<std::int32_t>(pending_.size());
    pending_.push_back({access.item, list, access.kind, access.buffer, access.box});
    regions_.push_back(access.region);
  } else {
    unused_ = pending_[static_cast<std::size_t>(place)].next;
    pending_[static_cast<std::size_t>(place)] = {access.item, list, access.kind, access.buffer,
                                                 access.box};
    regions_[static_cast<std::size_t>(place)] = access.region;
  }
  list = place;
}

// Waits for what overlaps `access`, and forgets what everybody who waits for `access` waits for
// anyway.
void Dependences::settle(std::int32_t& list, const Visit& access) {
  const bool reads = only_reads(access.kind);
  for (std::int32_t* link = &list; *link != kNone;) {
    const std::int32_t place = *link;
    Pending& pending = pending_[static_cast<std::size_t>(place)];
    const Region& region = regions_[static_cast<std::size_t>(place)];
    if (pending.item == access.item || pending.box.apart(access.box) ||
        !overlaps(region, access.region)) {
      link = &pending.next;
      continue;
    }
    // PSUM adds in the order of arrival and the array keeps products in order (hw.md §2.2):
    // starting later is enough.
    const bool chain =
        pending.kind == AccessKind::kAccumulate && access.kind == AccessKind::kAccumulate;
    if (pending.buffer != access.buffer || access.buffer == kAnyBuffer) {
      const Wait wait = chain ? Wait::after_start(pending.item) : Wait::after_end(pending.item);
      found_.push_back(access.buffer == kAnyBuffer ? wait : wait.for_address());
    }
    if (reads || !covers(access.region, region)) {
      link = &pending.next;
      continue;
    }
    *link = pending.next;
    pending.next = unused_;
    unused_ = place;
  }
}

void Dependences::visit_bucket(Bucket& bucket, const Visit& access) {
  settle(bucket.writers, access);
  if (only_reads(access.kind)) {
    remember(bucket.readers, access);
    return;
  }
  settle(bucket.readers, access);
  remember(bucket.writers, access);
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

void Dependences::wait_for_registers() {
  const std::int64_t last = last_of_state_[static_cast<std::size_t>(HiddenState::kRegisters)];
  if (last >= 0) {
    found_.push_back(Wait::after_end(static_cast<std::uint32_t>(last)));
  }
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
