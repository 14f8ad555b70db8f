// What the bytes at addresses that the kernel chose hold, on one core: the writes that no later one
// covers. And what one access asks of them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trena/check/boxed.h"
#include "trena/isa/instruction.h"
#include "trena/memory/region.h"

namespace trena {

class Contents {
 public:
  struct Write {
    const Instruction* instruction;
    const Tensor* tensor;
    const Buffer* buffer;
    Region region;        // from the start of the memory
    std::int64_t number;  // in program order
  };

  // What may share bytes with `region`, newest first. Valid until the next write.
  void find(Space space, const Region& region, std::vector<const Write*>& found);
  // Of the first write through the name of this tensor; empty: nobody wrote so.
  std::optional<std::int64_t> first_write(const Buffer& buffer) const;

  void write(const Instruction& instruction, const Tensor& tensor, const Region& region);

 private:
  Boxed<Write>& memory(Space space) { return memories_[static_cast<std::size_t>(space)]; }

  std::array<Boxed<Write>, 3> memories_;   // by Space
  std::vector<std::int64_t> first_write_;  // by Buffer::id; -1: none
  std::int64_t writes_ = 0;
};

// One access of the instruction that is being looked at. Rules share what any of them asks.
class Footprint {
 public:
  Footprint(const Access& access, Contents& contents) { begin(access, contents); }
  // The same object for another access: it keeps its memory.
  void begin(const Access& access, Contents& contents);

  const Tensor& tensor() const { return *access_.tensor; }
  const Buffer& buffer() const { return *buffer_; }
  AccessKind kind() const { return access_.kind; }
  bool writes() const { return !only_reads(access_.kind); }
  bool has_address() const { return buffer_->address.has_value(); }

  // From the start of the memory (region_in_memory).
  const Region& region();
  // Of a tensor with an address: the writes of earlier instructions that may share bytes with it,
  // newest first.
  std::span<const Contents::Write* const> beneath();

 private:
  Access access_{};
  const Buffer* buffer_ = nullptr;
  Contents* contents_ = nullptr;
  bool has_region_ = false;
  bool has_beneath_ = false;
  Region region_;
  std::vector<const Contents::Write*> beneath_;
};

}  // namespace trena
