// Bytes, and which of them somebody wrote.
//
// A Storage is memory of the host standing for memory of the device. A Buffer is one tensor's place
// in a Storage: its own bytes, or a window on the SBUF or PSUM array when the kernel chose an
// address (design: places are decided after tracing; manual windows really overlap).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trena/error.h"

namespace trena {

enum class Space : std::uint8_t { kHbm, kSbuf, kPsum };
std::string_view name(Space space);

// One bit per byte, with a short cut for the usual case that everything is written.
class WrittenBits {
 public:
  explicit WrittenBits(std::size_t size_bytes, bool all = false);

  bool all() const { return all_; }
  void mark_all();
  void mark_none();
  void mark(std::size_t offset_bytes, std::size_t length_bytes);
  void clear(std::size_t offset_bytes, std::size_t length_bytes);
  bool covers(std::size_t offset_bytes, std::size_t length_bytes) const;
  bool any(std::size_t offset_bytes, std::size_t length_bytes) const;
  bool test(std::size_t offset_bytes) const { return covers(offset_bytes, 1); }

 private:
  void materialise();
  std::size_t size_bytes_;
  bool all_;
  std::size_t written_bytes_ = 0;    // counted while bits_ says which
  std::vector<std::uint64_t> bits_;  // empty while all or none are written
};

// Who computes bytes behind the front end (core/executor). Host code that looks at them settles
// them first.
class Producer {
 public:
  virtual ~Producer() = default;
  // Returns when everything asked for is computed; throws what went wrong on the way.
  virtual void settle() = 0;
};

class Storage {
 public:
  // Uninitialised, 64-byte aligned. Nothing is written.
  static std::shared_ptr<Storage> allocate(std::size_t size_bytes);
  // Memory of somebody else, kept alive by `owner`. Everything is written.
  static std::shared_ptr<Storage> alias(std::byte* data, std::size_t size_bytes,
                                        std::shared_ptr<void> owner);

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size_bytes() const { return size_bytes_; }
  WrittenBits& written() { return written_; }
  const WrittenBits& written() const { return written_; }

  // The host is about to look at these bytes, or to change them.
  void settle() const {
    if (producer_ != nullptr) {
      producer_->settle();
    }
  }
  void set_producer(std::shared_ptr<Producer> producer) { producer_ = std::move(producer); }

  // The producer's own notes: tickets of the last work that writes these bytes, and of what reads
  // them since.
  struct Uses {
    std::uint64_t writer = 0;  // 0: none
    std::vector<std::uint64_t> readers;
  };
  Uses& uses() { return uses_; }

 private:
  Storage(std::byte* data, std::size_t size_bytes, std::shared_ptr<void> owner, bool written);
  std::byte* data_;
  std::size_t size_bytes_;
  std::shared_ptr<void> owner_;
  WrittenBits written_;
  std::shared_ptr<Producer> producer_;
  Uses uses_;
};

// Where on the chip: first partition, and byte offset inside each partition.
struct Address {
  int partition = 0;
  std::int64_t offset_bytes = 0;
};

enum class BufferRole : std::uint8_t {
  kLocal,    // made by the kernel
  kInput,    // an argument of the kernel; a write changes the caller's bytes
  kShared,   // HBM seen by both cores of an LNC pair (`shared_hbm`); may be returned
  kConstant  // bytes known before the launch (`shared_constant`)
};

struct Buffer {
  Space space = Space::kHbm;
  BufferRole role = BufferRole::kLocal;
  std::uint32_t id = 0;  // unique in a launch, in order of creation
  std::string name;
  SourceLine where;

  // Rows are partitions on the chip and whole rows of the last dimension in HBM.
  std::int64_t rows = 0;
  std::int64_t row_bytes = 0;
  std::int64_t pitch_bytes = 0;    // from one row to the next; equals row_bytes unless a window
  std::int64_t origin_bytes = 0;   // of row 0 in the storage
  std::optional<Address> address;  // chosen by the kernel; empty: Placement decides

  std::shared_ptr<Storage> storage;  // null in a time-only run

  // PSUM only: bytes that a matmul wrote since the tensor was made. `accumulate=None` adds exactly
  // there and overwrites elsewhere (nki.md §5.1-2: decided per location).
  std::unique_ptr<WrittenBits> matmul_written;

  bool has_data() const { return storage != nullptr; }
  bool on_chip() const { return space != Space::kHbm; }
  std::byte* data() const { return storage->data() + origin_bytes; }
  std::int64_t size_bytes() const { return rows * row_bytes; }
};

using BufferPtr = std::shared_ptr<Buffer>;

}  // namespace trena
