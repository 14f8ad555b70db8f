// The host's bytes behind the tensors of one program: each has its own, or a window on the SBUF or
// PSUM of its core where the kernel chose an address, or those of the caller.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "trena/core/executor.h"
#include "trena/machine/machine.h"
#include "trena/memory/buffer.h"
#include "trena/number/dtype.h"

namespace trena {

// What a read of bytes that nobody wrote does.
enum class UnwrittenPolicy : std::uint8_t {
  kRefuse,    // unwritten-read
  kSentinel,  // finds NaN, or 4 in integers, as in the vendor's simulator (nki.md §1.5)
};

// Makes bytes look like that: NaN, 4 in integers, 0 where the type has neither; counts them as
// written.
void fill_sentinel(Storage& storage, DType dtype);

class TensorBytes {
 public:
  // Who looks at the bytes settles `executor` first.
  TensorBytes(const Machine& machine, int core_count, UnwrittenPolicy unwritten,
              std::shared_ptr<Executor> executor);

  // Unwritten bytes for a tensor of `core`, where its address says if it has one.
  void provide(const BufferPtr& buffer, DType dtype, int core);
  // The caller's, kept alive by `owner`, written. One array of the caller may be two arguments:
  // what writes one then changes the other, and the executor stays in step.
  void provide_external(Buffer& buffer, std::byte* data, std::shared_ptr<void> owner);

 private:
  // The whole arrays of a core, made when the first tensor with an address needs them.
  struct Arrays {
    std::shared_ptr<Storage> sbuf;
    std::shared_ptr<Storage> psum;
  };

  std::shared_ptr<Storage>& array(int core, Space space);
  std::shared_ptr<Storage> allocate(std::int64_t size_bytes);
  void collect();

  const Machine& machine_;
  UnwrittenPolicy unwritten_;
  std::shared_ptr<Executor> executor_;
  std::vector<Arrays> arrays_;  // by core
  std::vector<std::shared_ptr<Storage>> external_;
  std::vector<BufferPtr> resident_;  // those whose bytes collect() may find out of reach
  std::unordered_map<std::size_t, std::vector<std::shared_ptr<Storage>>> spare_;  // by size
  std::int64_t bytes_since_collect_ = 0;
};

}  // namespace trena
