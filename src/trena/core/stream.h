// One core's work as the clock sees it: the recorded instructions plus the moves that Placement
// inserted, each with what must have happened before it starts.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trena/core/program.h"
#include "trena/isa/cost.h"

namespace trena {

enum class Insertion : std::uint8_t {
  kRecorded,  // as the kernel wrote it
  kReload,    // the kernel's own load once more, of a clean tensor that did not stay
  kSpill,     // a store to, or a reload from, HBM scratch of a tensor that the core had computed
};

struct StreamItem {
  const Instruction* instruction = nullptr;
  Insertion insertion = Insertion::kRecorded;
  EngineKind engine = EngineKind::kSync;  // who runs it, or triggers it
};

// "Item i has ended", or for products accumulating into one place, "item i has started".
class Wait {
 public:
  static Wait after_end(std::uint32_t item) { return Wait(item << 2); }
  static Wait after_start(std::uint32_t item) { return Wait((item << 2) | kStart); }
  // The same, because the address that the item used is taken over: whoever relies on that order
  // reads another tensor's bytes (check/).
  Wait for_address() const { return Wait(code_ | kAddress); }

  std::uint32_t item() const { return code_ >> 2; }
  bool for_start() const { return (code_ & kStart) != 0; }
  bool is_for_address() const { return (code_ & kAddress) != 0; }
  auto operator<=>(const Wait&) const = default;  // the stronger wait of one item sorts first

 private:
  static constexpr std::uint32_t kAddress = 1;
  static constexpr std::uint32_t kStart = 2;
  explicit Wait(std::uint32_t code) : code_(code) {}
  std::uint32_t code_;
};

// Waits of all items of one core, in compressed rows.
class Edges {
 public:
  void add(Wait wait) { waits_.push_back(wait); }
  void close() { first_.push_back(static_cast<std::uint32_t>(waits_.size())); }
  std::size_t count() const { return waits_.size(); }
  std::span<const Wait> of(std::size_t item) const {
    return {waits_.data() + first_[item], waits_.data() + first_[item + 1]};
  }

 private:
  std::vector<std::uint32_t> first_{0};
  std::vector<Wait> waits_;
};

// A tensor's stay at one address of SBUF or PSUM, bytes per partition, while the items
// [first_item, past_item) are issued.
struct Residence {
  const Buffer* buffer = nullptr;
  std::int64_t offset_bytes = 0;
  std::int64_t bytes = 0;
  std::uint32_t first_item = 0;
  std::uint32_t past_item = 0;
};

struct Stream {
  std::vector<StreamItem> items;
  std::vector<Residence> residences;                   // in the order they began
  std::vector<std::unique_ptr<Instruction>> inserted;  // owns the spill moves
  Edges waits;
  std::int64_t sbuf_peak_bytes = 0;  // per partition, live at once in program order
  std::int64_t psum_peak_banks = 0;
};

}  // namespace trena
