// A tensor as kernels see it: a strided view of a Buffer.
//
// On the chip dimension 0 is the partition dimension and its stride is the buffer's pitch; the
// other dimensions are the free axis. All strides and offsets are bytes of the buffer, so that a
// view may change its dtype. Views never copy (views.cpp holds the algebra of nki.md
// §5.1-5, 5.1-6).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "trena/memory/buffer.h"
#include "trena/number/dtype.h"

namespace trena {

struct Dim {
  std::int64_t size = 0;
  std::int64_t stride_bytes = 0;
  bool operator==(const Dim&) const = default;
};

struct Indirection;

class Tensor {
 public:
  static constexpr int kMaxRank = 8;

  Tensor() = default;
  // The whole buffer as a row-major tensor of `shape`.
  Tensor(BufferPtr buffer, DType dtype, std::span<const std::int64_t> shape);

  const BufferPtr& buffer() const { return buffer_; }

  // A tensor keeps the bytes of its buffer alive. A recorded instruction gives them up: once nobody
  // can name a tensor any more, Program uses its bytes again, while the buffer stays for the clock.
  void unpin() const { pin_.reset(); }

  DType dtype() const { return dtype_; }
  Space space() const { return buffer_->space; }
  bool on_chip() const { return buffer_->on_chip(); }
  int rank() const { return rank_; }
  const Dim& dim(int axis) const { return dims_[axis]; }
  std::int64_t size(int axis) const { return dims_[axis].size; }
  std::int64_t offset_bytes() const { return offset_bytes_; }
  std::vector<std::int64_t> shape() const;
  std::int64_t element_count() const;
  std::int64_t size_bytes() const {
    return element_count() * static_cast<std::int64_t>(trena::size_bytes(dtype_));
  }
  std::byte* data() const { return buffer_->data() + offset_bytes_; }

  // On the chip: partitions and the free axis (elements per partition).
  std::int64_t partitions() const { return dims_[0].size; }
  std::int64_t free_size() const;
  std::int64_t free_bytes() const {
    return free_size() * static_cast<std::int64_t>(trena::size_bytes(dtype_));
  }
  int start_partition() const;  // inside the memory, when the buffer's place is known
  std::int64_t free_offset_bytes()
      const;  // of the first element inside its partition, relative to the buffer

  // The free dimensions with adjacent ones merged where they are contiguous: what an access pattern
  // encodes.
  struct FreePattern {
    std::array<Dim, kMaxRank> dims;  // outermost first
    int rank = 0;
    std::int64_t count = 1;
  };
  FreePattern free_pattern() const;
  bool free_contiguous()
      const;  // innermost stride is one element and the pattern has one dimension
  std::int64_t innermost_stride_bytes() const;

  // Null for an ordinary view.
  const std::shared_ptr<const Indirection>& indirection() const { return indirection_; }

  // "k[128, 512] bfloat16 sbuf": for messages.
  std::string describe() const;

  // A view with explicit dimensions; the caller promises that it stays inside the buffer.
  Tensor with(DType dtype, std::int64_t offset_bytes, std::span<const Dim> dims) const;
  Tensor with_indirection(std::shared_ptr<const Indirection> indirection) const&;
  Tensor with_indirection(std::shared_ptr<const Indirection> indirection) &&;

 private:
  BufferPtr buffer_;
  mutable std::shared_ptr<Storage> pin_;
  DType dtype_ = DType::kFloat32;
  std::uint8_t rank_ = 0;
  std::int64_t offset_bytes_ = 0;
  std::array<Dim, kMaxRank> dims_{};
  std::shared_ptr<const Indirection> indirection_;
};

// A data-dependent address. Whoever executes an instruction reads the index when it runs:
//   kScalar   `select(dim, tensor)`, `ap(scalar_offset=…)`: one index, already added to the view's
//   offset when the
//             view was made. Only the order of events needs the tensor.
//   kVector   `vector_select`, `ap(vector_offset=…)`: row i of the view is row index[i] of the base
//             (views::gathered_row). The view's offset is that of base row 0.
//   kColumns  `indirect`, v4: element i of a partition is at free offset index[i % G, i / G] of its
//   group of G
//             partitions (16 for vector, scalar and gpsimd, 32 for tensor); dimension 1 counts
//             them.
struct Indirection {
  enum class Kind : std::uint8_t { kScalar, kVector, kColumns };
  Kind kind = Kind::kVector;
  std::optional<Tensor> index;        // empty: the index came from a register
  std::int64_t row_stride_bytes = 0;  // kVector: of dimension 0 of the base tensor
  std::int64_t row_count =
      0;  // kVector: rows of the base tensor; kColumns: its elements per partition
  // kScalar with an index outside the base tensor: what is wrong with it. The view then stands at
  // index 0; an instruction with oob_mode.skip leaves it alone, any other is refused.
  std::optional<ErrorText> escape;
  // The escape was known while tracing, so that oob_mode has no say: kernels make patterns beyond
  // the end of a tensor and then do not use them, but no instruction may.
  bool escape_is_static = false;
};

}  // namespace trena
