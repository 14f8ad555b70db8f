#include "trena/memory/buffer.h"

#include <oneapi/tbb/scalable_allocator.h>

#include <algorithm>
#include <bit>
#include <new>

namespace trena {
namespace {

constexpr std::size_t kAlignment = 64;

// Calls fn(word index, mask) for every 64-bit word that [first, first + length) touches, until fn
// is false.
template <typename Fn>
bool for_each_word(std::size_t first, std::size_t length, Fn&& fn) {
  const std::size_t last = first + length;
  for (std::size_t bit = first; bit < last;) {
    const std::size_t word = bit / 64;
    const std::size_t low = bit % 64;
    const std::size_t count = std::min<std::size_t>(64 - low, last - bit);
    const std::uint64_t ones = count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
    if (!fn(word, ones << low)) {
      return false;
    }
    bit += count;
  }
  return true;
}

}  // namespace

std::string_view name(Space space) {
  switch (space) {
    case Space::kHbm:
      return "hbm";
    case Space::kSbuf:
      return "sbuf";
    case Space::kPsum:
      return "psum";
  }
  return "?";
}

WrittenBits::WrittenBits(std::size_t size_bytes, bool all) : size_bytes_(size_bytes), all_(all) {}

void WrittenBits::mark_all() {
  all_ = true;
  bits_.clear();
}

void WrittenBits::mark_none() {
  all_ = false;
  bits_.clear();
}

void WrittenBits::materialise() {
  if (bits_.empty()) {
    bits_.assign((size_bytes_ + 63) / 64, all_ ? ~std::uint64_t{0} : 0);
    written_bytes_ = all_ ? size_bytes_ : 0;
    all_ = false;
  }
}

void WrittenBits::mark(std::size_t offset_bytes, std::size_t length_bytes) {
  if (all_) {
    return;
  }
  if (length_bytes == size_bytes_) {
    mark_all();
    return;
  }
  materialise();
  for_each_word(offset_bytes, length_bytes, [&](std::size_t word, std::uint64_t mask) {
    written_bytes_ += static_cast<std::size_t>(std::popcount(mask & ~bits_[word]));
    bits_[word] |= mask;
    return true;
  });
  if (written_bytes_ == size_bytes_) {
    mark_all();  // piece by piece
  }
}

void WrittenBits::clear(std::size_t offset_bytes, std::size_t length_bytes) {
  if (!all_ && bits_.empty()) {
    return;
  }
  materialise();
  for_each_word(offset_bytes, length_bytes, [&](std::size_t word, std::uint64_t mask) {
    written_bytes_ -= static_cast<std::size_t>(std::popcount(mask & bits_[word]));
    bits_[word] &= ~mask;
    return true;
  });
}

bool WrittenBits::covers(std::size_t offset_bytes, std::size_t length_bytes) const {
  if (all_ || length_bytes == 0) {
    return true;
  }
  if (bits_.empty()) {
    return false;
  }
  return for_each_word(offset_bytes, length_bytes, [&](std::size_t word, std::uint64_t mask) {
    return (bits_[word] & mask) == mask;
  });
}

bool WrittenBits::any(std::size_t offset_bytes, std::size_t length_bytes) const {
  if (all_) {
    return length_bytes > 0;
  }
  if (bits_.empty()) {
    return false;
  }
  return !for_each_word(offset_bytes, length_bytes, [&](std::size_t word, std::uint64_t mask) {
    return (bits_[word] & mask) == 0;
  });
}

Storage::Storage(std::byte* data, std::size_t size_bytes, std::shared_ptr<void> owner, bool written)
    : data_(data),
      size_bytes_(size_bytes),
      owner_(std::move(owner)),
      written_(size_bytes, written) {}

std::shared_ptr<Storage> Storage::allocate(std::size_t size_bytes) {
  const std::size_t rounded =
      std::max(kAlignment, (size_bytes + kAlignment - 1) / kAlignment * kAlignment);
  // Tiles come and go by the thousand: an allocator that keeps their pages, where the system's
  // returns the large ones each time and clears them anew.
  void* memory = scalable_aligned_malloc(rounded, kAlignment);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  std::shared_ptr<void> owner(memory, scalable_aligned_free);
  return std::shared_ptr<Storage>(
      new Storage(static_cast<std::byte*>(memory), size_bytes, std::move(owner), false));
}

std::shared_ptr<Storage> Storage::alias(std::byte* data, std::size_t size_bytes,
                                        std::shared_ptr<void> owner) {
  return std::shared_ptr<Storage>(new Storage(data, size_bytes, std::move(owner), true));
}

}  // namespace trena
