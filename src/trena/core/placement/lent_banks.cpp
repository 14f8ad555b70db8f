#include "trena/core/placement/lent_banks.h"

#include <algorithm>

namespace trena {
namespace {

std::vector<ByteSpan> all_but(std::vector<ByteSpan> spans, std::int64_t size_bytes) {
  std::sort(spans.begin(), spans.end());
  std::vector<ByteSpan> others;
  std::int64_t at = 0;
  for (const auto& [first, past] : spans) {
    if (first > at) {
      others.push_back({at, first});
    }
    at = std::max(at, past);
  }
  others.push_back({at, size_bytes});
  return others;
}

}  // namespace

LentBanks::LentBanks(std::int64_t size_bytes, std::int64_t bank_bytes,
                     const std::vector<ByteSpan>& addressed)
    : size_bytes_(size_bytes),
      bank_bytes_(bank_bytes),
      guests_(size_bytes, all_but(addressed, size_bytes)) {}

void LentBanks::add_owner(std::int64_t start, std::int64_t bytes, std::size_t first,
                          std::size_t last) {
  owners_.push_back({start, start + bytes, first, last});
}

// The last use of these bytes before `first`, -1 if there is none. Nothing: somebody is there in
// between, or they may not be lent.
std::optional<std::int64_t> LentBanks::free_since(std::int64_t start, std::int64_t bytes,
                                                  std::size_t first, std::size_t last) const {
  const std::int64_t end = start + bytes;
  std::int64_t since = -1;
  std::int64_t lendable = 0;
  for (const auto& [at, range] : guests_.by_start()) {
    const std::int64_t shared = std::min(at + range.length, end) - std::max(at, start);
    if (shared > 0) {
      if (range.stay) {
        return std::nullopt;
      }
      lendable += shared;
      since = std::max(since, range.freed_at);
    }
  }
  for (const Life& owner : owners_) {
    if (owner.start >= end || owner.end <= start || owner.first > last) {
      continue;
    }
    if (owner.last >= first) {
      return std::nullopt;
    }
    since = std::max(since, static_cast<std::int64_t>(owner.last));
  }
  return lendable == bytes ? std::optional(since) : std::nullopt;
}

std::optional<std::int64_t> LentBanks::find(std::int64_t bytes, std::size_t first,
                                            std::size_t last) const {
  std::optional<std::int64_t> best;
  std::int64_t oldest = 0;
  for (std::int64_t start = 0; start + bytes <= size_bytes_; start += bank_bytes_) {
    const std::optional<std::int64_t> since = free_since(start, bytes, first, last);
    if (since && (!best || *since < oldest)) {
      best = start;
      oldest = *since;
    }
  }
  return best;
}

Region LentBanks::region_of_guest(const Tensor& view, Stay stay) const {
  const Region own = region_of(view);
  Region rectangle = own;
  rectangle.run_bytes = own.byte_last - own.byte_first + 1;
  rectangle.rank = 1;
  const auto place = [&](std::int64_t pitch) {
    rectangle.pitch_bytes = pitch;
    rectangle.dims[0] = {own.row_last - own.row_first + 1, pitch};
    rectangle.offset_bytes = own.row_first * pitch + rectangle.byte_first;
    rectangle.reach_bytes = (own.row_last - own.row_first) * pitch + rectangle.run_bytes;
  };
  place(own.pitch_bytes);
  rectangle.exact = covers(own, rectangle);
  const std::int64_t start = guests_.start_of(stay);
  rectangle.byte_first += start;
  rectangle.byte_last += start;
  place(size_bytes_);
  return rectangle;
}

}  // namespace trena
