// Items that each lie in a region of one memory, found by the bytes of a row that they reach.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trena/memory/region.h"

namespace trena {

// In the order in which they came. A search meets only what begins nearby: an item of up to 2^n
// bytes a row stands in a block of 2^n bytes, so that it ends in that block or the next.
template <typename Item>
class Boxed {
 public:
  // Calls fn(item) for each whose box meets that of `region`, newest first, until fn returns false.
  template <typename Fn>
  void search(const Region& region, Fn&& fn) {
    find(box_of(region));
    for (const std::uint32_t index : found_) {
      if (!fn(items_[index])) {
        return;
      }
    }
  }

  void add(const Region& region, Item item) {
    insert(static_cast<std::uint32_t>(boxes_.size()), box_of(region));
    boxes_.push_back(box_of(region));
    items_.push_back(std::move(item));
  }

  // Forgets those in the box of `region` for which fn(item) is true.
  template <typename Fn>
  void erase(const Region& region, Fn&& fn) {
    find(box_of(region));
    for (const std::uint32_t index : found_) {
      if (fn(items_[index])) {
        remove(index);
      }
    }
    if (erased_ > boxes_.size() / 2) {
      close_gaps();
    }
  }

 private:
  struct Box {
    std::int64_t row_first, row_last, byte_first, byte_last;
    bool apart(const Box& other) const {
      return byte_last < other.byte_first || other.byte_last < byte_first ||
             row_last < other.row_first || other.row_last < row_first;
    }
    bool is_empty() const { return row_last < row_first; }
  };
  static Box box_of(const Region& region) {
    return {region.row_first, region.row_last, region.byte_first, region.byte_last};
  }
  static constexpr Box kNowhere = {0, -1, 0, -1};

  // Indices of items by block.
  using Level = std::unordered_map<std::int64_t, std::vector<std::uint32_t>>;
  static int level_of(const Box& box) {
    const std::int64_t length = std::max<std::int64_t>(box.byte_last - box.byte_first, 0);
    return std::bit_width(static_cast<std::uint64_t>(length));
  }

  void find(const Box& wanted) {
    found_.clear();
    for (int level = 0; level < static_cast<int>(levels_.size()); ++level) {
      const Level& blocks = levels_[static_cast<std::size_t>(level)];
      const std::int64_t first = (wanted.byte_first >> level) - 1;
      const std::int64_t last = wanted.byte_last >> level;
      if (last - first >= static_cast<std::int64_t>(blocks.size())) {
        for (const auto& [number, indices] : blocks) {
          find_in(indices, wanted);
        }
        continue;
      }
      for (std::int64_t number = first; number <= last; ++number) {
        if (const auto block = blocks.find(number); block != blocks.end()) {
          find_in(block->second, wanted);
        }
      }
    }
    std::sort(found_.begin(), found_.end(), std::greater<>());
  }

  void find_in(const std::vector<std::uint32_t>& indices, const Box& wanted) {
    for (const std::uint32_t index : indices) {
      if (!boxes_[index].apart(wanted)) {
        found_.push_back(index);
      }
    }
  }

  std::vector<std::uint32_t>& block_of(const Box& box) {
    const int level = level_of(box);
    return levels_[static_cast<std::size_t>(level)][box.byte_first >> level];
  }

  void insert(std::uint32_t index, const Box& box) { block_of(box).push_back(index); }

  void remove(std::uint32_t index) {
    std::vector<std::uint32_t>& block = block_of(boxes_[index]);
    *std::find(block.begin(), block.end(), index) = block.back();
    block.pop_back();
    boxes_[index] = kNowhere;
    ++erased_;
  }

  void close_gaps() {
    levels_ = {};
    std::size_t to = 0;
    for (std::size_t from = 0; from < boxes_.size(); ++from) {
      if (boxes_[from].is_empty()) {
        continue;
      }
      if (to != from) {
        boxes_[to] = boxes_[from];
        items_[to] = std::move(items_[from]);
      }
      insert(static_cast<std::uint32_t>(to), boxes_[to]);
      ++to;
    }
    boxes_.resize(to);
    items_.resize(to);
    erased_ = 0;
  }

  std::vector<Box> boxes_;
  std::vector<Item> items_;
  std::array<Level, 64> levels_;
  std::vector<std::uint32_t> found_;
  std::size_t erased_ = 0;
};

}  // namespace trena
