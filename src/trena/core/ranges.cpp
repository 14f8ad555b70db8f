#include "trena/core/ranges.h"

#include <algorithm>
#include <limits>

namespace trena {

Ranges::Ranges(std::int64_t size_bytes,
               const std::vector<std::pair<std::int64_t, std::int64_t>>& barred) {
  std::vector<std::pair<std::int64_t, std::int64_t>> sorted = barred;
  std::sort(sorted.begin(), sorted.end());
  std::int64_t at = 0;
  for (const auto& [first, past] : sorted) {
    if (first > at) {
      ranges_.push_back({at, first - at, {}, -1, -1});
    }
    at = std::max(at, past);
  }
  if (at < size_bytes) {
    ranges_.push_back({at, size_bytes - at, {}, -1, -1});
  }
}

std::optional<std::int64_t> Ranges::find_oldest(std::int64_t length,
                                                std::optional<int> freed_by) const {
  std::optional<std::int64_t> best;
  std::int64_t best_stamp = std::numeric_limits<std::int64_t>::max();
  const auto usable = [&](const Range& range) {
    return !range.stay && (!freed_by || range.freed_at < 0 || range.freed_by == *freed_by);
  };
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    std::int64_t stamp = -1;
    std::int64_t found = 0;
    std::int64_t at = ranges_[i].start;
    for (std::size_t j = i; j < ranges_.size() && found < length && stamp < best_stamp; ++j) {
      if (!usable(ranges_[j]) || ranges_[j].start != at) {
        break;
      }
      stamp = std::max(stamp, ranges_[j].freed_at);
      found += ranges_[j].length;
      at += ranges_[j].length;
    }
    if (found >= length && stamp < best_stamp) {
      best_stamp = stamp;
      best = ranges_[i].start;
      if (stamp < 0) {
        break;  // never used: nothing is older
      }
    }
  }
  return best;
}

std::optional<std::int64_t> Ranges::find_tightest(std::int64_t length) const {
  std::optional<std::int64_t> best;
  std::int64_t best_length = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < ranges_.size();) {
    std::int64_t hole = 0;
    std::size_t j = i;
    for (; j < ranges_.size() && !ranges_[j].stay && ranges_[j].start == ranges_[i].start + hole;
         ++j) {
      hole += ranges_[j].length;
    }
    if (hole >= length && hole < best_length) {
      best_length = hole;
      best = ranges_[i].start;
    }
    i = std::max(j, i + 1);
  }
  return best;
}

std::vector<Stay> Ranges::take(std::int64_t start, std::int64_t length, Stay stay) {
  const auto first =
      std::lower_bound(ranges_.begin(), ranges_.end(), start,
                       [](const Range& range, std::int64_t value) { return range.start < value; });
  auto past = first;
  std::int64_t got = 0;
  while (got < length) {
    got += past->length;
    ++past;
  }
  Range rest = *(past - 1);
  rest.start = start + length;
  rest.length = got - length;
  const auto at = ranges_.erase(first, past);
  const auto taken = ranges_.insert(at, {start, length, stay, -1, -1});
  if (stay >= starts_.size()) {
    starts_.resize(stay + 1, -1);
  }
  starts_[stay] = start;
  if (rest.length > 0) {
    ranges_.insert(taken + 1, rest);
  }

  std::vector<Stay> before;
  const std::int64_t end = start + length;
  auto old =
      std::lower_bound(former_.begin(), former_.end(), start,
                       [](const Former& entry, std::int64_t value) { return entry.end <= value; });
  while (old != former_.end() && old->start < end) {
    before.push_back(old->stay);
    const Former cut = *old;
    old = former_.erase(old);
    if (cut.start < start) {
      old = former_.insert(old, {cut.start, start, cut.stay}) + 1;
    }
    if (cut.end > end) {
      old = former_.insert(old, {end, cut.end, cut.stay});
      break;
    }
  }
  const auto place =
      std::lower_bound(former_.begin(), former_.end(), start,
                       [](const Former& entry, std::int64_t value) { return entry.start < value; });
  former_.insert(place, {start, end, stay});
  std::sort(before.begin(), before.end());
  before.erase(std::unique(before.begin(), before.end()), before.end());
  return before;
}

void Ranges::release(Stay stay, std::int64_t index, int engine) {
  Range& range =
      *std::lower_bound(ranges_.begin(), ranges_.end(), start_of(stay),
                        [](const Range& entry, std::int64_t value) { return entry.start < value; });
  range.stay.reset();
  range.freed_at = index;
  range.freed_by = engine;
}

void Ranges::forget_stamps() {
  for (Range& range : ranges_) {
    if (!range.stay) {
      range.freed_at = -1;
    }
  }
}

}  // namespace trena
