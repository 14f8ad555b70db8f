// The order relation as a question: does the compiler keep these two instructions in order? It does
// when a chain of waits leads from one to the other (design: order and overlap are two relations).
#pragma once

#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "trena/core/stream.h"

namespace trena {

class Order {
 public:
  explicit Order(const Stream& stream) : stream_(stream) {}

  // Both of this core. A wait for the start of an adding product counts: the array keeps products
  // in order. A wait for an address does not: it orders whoever writes there next, and a kernel
  // that lives by it reads what another tensor left.
  bool keeps(const Instruction& earlier, const Instruction& later);

  // Meetings of cores, numbered in the order of this core, that follow or precede an instruction.
  static constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();
  std::int32_t first_meeting_after(const Instruction& instruction);  // kNever: none
  std::int32_t last_meeting_before(const Instruction& instruction);  // -1: none
  // Rendezvous ids in that order.
  const std::vector<std::int64_t>& meetings();

 private:
  std::uint32_t item_of(const Instruction& instruction);
  void number_items();
  void number_meetings();

  const Stream& stream_;
  std::unordered_map<const Instruction*, std::uint32_t> items_;
  std::vector<std::uint32_t> seen_;  // by item: the question that visited it last
  std::vector<std::uint32_t> open_;
  std::uint32_t question_ = 0;
  std::vector<std::int64_t> meetings_;
  std::vector<std::int32_t> after_;
  std::vector<std::int32_t> before_;
};

}  // namespace trena
