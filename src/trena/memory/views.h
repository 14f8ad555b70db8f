// The view algebra of the current NKI API (nki.md §5.1-5, 5.1-6; the NkiTensor class of the public
// stubs).
//
// Every function returns a view of the same buffer; nothing is copied. Sizes, indices, strides and
// offsets are in elements of the view's dtype, as kernels write them. On the chip
//   * dimension 0 is the partition dimension: it is never dropped, split, merged, moved or
//   broadcast, and a
//     tensor keeps at least two dimensions;
//   * the kernel's partition stride is the number of elements in a partition of the tensor,
//   whatever the pitch
//     of the memory behind it.
// HBM has no partition dimension; its views keep at least one dimension.
//
// Errors: `out-of-bounds` (kBounds) for every index or slice that leaves the tensor; for a pattern
// when it is used.
// Nothing is clamped, unlike NumPy: the public constraint is 0 <= start < end <= size, and the
// hardware would touch other bytes. Malformed calls are kUsage, views that the hardware cannot
// address kIllegal, each with its own id.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trena/memory/tensor.h"

namespace trena::views {

// One part of `tensor[...]`.
struct Index {
  enum class Kind : std::uint8_t {
    kInteger,  // start
    kSlice,    // start : stop : step, each may be missing; negative bounds count from the end
    kWindow,   // nl.ds(start, count, step): `stop` is the count
    kEllipsis,
    kDynamic,  // a value read at run time; `value` says which
  };
  Kind kind = Kind::kSlice;
  bool has_start = false;
  bool has_stop = false;
  std::int64_t start = 0;
  std::int64_t stop = 0;
  std::int64_t step = 1;
  const Tensor* value = nullptr;  // kDynamic: one element; kWindow: the start if not null
};

Tensor index(const Tensor& tensor, std::span<const Index> indices);

Tensor slice(const Tensor& tensor, int dim, std::int64_t start, std::int64_t end,
             std::int64_t step = 1);
Tensor select(const Tensor& tensor, int dim, std::int64_t index);
Tensor permute(const Tensor& tensor, std::span<const int> dims);
Tensor broadcast(const Tensor& tensor, int dim, std::int64_t size);
Tensor expand_dim(const Tensor& tensor, int dim);
Tensor squeeze_dim(const Tensor& tensor, int dim);
Tensor reshape(const Tensor& tensor, std::span<const std::int64_t> shape);  // one size may be -1
Tensor reshape_dim(const Tensor& tensor, int dim,
                   std::span<const std::int64_t> shape);  // one size may be -1
Tensor flatten_dims(const Tensor& tensor, int start_dim, int end_dim);
Tensor view(const Tensor& tensor, DType dtype);

// One dimension of an einops-style pattern: the names it is made of (one, or a group in
// parentheses).
using Group = std::vector<std::string>;
Tensor rearrange(const Tensor& tensor, std::span<const Group> source,
                 std::span<const Group> destination,
                 std::span<const std::pair<std::string, std::int64_t>> fixed_sizes);

// One [stride, count] pair, in elements.
struct Step {
  std::int64_t stride = 0;
  std::int64_t count = 1;
};

// What an explicit `ap(offset=N)` counts from when the view already has an offset. The public
// documents disagree: the 0.6 stub adds it to the view's, the deep dive and the language guide
// count from the start of the storage. They agree on base tensors and on `offset=None`.
enum class ApOffset : std::uint8_t { kAddedToView, kFromStorage };
inline constexpr ApOffset kApOffset = ApOffset::kAddedToView;

// An index that is read when the instruction runs: from a register (its value), or from a tensor of
// one element.
struct ScalarOffset {
  std::int64_t value = 0;
  const Tensor* tensor = nullptr;  // wins over `value`
};

struct ApRequest {
  std::span<const Step> pattern = {};
  std::optional<std::int64_t> offset = {};  // empty: the view's own
  std::optional<ScalarOffset> scalar_offset = {};
  const Tensor* vector_offset = nullptr;
  int indirect_dim = 0;
  std::optional<DType> dtype = {};  // pattern and offset count elements of it
};

struct ApView {
  Tensor tensor;
  bool offset_is_contested =
      false;  // the documents would give different addresses: worth a warning
};

// A pattern that leaves the tensor makes a view that nobody may use: `out-of-bounds` comes from the
// instruction, since kernels make such views and then skip what would touch them.
ApView ap(const Tensor& tensor, const ApRequest& request);

// One slice at an index that a tensor or register holds; the dimension is dropped.
Tensor select(const Tensor& tensor, int dim, const ScalarOffset& index);
// Row i of the result is row vector_offset[i] of an HBM tensor.
Tensor vector_select(const Tensor& tensor, int dim, const Tensor& vector_offset);
// Tensor indirection of v4: (P, count) columns at the free offsets that `index` holds.
Tensor indirect(const Tensor& tensor, const Tensor& index, std::optional<std::int64_t> count);

// The kernel's own numbers, in elements.
std::vector<std::int64_t> strides(const Tensor& tensor);
std::int64_t offset(const Tensor& tensor);
std::vector<Step> pattern(const Tensor& tensor);
// Row-major and dense; on the chip within each partition.
bool is_contiguous(const Tensor& tensor);

// The only element of `tensor` as an integer. `not-modelled` in a program without values,
// `unwritten-read` if nobody wrote it, `indirect-offset` if it is not one integer.
std::int64_t scalar_value(const Tensor& tensor, std::string_view role);

// The run-time index of row `row` of a vector-indirect view, and whether the base tensor has such a
// row. Indices are taken down the partitions first, index.T.flatten() (nki.md §5.3-21).
std::int64_t gathered_index(const Tensor& view, std::int64_t row);
bool in_bounds(const Tensor& view, std::int64_t index);
// The row as an ordinary view (size 1 along dimension 0); throws `out-of-bounds`.
Tensor gathered_row(const Tensor& view, std::int64_t row);

}  // namespace trena::views
