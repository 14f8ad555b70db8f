#include "trena/graph/heap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "trena/error.h"

namespace trena {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

Heap& Heap::instance() {
  static Heap* heap = new Heap();
  return *heap;
}

Heap::Allocation Heap::allocate(std::size_t size_bytes) {
  const std::lock_guard lock(mutex_);
  const std::int64_t wanted = usage_.allocated_bytes + static_cast<std::int64_t>(size_bytes);
  if (limit_bytes_ && wanted > *limit_bytes_) {
    throw Error(
        ErrorKind::kCapacity, "hbm-capacity",
        {.rule = "the tensors of a core fit its share of HBM",
         .here = fmt::format("{} bytes more, {} allocated", size_bytes, usage_.allocated_bytes),
         .limit = fmt::format("{} bytes", *limit_bytes_),
         .device = "the allocation fails",
         .fix = "use a smaller batch or model, or split it over more cores"});
  }
  // At least one line, so that no two tensors share an address.
  const std::size_t rounded =
      std::max(kAlignment, (size_bytes + kAlignment - 1) / kAlignment * kAlignment);
  auto* data = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  if (data == nullptr) {
    throw std::bad_alloc();
  }
  const Allocation allocation{next_id_++, data, size_bytes};
  by_address_.emplace(data, allocation);
  usage_.allocated_bytes = wanted;
  usage_.peak_bytes = std::max(usage_.peak_bytes, wanted);
  ++usage_.allocations;
  return allocation;
}

void Heap::release(const std::byte* data) {
  const std::lock_guard lock(mutex_);
  const auto found = by_address_.find(data);
  if (found == by_address_.end()) {
    return;
  }
  usage_.allocated_bytes -= static_cast<std::int64_t>(found->second.size_bytes);
  --usage_.allocations;
  ++usage_.freed;
  std::free(found->second.data);
  by_address_.erase(found);
}

std::optional<Heap::Allocation> Heap::find(const std::byte* address) const {
  const std::lock_guard lock(mutex_);
  auto after = by_address_.upper_bound(address);
  if (after == by_address_.begin()) {
    return std::nullopt;
  }
  const Allocation& candidate = std::prev(after)->second;
  const std::size_t size = std::max<std::size_t>(candidate.size_bytes, 1);
  if (address >= candidate.data + size) {
    return std::nullopt;
  }
  return candidate;
}

Heap::Usage Heap::usage() const {
  const std::lock_guard lock(mutex_);
  return usage_;
}

void Heap::reset_peak() {
  const std::lock_guard lock(mutex_);
  usage_.peak_bytes = usage_.allocated_bytes;
}

void Heap::set_limit_bytes(std::optional<std::int64_t> limit_bytes) {
  const std::lock_guard lock(mutex_);
  limit_bytes_ = limit_bytes;
}

}  // namespace trena
