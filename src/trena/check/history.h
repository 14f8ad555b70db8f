// Who touched which bytes of one memory, as far as a later access can still meet it: the overlap
// relation (design: what the bytes say after placement).
#pragma once

#include <cstdint>
#include <vector>

#include "trena/isa/instruction.h"
#include "trena/memory/region.h"

namespace trena {

// Do two regions of one memory share a byte? The boxes rule most pairs out.
bool meet(const Region& a, const Region& b);

// Items with a region each, in the order in which they came. Searches look at boxes only, which lie
// side by side, until one is met.
template <typename Item>
class Boxed {
 public:
  // Calls fn(item) for each whose box meets that of `region`, newest first, until fn returns false.
  template <typename Fn>
  void search(const Region& region, Fn&& fn) {
    const Box wanted = box_of(region);
    for (std::size_t i = boxes_.size(); i-- > 0;) {
      if (!boxes_[i].apart(wanted) && !fn(items_[i])) {
        return;
      }
    }
  }

  void add(const Region& region, Item item) {
    boxes_.push_back(box_of(region));
    items_.push_back(std::move(item));
  }

  // Forgets those in the box of `region` for which fn(item) is true.
  template <typename Fn>
  void erase(const Region& region, Fn&& fn) {
    const Box wanted = box_of(region);
    for (std::size_t i = 0; i < boxes_.size(); ++i) {
      if (!boxes_[i].apart(wanted) && fn(items_[i])) {
        boxes_[i] = kNowhere;
        ++erased_;
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
  };
  static Box box_of(const Region& region) {
    return {region.row_first, region.row_last, region.byte_first, region.byte_last};
  }

  static constexpr Box kNowhere = {0, -1, 0, -1};

  void close_gaps() {
    std::size_t to = 0;
    for (std::size_t from = 0; from < boxes_.size(); ++from) {
      if (boxes_[from].row_last < boxes_[from].row_first) {
        continue;
      }
      if (to != from) {
        boxes_[to] = boxes_[from];
        items_[to] = std::move(items_[from]);
      }
      ++to;
    }
    boxes_.resize(to);
    items_.resize(to);
    erased_ = 0;
  }

  std::vector<Box> boxes_;
  std::vector<Item> items_;
  std::size_t erased_ = 0;
};

class History {
 public:
  struct Touch {
    const Instruction* instruction = nullptr;
    const Buffer* buffer = nullptr;
    bool writes = false;
    Region region;
    bool loads_register = false;
  };

  // Calls fn(earlier touch) for every touch that shares a byte with `touch`, at least one of the
  // two a write, newest first; then remembers it. What a write covers is forgotten.
  template <typename Fn>
  void visit(const Touch& touch, Fn&& fn) {
    bool covered = false;
    touches_.search(touch.region, [&](const Touch& earlier) {
      if ((touch.writes || earlier.writes) && overlaps(touch.region, earlier.region)) {
        fn(earlier);
        covered = covered || touch.writes;
      }
      return true;
    });
    if (covered) {
      touches_.erase(touch.region,
                     [&](const Touch& earlier) { return covers(touch.region, earlier.region); });
    }
    touches_.add(touch.region, touch);
  }

  // Calls fn(earlier write) for every write that shares a byte with `touch`, newest first.
  // Remembers writes only: for memories whose reuse is ordered.
  template <typename Fn>
  void visit_writes(const Touch& touch, Fn&& fn) {
    if (touch.writes) {
      touches_.erase(touch.region,
                     [&](const Touch& earlier) { return covers(touch.region, earlier.region); });
      touches_.add(touch.region, touch);
      return;
    }
    touches_.search(touch.region, [&](const Touch& earlier) {
      if (overlaps(touch.region, earlier.region)) {
        fn(earlier);
      }
      return true;
    });
  }

 private:
  Boxed<Touch> touches_;
};

}  // namespace trena
