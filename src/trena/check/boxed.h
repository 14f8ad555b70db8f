// Items that each lie in a region of one memory, found by the bytes of a row that they reach.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "trena/memory/region.h"

namespace trena {

// A search meets only what begins nearby: an item of up to 2^n bytes a row stands in a block of 2^n
// bytes, so that it ends in that block or the next. Blocks hash to chains of items.
template <typename Item>
class Boxed {
 public:
  // Calls fn(item) for each whose box meets that of `region`, newest first, until fn returns false.
  template <typename Fn>
  void search(const Region& region, Fn&& fn) {
    find(box_of(region));
    for (const std::uint32_t place : found_) {
      if (!fn(items_[place])) {
        return;
      }
    }
  }

  void add(const Region& region, Item item) {
    const Box box = box_of(region);
    const int level = level_of(box);
    const Entry entry{box, block_of(box.byte_first >> level, level), added_++, kNone};
    levels_ |= std::uint64_t{1} << level;
    if (unused_ != kNone) {
      const std::uint32_t place = std::exchange(unused_, entries_[unused_].next);
      entries_[place] = entry;
      items_[place] = std::move(item);
      link(place);
      return;
    }
    entries_.push_back(entry);
    items_.push_back(std::move(item));
    if (entries_.size() > chains_.size()) {
      spread();
    } else {
      link(static_cast<std::uint32_t>(entries_.size() - 1));
    }
  }

  // Forgets those in the box of `region` for which fn(item) is true.
  template <typename Fn>
  void erase(const Region& region, Fn&& fn) {
    find(box_of(region));
    for (const std::uint32_t place : found_) {
      if (fn(items_[place])) {
        remove(place);
      }
    }
  }

 private:
  static constexpr std::uint32_t kNone = ~0u;

  struct Box {
    std::int64_t row_first, row_last, byte_first, byte_last;
    bool apart(const Box& other) const {
      return byte_last < other.byte_first || other.byte_last < byte_first ||
             row_last < other.row_first || other.row_last < row_first;
    }
  };
  struct Entry {
    Box box;
    std::uint64_t block;   // its index among those of its level, and the level
    std::uint64_t number;  // in the order in which they came
    std::uint32_t next;    // in its chain, or of the unused places
  };

  static Box box_of(const Region& region) {
    return {region.row_first, region.row_last, region.byte_first, region.byte_last};
  }
  static int level_of(const Box& box) {
    const std::int64_t length = std::max<std::int64_t>(box.byte_last - box.byte_first, 0);
    return std::bit_width(static_cast<std::uint64_t>(length));
  }
  static std::uint64_t block_of(std::int64_t index, int level) {
    return static_cast<std::uint64_t>(index) << 6 | static_cast<std::uint64_t>(level);
  }
  std::uint32_t& chain(std::uint64_t block) {
    const std::uint64_t mixed = block * 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio: spreads them
    return chains_[mixed >> (64 - std::countr_zero(chains_.size()))];
  }

  void link(std::uint32_t place) {
    std::uint32_t& head = chain(entries_[place].block);
    entries_[place].next = head;
    head = place;
  }

  // More chains; no place is unused.
  void spread() {
    chains_.assign(std::max<std::size_t>(64, 2 * chains_.size()), kNone);
    for (std::uint32_t place = 0; place < entries_.size(); ++place) {
      link(place);
    }
  }

  void remove(std::uint32_t place) {
    std::uint32_t* link = &chain(entries_[place].block);
    while (*link != place) {
      link = &entries_[*link].next;
    }
    *link = entries_[place].next;
    entries_[place].next = std::exchange(unused_, place);
  }

  void find(const Box& wanted) {
    found_.clear();
    for (std::uint64_t rest = levels_; rest != 0; rest &= rest - 1) {
      const int level = std::countr_zero(rest);
      const std::int64_t first = (wanted.byte_first >> level) - 1;
      const std::int64_t last = wanted.byte_last >> level;
      if (last - first >= static_cast<std::int64_t>(entries_.size())) {
        find_on(level, wanted);
        continue;
      }
      for (std::int64_t index = first; index <= last; ++index) {
        find_in(block_of(index, level), wanted);
      }
    }
    if (found_.size() > 1) {
      std::sort(found_.begin(), found_.end(), [&](std::uint32_t a, std::uint32_t b) {
        return entries_[a].number > entries_[b].number;
      });
    }
  }

  void find_in(std::uint64_t block, const Box& wanted) {
    for (std::uint32_t at = chain(block); at != kNone; at = entries_[at].next) {
      if (entries_[at].block == block && !entries_[at].box.apart(wanted)) {
        found_.push_back(at);
      }
    }
  }

  // Of all blocks of a level.
  void find_on(int level, const Box& wanted) {
    for (const std::uint32_t head : chains_) {
      for (std::uint32_t at = head; at != kNone; at = entries_[at].next) {
        const int own = static_cast<int>(entries_[at].block & 63);
        if (own == level && !entries_[at].box.apart(wanted)) {
          found_.push_back(at);
        }
      }
    }
  }

  std::vector<Entry> entries_;  // and beside it:
  std::vector<Item> items_;
  std::vector<std::uint32_t> chains_;  // first of each; a power of two of them
  std::uint32_t unused_ = kNone;
  std::uint64_t levels_ = 0;  // bits of those in use
  std::uint64_t added_ = 0;
  std::vector<std::uint32_t> found_;
};

}  // namespace trena
