#include "trena/core/placement/ranges.h"

#include <algorithm>
#include <limits>

namespace trena {

Ranges::Ranges(std::int64_t size_bytes, const std::vector<ByteSpan>& barred) {
  std::vector<ByteSpan> sorted = barred;
  std::sort(sorted.begin(), sorted.end());
  std::int64_t at = 0;
  for (const auto& [first, past] : sorted) {
    if (first > at) {
      add({at, first - at, {}, -1, -1});
    }
    at = std::max(at, past);
  }
  if (at < size_bytes) {
    add({at, size_bytes - at, {}, -1, -1});
  }
}

void Ranges::note_free(ByStart::iterator range) {
  const std::pair age(range->second.freed_at, range->first);
  if (range->second.freed_at < 0) {
    untouched_.emplace(age, range);
    return;
  }
  used_.emplace(age, range);
  used_by_[static_cast<std::size_t>(range->second.freed_by + 1)].emplace(age, range);
}

void Ranges::add(const Range& range) {
  const auto added = ranges_.emplace(range.start, range).first;
  if (!range.stay) {
    note_free(added);
  }
}

Ranges::ByStart::iterator Ranges::remove(ByStart::iterator range) {
  const std::pair age(range->second.freed_at, range->first);
  if (!range->second.stay && range->second.freed_at < 0) {
    untouched_.erase(age);
  } else if (!range->second.stay) {
    used_.erase(age);
    used_by_[static_cast<std::size_t>(range->second.freed_by + 1)].erase(age);
  }
  return ranges_.erase(range);
}

// The oldest range whose run of neighbours, none of them newer, holds `length`. Ranges come in
// order of age, so the first run that is long enough is as new as its newest part, and no run is
// older.
std::optional<std::int64_t> Ranges::find_in(const ByAge& ages, std::int64_t length,
                                            std::optional<int> freed_by) const {
  const auto joins = [&](const Range& range, std::int64_t stamp) {
    const bool usable =
        !range.stay && (!freed_by || range.freed_at < 0 || range.freed_by == *freed_by);
    return usable && range.freed_at <= stamp;
  };
  for (const auto& [age, range] : ages) {
    const std::int64_t stamp = age.first;
    ByStart::const_iterator first = range;
    ByStart::const_iterator last = range;
    std::int64_t found = range->second.length;
    while (first != ranges_.begin()) {
      const auto before = std::prev(first);
      if (before->first + before->second.length != first->first || !joins(before->second, stamp)) {
        break;
      }
      first = before;
      found += first->second.length;
    }
    while (found < length) {
      const auto after = std::next(last);
      if (after == ranges_.end() || last->first + last->second.length != after->first ||
          !joins(after->second, stamp)) {
        break;
      }
      last = after;
      found += last->second.length;
    }
    if (found >= length) {
      return first->first;
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> Ranges::find_oldest(std::int64_t length,
                                                std::optional<int> freed_by) const {
  if (const auto start = find_in(untouched_, length, freed_by)) {
    return start;
  }
  return find_in(freed_by ? used_by_[static_cast<std::size_t>(*freed_by + 1)] : used_, length,
                 freed_by);
}

std::optional<std::int64_t> Ranges::find_tightest(std::int64_t length) const {
  std::optional<std::int64_t> best;
  std::int64_t best_length = std::numeric_limits<std::int64_t>::max();
  std::int64_t hole_start = 0;
  std::int64_t hole = 0;
  const auto close = [&] {
    if (hole >= length && hole < best_length) {
      best_length = hole;
      best = hole_start;
    }
    hole = 0;
  };
  for (const auto& [start, range] : ranges_) {
    if (range.stay || start != hole_start + hole) {
      close();
    }
    if (!range.stay) {
      hole_start = hole == 0 ? start : hole_start;
      hole += range.length;
    }
  }
  close();
  return best;
}

std::vector<Stay> Ranges::take(std::int64_t start, std::int64_t length, Stay stay) {
  auto range = std::prev(ranges_.upper_bound(start));
  if (range->first < start) {  // its front stays free
    Range front = range->second;
    Range back = front;
    front.length = start - front.start;
    back.start = start;
    back.length -= front.length;
    remove(range);
    add(front);
    add(back);
    range = ranges_.find(start);
  }
  Range rest;
  std::int64_t got = 0;
  while (got < length) {
    rest = range->second;
    got += rest.length;
    range = remove(range);
  }
  add({start, length, stay, -1, -1});
  rest.start = start + length;
  rest.length = got - length;
  if (rest.length > 0) {
    add(rest);
  }
  if (stay >= starts_.size()) {
    starts_.resize(stay + 1, -1);
  }
  starts_[stay] = start;
  return replace_former(start, start + length, stay);
}

// `stay` becomes the last tenant of [start, end); returns who was before.
std::vector<Stay> Ranges::replace_former(std::int64_t start, std::int64_t end, Stay stay) {
  std::vector<Stay> before;
  auto old = former_.lower_bound(start);
  if (old != former_.begin() && std::prev(old)->second.end > start) {
    --old;
  }
  while (old != former_.end() && old->first < end) {
    const std::int64_t old_start = old->first;
    const Former cut = old->second;
    before.push_back(cut.stay);
    old = former_.erase(old);
    if (old_start < start) {
      former_.emplace(old_start, Former{start, cut.stay});
    }
    if (cut.end > end) {
      former_.emplace(end, cut);
    }
  }
  former_.emplace(start, Former{end, stay});
  std::sort(before.begin(), before.end());
  before.erase(std::unique(before.begin(), before.end()), before.end());
  return before;
}

void Ranges::release(Stay stay, std::int64_t index, int engine) {
  const auto range = ranges_.find(start_of(stay));
  range->second.stay.reset();
  range->second.freed_at = index;
  range->second.freed_by = engine;
  note_free(range);
}

void Ranges::forget_stamps() {
  used_.clear();
  for (ByAge& ages : used_by_) {
    ages.clear();
  }
  for (auto range = ranges_.begin(); range != ranges_.end(); ++range) {
    if (!range->second.stay) {
      range->second.freed_at = -1;
      note_free(range);
    }
  }
}

}  // namespace trena
