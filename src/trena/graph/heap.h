// The HBM of PyTorch's device `neuron`: memory of the host that stands for memory of the device,
// handed out as tensors that live as long as PyTorch wants (facts: host.md §3).
//
// PyTorch owns the bytes; a Program sees them through Session, as one Buffer per allocation, so
// that order follows the storage and not the view (design: the order relation is tensor identity).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace trena {

class Heap {
 public:
  struct Allocation {
    std::uint64_t id = 0;  // never reused, unlike the address
    std::byte* data = nullptr;
    std::size_t size_bytes = 0;
  };
  struct Usage {
    std::int64_t allocated_bytes = 0;
    std::int64_t peak_bytes = 0;
    std::int64_t allocations = 0;  // alive
    std::int64_t freed = 0;        // since the start
  };

  // The heap of the process; never destroyed, because PyTorch frees tensors after everything else.
  static Heap& instance();

  // 64-byte aligned, contents undefined. Throws `hbm-capacity` over the limit. Zero bytes are a
  // valid size.
  Allocation allocate(std::size_t size_bytes);
  void release(const std::byte* data);
  // The allocation that `address` points into; nothing for memory of somebody else.
  std::optional<Allocation> find(const std::byte* address) const;

  Usage usage() const;
  void reset_peak();
  // What the core may use; none: no limit.
  void set_limit_bytes(std::optional<std::int64_t> limit_bytes);

 private:
  mutable std::mutex mutex_;  // PyTorch frees from any thread
  std::map<const std::byte*, Allocation> by_address_;
  Usage usage_;
  std::uint64_t next_id_ = 1;
  std::optional<std::int64_t> limit_bytes_;
};

}  // namespace trena
