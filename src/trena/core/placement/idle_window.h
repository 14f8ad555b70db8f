// Neighbouring ranges of a memory, taken together: how long all of them have been idle, and what it
// costs to empty them. Grows at its end and shrinks at its start, each range once.
#pragma once

#include <cstddef>
#include <vector>

#include "trena/core/placement/ranges.h"

namespace trena {

// Of one range. Instructions, counted in program order.
struct Idleness {
  double idle = 0;       // since its last use, or until its next where it would have to be stored
  double transfers = 0;  // to empty it and bring its contents back
  double last_use = 0;   // -1: it is free
};

class IdleWindow {
 public:
  // Empty again.
  void restart(std::int64_t start) {
    past_ = start;
    bytes_ = 0;
    transfers_ = 0;
    ranges_.clear();
    idle_.clear();
    unused_since_.clear();
  }
  // `range` begins where the window ends.
  void push(const Ranges::Range& range, const Idleness& idleness) {
    ranges_.push({range.length, idleness.transfers});
    idle_.push(idleness.idle);
    unused_since_.push(-idleness.last_use);
    bytes_ += range.length;
    past_ += range.length;
    transfers_ += idleness.transfers;
  }
  void pop() {
    bytes_ -= ranges_.front().bytes;
    transfers_ -= ranges_.front().transfers;
    ranges_.pop();
    idle_.pop();
    unused_since_.pop();
  }

  std::int64_t start() const { return past_ - bytes_; }
  std::int64_t past() const { return past_; }
  std::int64_t bytes() const { return bytes_; }
  double transfers() const { return transfers_; }
  double idle() const { return idle_.value(); }               // of the least idle
  double last_use() const { return -unused_since_.value(); }  // of the last used

 private:
  // Keeps its memory: a pass over thousands of ranges restarts often.
  template <typename T>
  class Queue {
   public:
    bool empty() const { return first_ == items_.size(); }
    const T& front() const { return items_[first_]; }
    const T& back() const { return items_.back(); }
    void push(const T& item) { items_.push_back(item); }
    void pop() { ++first_; }
    void pop_back() { items_.pop_back(); }
    void clear() {
      items_.clear();
      first_ = 0;
    }

   private:
    std::vector<T> items_;
    std::size_t first_ = 0;
  };

  // The least of a queue of numbers: those that a later one undercuts can never be it again.
  class Least {
   public:
    void push(double value) {
      while (!rising_.empty() && rising_.back().value > value) {
        rising_.pop_back();
      }
      rising_.push({pushed_++, value});
    }
    void pop() {
      if (rising_.front().number == popped_++) {
        rising_.pop();
      }
    }
    void clear() {
      rising_.clear();
      pushed_ = popped_ = 0;
    }
    double value() const { return rising_.front().value; }

   private:
    struct Numbered {
      std::size_t number;
      double value;
    };
    Queue<Numbered> rising_;
    std::size_t pushed_ = 0;
    std::size_t popped_ = 0;
  };

  struct Entry {
    std::int64_t bytes;
    double transfers;
  };

  Queue<Entry> ranges_;
  Least idle_;
  Least unused_since_;
  std::int64_t past_ = 0;
  std::int64_t bytes_ = 0;
  double transfers_ = 0;
};

}  // namespace trena
