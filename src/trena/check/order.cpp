#include "trena/check/order.h"

#include <algorithm>

namespace trena {

void Order::number_items() {
  if (!items_.empty()) {
    return;
  }
  items_.reserve(stream_.items.size());
  for (std::size_t i = 0; i < stream_.items.size(); ++i) {
    if (stream_.items[i].insertion == Insertion::kRecorded) {
      items_.emplace(stream_.items[i].instruction, static_cast<std::uint32_t>(i));
    }
  }
  seen_.assign(stream_.items.size(), 0);
}

std::uint32_t Order::item_of(const Instruction& instruction) {
  number_items();
  return items_.at(&instruction);
}

// Goes back along waits from `later`. Waits lead to smaller numbers, so nothing below `earlier`
// needs a look.
bool Order::keeps(const Instruction& earlier, const Instruction& later) {
  const std::uint32_t target = item_of(earlier);
  const std::uint32_t start = item_of(later);
  if (start <= target) {
    return start == target;
  }
  ++question_;
  open_.assign(1, start);
  while (!open_.empty()) {
    const std::uint32_t item = open_.back();
    open_.pop_back();
    for (const Wait wait : stream_.waits.of(item)) {
      if (wait.is_for_address()) {
        continue;
      }
      if (wait.item() == target) {
        return true;
      }
      if (wait.item() > target && seen_[wait.item()] != question_) {
        seen_[wait.item()] = question_;
        open_.push_back(wait.item());
      }
    }
  }
  return false;
}

void Order::number_meetings() {
  if (!after_.empty() || stream_.items.empty()) {
    return;
  }
  const std::size_t count = stream_.items.size();
  after_.assign(count, kNever);
  before_.assign(count, -1);
  std::vector<std::int32_t> number(count, -1);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t id = stream_.items[i].instruction->rendezvous();
    if (id >= 0) {
      number[i] = static_cast<std::int32_t>(meetings_.size());
      meetings_.push_back(id);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    for (const Wait wait : stream_.waits.of(i)) {
      before_[i] = std::max({before_[i], before_[wait.item()], number[wait.item()]});
    }
  }
  for (std::size_t i = count; i-- > 0;) {
    const std::int32_t reached = number[i] >= 0 ? number[i] : after_[i];
    for (const Wait wait : stream_.waits.of(i)) {
      after_[wait.item()] = std::min(after_[wait.item()], reached);
    }
  }
}

std::int32_t Order::first_meeting_after(const Instruction& instruction) {
  number_meetings();
  return after_[item_of(instruction)];
}

std::int32_t Order::last_meeting_before(const Instruction& instruction) {
  number_meetings();
  return before_[item_of(instruction)];
}

const std::vector<std::int64_t>& Order::meetings() {
  number_meetings();
  return meetings_;
}

}  // namespace trena
