#include "trena/memory/views.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "trena/memory/rows.h"

namespace trena::views {
namespace {

// A view under construction.
struct Shape {
  std::array<Dim, Tensor::kMaxRank> dims{};
  int rank = 0;

  void push(Dim dim) {
    if (rank == Tensor::kMaxRank) {
      throw Error(ErrorKind::kUsage, "rank-limit",
                  {.rule = "a view has a limited number of dimensions",
                   .here = fmt::format("more than {} dimensions", Tensor::kMaxRank),
                   .limit = fmt::format("{} dimensions", Tensor::kMaxRank)});
    }
    dims[static_cast<std::size_t>(rank++)] = dim;
  }
  std::span<const Dim> span() const { return {dims.data(), static_cast<std::size_t>(rank)}; }
};

std::int64_t width(const Tensor& tensor) {
  return static_cast<std::int64_t>(size_bytes(tensor.dtype()));
}

bool gathers(const Tensor& tensor) {
  return tensor.indirection() && tensor.indirection()->kind == Indirection::Kind::kVector;
}

// ---- complaints
// ----------------------------------------------------------------------------------------

[[noreturn]] void usage(std::string_view id, ErrorText text) {
  throw Error(ErrorKind::kUsage, id, std::move(text));
}
[[noreturn]] void illegal(std::string_view id, ErrorText text) {
  throw Error(ErrorKind::kIllegal, id, std::move(text));
}

ErrorText index_text(const Tensor& tensor, int axis, std::int64_t index, std::int64_t first) {
  return {.rule = "an index stays inside its dimension",
          .here = fmt::format("index {} of dimension {} of {}", index, axis, tensor.describe()),
          .limit = fmt::format("{} to {}", first, tensor.size(axis) - 1)};
}

[[noreturn]] void throw_index(const Tensor& tensor, int axis, std::int64_t index,
                              std::int64_t first) {
  throw Error(ErrorKind::kBounds, "out-of-bounds", index_text(tensor, axis, index, first));
}

[[noreturn]] void throw_slice(const Tensor& tensor, int axis, std::int64_t start,
                              std::int64_t stop) {
  throw Error(
      ErrorKind::kBounds, "out-of-bounds",
      {.rule =
           "a slice holds at least one element and stays inside its dimension (0 <= start < end <= "
           "size); nothing is clamped",
       .here =
           fmt::format("slice {}:{} of dimension {} of {}", start, stop, axis, tensor.describe()),
       .limit = fmt::format("0 to {}", tensor.size(axis)),
       .fix = "bound the slice with min(end, tensor.shape[dim])"});
}

[[noreturn]] void throw_step(const Tensor& tensor, int axis, std::int64_t step) {
  usage("slice-step",
        {.rule = "a slice goes forward: its step is at least 1",
         .here = fmt::format("step {} on dimension {} of {}", step, axis, tensor.describe())});
}

[[noreturn]] void throw_partition_stride(const Tensor& tensor, std::string here,
                                         std::string limit) {
  illegal("partition-stride", {.rule = "an access reads consecutive partitions: there is no stride "
                                       "along the partition dimension "
                                       "(hw.md §1.5)",
                               .here = fmt::format("{} of {}", here, tensor.describe()),
                               .limit = std::move(limit)});
}

// Dimension 0 cannot take part in `operation`: partitions on the chip, gathered rows of an indirect
// view.
void require_not_first(const Tensor& tensor, int dim, std::string_view operation) {
  if (dim != 0) {
    return;
  }
  if (tensor.on_chip()) {
    illegal("partition-dim",
            {.rule = "the partition dimension stays first and whole: data moves between partitions "
                     "only by an instruction",
             .here = fmt::format("{} of dimension 0 of {}", operation, tensor.describe()),
             .fix = "act on the free dimensions, or move the data (nc_transpose, dma_copy)"});
  }
  if (gathers(tensor)) {
    illegal("indirect-view",
            {.rule = "the gathered dimension of an indirect view stays first and whole",
             .here = fmt::format("{} of dimension 0 of {}", operation, tensor.describe())});
  }
}

// Views of a tensor-indirect operand do not exist: its columns are known only when the instruction
// runs.
// Is the view, as far as is known while tracing, one of bytes that are its tensor's?
void require_inside(const Tensor& tensor) {
  if (tensor.indirection() && tensor.indirection()->escape) {
    throw Error(ErrorKind::kBounds, "out-of-bounds", *tensor.indirection()->escape);
  }
}

void require_viewable(const Tensor& tensor, std::string_view operation) {
  if (tensor.indirection() && tensor.indirection()->escape_is_static) {
    require_inside(tensor);
  }
  if (tensor.indirection() && tensor.indirection()->kind == Indirection::Kind::kColumns) {
    illegal("indirect-view", {.rule = "a tensor-indirect operand goes to an instruction as it is",
                              .here = fmt::format("{} of {}", operation, tensor.describe()),
                              .fix = "take the view first, then .indirect()"});
  }
}

int resolve_axis(const Tensor& tensor, int dim, int limit) {
  const int axis = dim < 0 ? dim + limit : dim;
  if (axis < 0 || axis >= limit) {
    usage("axis-out-of-range", {.rule = "a dimension is numbered from 0",
                                .here = fmt::format("dimension {} of {}", dim, tensor.describe()),
                                .limit = fmt::format("0 to {}", limit - 1)});
  }
  return axis;
}
int resolve_axis(const Tensor& tensor, int dim) { return resolve_axis(tensor, dim, tensor.rank()); }

// The chip keeps [partition, free]; HBM keeps one dimension. (Tensors made with fewer stay as they
// are.)
int least_rank(const Tensor& tensor) { return std::min(tensor.on_chip() ? 2 : 1, tensor.rank()); }

void require_rank(const Tensor& tensor, int rank, std::string_view operation) {
  if (rank >= least_rank(tensor)) {
    return;
  }
  illegal(
      "least-rank",
      {.rule = "a tensor on the chip keeps a partition and a free dimension; one in HBM keeps one",
       .here =
           fmt::format("{} of {} would leave {} dimensions", operation, tensor.describe(), rank),
       .limit = fmt::format("at least {}", least_rank(tensor))});
}

// ---- elements and bytes
// --------------------------------------------------------------------------------

// The kernel counts elements of a dense tensor; a window on the chip has another pitch.
std::int64_t partition_elements(const Tensor& tensor, DType dtype) {
  return tensor.buffer()->row_bytes / static_cast<std::int64_t>(size_bytes(dtype));
}

std::int64_t stride_elements(const Tensor& tensor, int axis) {
  const std::int64_t bytes = tensor.dim(axis).stride_bytes;
  if (axis == 0 && tensor.on_chip()) {
    return bytes / tensor.buffer()->pitch_bytes * partition_elements(tensor, tensor.dtype());
  }
  return bytes / width(tensor);
}

// Lowest and highest byte, relative to the first element, that dimensions from `first_axis` on
// reach.
struct Extent {
  std::int64_t low = 0;
  std::int64_t high = 0;
};
Extent extent(std::span<const Dim> dims) {
  Extent reach;
  for (const Dim& dim : dims) {
    const std::int64_t last = (dim.size - 1) * dim.stride_bytes;
    (last < 0 ? reach.low : reach.high) += last;
  }
  return reach;
}

// Does [offset, …] with these dimensions stay inside the buffer, and on the chip inside its
// partitions?
bool inside(const Tensor& tensor, std::int64_t offset_bytes, std::span<const Dim> dims,
            std::int64_t element_bytes) {
  const Buffer& buffer = *tensor.buffer();
  if (!buffer.on_chip()) {
    const Extent reach = extent(dims);
    return offset_bytes + reach.low >= 0 &&
           offset_bytes + reach.high + element_bytes <= buffer.size_bytes();
  }
  if (offset_bytes < 0) {
    return false;
  }
  const std::int64_t partition = offset_bytes / buffer.pitch_bytes;
  const std::int64_t free = offset_bytes % buffer.pitch_bytes;
  const Extent reach = extent(dims.subspan(1));
  return partition + dims[0].size <= buffer.rows && free + reach.low >= 0 &&
         free + reach.high + element_bytes <= buffer.row_bytes;
}

// ---- indexing
// ------------------------------------------------------------------------------------------

std::shared_ptr<Indirection> scalar_indirection(const Tensor& tensor, const Tensor* index) {
  if (tensor.indirection()) {
    illegal("indirect-view",
            {.rule = "a view takes one run-time index: it cannot be made indirect again",
             .here = fmt::format("a second run-time index for {}", tensor.describe()),
             .fix = "guard with is_indirect()"});
  }
  auto indirection = std::make_shared<Indirection>();
  indirection->kind = Indirection::Kind::kScalar;
  if (index != nullptr) {
    indirection->index = *index;
  }
  return indirection;
}

std::int64_t wrap(std::int64_t index, std::int64_t size) {
  return index < 0 ? index + size : index;
}

// Adds one sliced dimension to `result` and returns the bytes to its first element.
std::int64_t push_slice(const Tensor& tensor, int axis, std::int64_t start, std::int64_t stop,
                        std::int64_t step, Shape& result) {
  const Dim& dim = tensor.dim(axis);
  if (step < 1) {
    throw_step(tensor, axis, step);
  }
  if (start < 0 || start >= stop || stop > dim.size) {
    throw_slice(tensor, axis, start, stop);
  }
  const std::int64_t count = (stop - start + step - 1) / step;
  const bool partition = axis == 0 && tensor.on_chip();
  if (partition && step != 1 && count > 1) {
    throw_partition_stride(tensor, fmt::format("step {} on dimension 0", step), "step 1");
  }
  if (axis == 0 && gathers(tensor) && (start != 0 || count != dim.size)) {
    require_not_first(tensor, 0, "a slice");
  }
  result.push({count, partition ? dim.stride_bytes : dim.stride_bytes * step});
  return start * dim.stride_bytes;
}

std::int64_t push_window(const Tensor& tensor, int axis, const Index& index, std::int64_t start,
                         Shape& result) {
  if (index.step < 1) {
    throw_step(tensor, axis, index.step);
  }
  const std::int64_t stop = start + (index.stop - 1) * index.step + 1;
  return push_slice(tensor, axis, start, stop, index.step, result);
}

std::int64_t checked_index(const Tensor& tensor, int axis, std::int64_t index, std::int64_t least) {
  const std::int64_t size = tensor.size(axis);
  if (index < least || index >= size) {
    throw_index(tensor, axis, index, least);
  }
  if (axis == 0 && gathers(tensor)) {
    require_not_first(tensor, 0, "an index");
  }
  return wrap(index, size);
}

// An index known only at run time: one outside is the business of the instruction (oob_mode).
std::int64_t index_or_escape(const Tensor& tensor, int axis, std::int64_t index,
                             Indirection& indirection) {
  if (index >= 0 && index < tensor.size(axis)) {
    return index;
  }
  indirection.escape = index_text(tensor, axis, index, 0);
  return 0;
}

int count_axes(const Tensor& tensor, std::span<const Index> indices) {
  int axes = 0;
  int ellipses = 0;
  for (const Index& index : indices) {
    (index.kind == Index::Kind::kEllipsis ? ellipses : axes) += 1;
  }
  if (ellipses > 1) {
    usage("too-many-indices",
          {.rule = "an index has at most one ellipsis",
           .here = fmt::format("{} ellipses for {}", ellipses, tensor.describe())});
  }
  if (axes > tensor.rank()) {
    usage("too-many-indices", {.rule = "an index has at most one entry for each dimension",
                               .here = fmt::format("{} indices for {}", axes, tensor.describe()),
                               .limit = fmt::format("{}", tensor.rank())});
  }
  return axes;
}

}  // namespace

Tensor index(const Tensor& tensor, std::span<const Index> indices) {
  require_viewable(tensor, "an index");
  const int skipped = tensor.rank() - count_axes(tensor, indices);
  std::shared_ptr<const Indirection> indirection = tensor.indirection();
  Shape result;
  Dim dropped;
  std::int64_t offset = tensor.offset_bytes();
  int axis = 0;
  const auto run_time_index = [&](const Tensor& value) {
    const Tensor plain =
        indirection && !tensor.indirection() ? tensor.with_indirection(indirection) : tensor;
    indirection = scalar_indirection(plain, &value);
    return scalar_value(value, "an index");
  };
  const auto drop = [&](std::int64_t position) {
    const Dim& dim = tensor.dim(axis);
    offset += position * dim.stride_bytes;
    if (axis == 0 && tensor.on_chip()) {
      result.push({1, dim.stride_bytes});
    } else {
      dropped = {1, dim.stride_bytes};
    }
    ++axis;
  };
  for (const Index& index : indices) {
    switch (index.kind) {
      case Index::Kind::kInteger:
        drop(checked_index(tensor, axis, index.start, -tensor.size(axis)));
        break;
      case Index::Kind::kDynamic:
        require_not_first(tensor, axis, "a run-time index");
        drop(checked_index(tensor, axis, run_time_index(*index.value), 0));
        break;
      case Index::Kind::kSlice: {
        const std::int64_t size = tensor.size(axis);
        const std::int64_t start = index.has_start ? wrap(index.start, size) : 0;
        const std::int64_t stop = index.has_stop ? wrap(index.stop, size) : size;
        offset += push_slice(tensor, axis, start, stop, index.step, result);
        ++axis;
        break;
      }
      case Index::Kind::kWindow: {
        const std::int64_t start =
            index.value != nullptr ? run_time_index(*index.value) : index.start;
        offset += push_window(tensor, axis, index, start, result);
        ++axis;
        break;
      }
      case Index::Kind::kEllipsis:
        for (int i = 0; i < skipped; ++i) {
          result.push(tensor.dim(axis++));
        }
        break;
    }
  }
  while (axis < tensor.rank()) {
    result.push(tensor.dim(axis++));
  }
  if (result.rank < least_rank(tensor)) {  // the last dimension stays, with size 1
    result.push(dropped);
  }
  return tensor.with(tensor.dtype(), offset, result.span())
      .with_indirection(std::move(indirection));
}

Tensor slice(const Tensor& tensor, int dim, std::int64_t start, std::int64_t end,
             std::int64_t step) {
  require_viewable(tensor, "a slice");
  const int axis = resolve_axis(tensor, dim);
  Shape result;
  std::int64_t offset = tensor.offset_bytes();
  for (int other = 0; other < tensor.rank(); ++other) {
    if (other == axis) {
      offset += push_slice(tensor, axis, start, end, step, result);
    } else {
      result.push(tensor.dim(other));
    }
  }
  return tensor.with(tensor.dtype(), offset, result.span());
}

namespace {

// Drops one dimension at a checked position, with the rules of indexing.
Tensor drop_axis(const Tensor& tensor, int axis, std::int64_t position) {
  std::array<Index, Tensor::kMaxRank> indices{};
  indices[static_cast<std::size_t>(axis)] = {.kind = Index::Kind::kInteger, .start = position};
  return index(tensor, std::span(indices).first(static_cast<std::size_t>(tensor.rank())));
}

}  // namespace

Tensor select(const Tensor& tensor, int dim, std::int64_t index) {
  const int axis = resolve_axis(tensor, dim);
  return drop_axis(tensor, axis, checked_index(tensor, axis, index, 0));
}

Tensor select(const Tensor& tensor, int dim, const ScalarOffset& index) {
  const int axis = resolve_axis(tensor, dim);
  require_viewable(tensor, "a run-time select");
  require_not_first(tensor, axis, "a run-time select");
  std::shared_ptr<Indirection> indirection = scalar_indirection(tensor, index.tensor);
  const std::int64_t value =
      index.tensor != nullptr ? scalar_value(*index.tensor, "index") : index.value;
  return drop_axis(tensor, axis, index_or_escape(tensor, axis, value, *indirection))
      .with_indirection(std::move(indirection));
}

// ---- shapes
// --------------------------------------------------------------------------------------------

Tensor permute(const Tensor& tensor, std::span<const int> dims) {
  require_viewable(tensor, "permute");
  Shape result;
  std::array<bool, Tensor::kMaxRank> seen{};
  bool valid = static_cast<int>(dims.size()) == tensor.rank();
  for (const int dim : dims) {
    const int axis = dim < 0 ? dim + tensor.rank() : dim;
    valid = valid && axis >= 0 && axis < tensor.rank() && !seen[static_cast<std::size_t>(axis)];
    if (!valid) {
      break;
    }
    seen[static_cast<std::size_t>(axis)] = true;
    if (result.rank == 0 && axis != 0) {
      require_not_first(tensor, 0, "permute");
    }
    result.push(tensor.dim(axis));
  }
  if (!valid) {
    usage("permute-dims",
          {.rule = "permute names every dimension once",
           .here = fmt::format("dims ({}) for {}", fmt::join(dims, ", "), tensor.describe()),
           .limit = fmt::format("a permutation of 0 to {}", tensor.rank() - 1)});
  }
  return tensor.with(tensor.dtype(), tensor.offset_bytes(), result.span());
}

Tensor broadcast(const Tensor& tensor, int dim, std::int64_t size) {
  require_viewable(tensor, "broadcast");
  const int axis = resolve_axis(tensor, dim);
  require_not_first(tensor, axis, "broadcast");
  if (tensor.size(axis) != 1 || size < 1) {
    usage("broadcast-size",
          {.rule = "broadcast repeats a dimension of size 1 at least once",
           .here = fmt::format("dimension {} of {} to {}", dim, tensor.describe(), size)});
  }
  Shape result;
  for (int other = 0; other < tensor.rank(); ++other) {
    result.push(other == axis ? Dim{size, 0} : tensor.dim(other));
  }
  return tensor.with(tensor.dtype(), tensor.offset_bytes(), result.span());
}

Tensor expand_dim(const Tensor& tensor, int dim) {
  require_viewable(tensor, "expand_dim");
  const int axis = resolve_axis(tensor, dim, tensor.rank() + 1);
  require_not_first(tensor, axis, "expand_dim");
  const std::int64_t stride =
      axis < tensor.rank() ? tensor.size(axis) * tensor.dim(axis).stride_bytes : width(tensor);
  Shape result;
  for (int other = 0; other <= tensor.rank(); ++other) {
    if (other == axis) {
      result.push({1, stride});
    }
    if (other < tensor.rank()) {
      result.push(tensor.dim(other));
    }
  }
  return tensor.with(tensor.dtype(), tensor.offset_bytes(), result.span());
}

Tensor squeeze_dim(const Tensor& tensor, int dim) {
  require_viewable(tensor, "squeeze_dim");
  const int axis = resolve_axis(tensor, dim);
  require_not_first(tensor, axis, "squeeze_dim");
  if (tensor.size(axis) != 1) {
    usage("squeeze-size", {.rule = "squeeze_dim removes a dimension of size 1",
                           .here = fmt::format("dimension {} of {}", dim, tensor.describe())});
  }
  require_rank(tensor, tensor.rank() - 1, "squeeze_dim");
  Shape result;
  for (int other = 0; other < tensor.rank(); ++other) {
    if (other != axis) {
      result.push(tensor.dim(other));
    }
  }
  return tensor.with(tensor.dtype(), tensor.offset_bytes(), result.span());
}

namespace {

// Sizes with the -1 replaced, or nothing when they do not multiply to `count`.
std::optional<std::vector<std::int64_t>> infer(std::span<const std::int64_t> shape,
                                               std::int64_t count) {
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  std::int64_t known = 1;
  std::int64_t* missing = nullptr;
  for (std::int64_t& size : sizes) {
    if (size == -1 && missing == nullptr) {
      missing = &size;
    } else if (size < 1) {
      return std::nullopt;
    } else {
      known *= size;
    }
  }
  if (missing != nullptr) {
    if (count % known != 0) {
      return std::nullopt;
    }
    *missing = count / known;
    known = count;
  }
  return known == count ? std::optional(std::move(sizes)) : std::nullopt;
}

// The given dimensions under new sizes of the same product, or nothing when a new dimension would
// need two strides.
std::optional<Shape> restride(std::span<const Dim> from, std::span<const std::int64_t> sizes,
                              std::int64_t element_bytes) {
  std::array<Dim, Tensor::kMaxRank> old;
  std::size_t old_rank = 0;
  for (const Dim& dim : from) {
    if (dim.size != 1) {
      old[old_rank++] = dim;
    }
  }
  Shape result;
  for (const std::int64_t size : sizes) {
    result.push({size, element_bytes});
  }
  std::size_t next_old = 0;
  std::size_t next_new = 0;
  while (next_old < old_rank) {
    // The smallest groups of old and new dimensions with the same number of elements.
    const std::size_t first_new = next_new;
    std::int64_t old_count = old[next_old++].size;
    std::int64_t new_count = sizes[next_new++];
    while (old_count != new_count) {
      if (new_count < old_count) {
        new_count *= sizes[next_new++];
      } else {
        const Dim& outer = old[next_old - 1];
        const Dim& inner = old[next_old++];
        if (outer.stride_bytes != inner.size * inner.stride_bytes) {
          return std::nullopt;
        }
        old_count *= inner.size;
      }
    }
    std::int64_t stride = old[next_old - 1].stride_bytes;
    for (std::size_t axis = next_new; axis-- > first_new;) {
      result.dims[axis].stride_bytes = stride;
      stride *= sizes[axis];
    }
  }
  return result;
}

[[noreturn]] void throw_reshape_size(const Tensor& tensor, std::span<const std::int64_t> shape,
                                     std::int64_t count) {
  usage("reshape-size",
        {.rule = "a reshape keeps the number of elements; one size may be -1",
         .here = fmt::format("({}) for {}", fmt::join(shape, ", "), tensor.describe()),
         .limit = fmt::format("sizes that multiply to {}", count)});
}

[[noreturn]] void throw_reshape_layout(const Tensor& tensor, std::string_view operation) {
  illegal("reshape-layout",
          {.rule = "a reshape is a view: elements of one new dimension lie one stride apart",
           .here = fmt::format("{} of {} with strides ({})", operation, tensor.describe(),
                               fmt::join(strides(tensor), ", ")),
           .fix = "copy into a contiguous tensor first, or reshape before slicing and permuting"});
}

}  // namespace

Tensor reshape(const Tensor& tensor, std::span<const std::int64_t> shape) {
  require_viewable(tensor, "reshape");
  const std::int64_t count = tensor.element_count();
  const std::optional<std::vector<std::int64_t>> sizes = infer(shape, count);
  if (!sizes || sizes->empty()) {
    throw_reshape_size(tensor, shape, count);
  }
  const bool keeps_first = tensor.rank() > 0 && (tensor.on_chip() || gathers(tensor));
  if (keeps_first && sizes->front() != tensor.size(0)) {
    require_not_first(tensor, 0, fmt::format("reshape to ({})", fmt::join(shape, ", ")));
  }
  require_rank(tensor, static_cast<int>(sizes->size()), "reshape");
  Shape from;
  for (int axis = keeps_first ? 1 : 0; axis < tensor.rank(); ++axis) {
    from.push(tensor.dim(axis));
  }
  const std::optional<Shape> to =
      restride(from.span(), std::span(*sizes).subspan(keeps_first ? 1 : 0), width(tensor));
  if (!to) {
    throw_reshape_layout(tensor, "reshape");
  }
  Shape result;
  if (keeps_first) {
    result.push(tensor.dim(0));
  }
  for (const Dim& dim : to->span()) {
    result.push(dim);
  }
  return tensor.with(tensor.dtype(), tensor.offset_bytes(), result.span());
}

Tensor reshape_dim(const Tensor& tensor, int dim, std::span<const std::int64_t> shape) {
  require_viewable(tensor, "reshape_dim");
  const int axis = resolve_axis(tensor, dim);
  const std::optional<std::vector<std::int64_t>> sizes = infer(shape, tensor.size(axis));
  if (!sizes || sizes->empty()) {
    throw_reshape_size(tensor, shape, tensor.size(axis));
  }
  if (sizes->size() > 1) {
    require_not_first(tensor, axis, "reshape_dim");
  }
  Shape result;
  for (int other = 0; other < tensor.rank(); ++other) {
    if (other != axis) {
      result.push(tensor.dim(other));
      continue;
    }
    std::int64_t stride = tensor.dim(axis).stride_bytes * tensor.size(axis);
    for (const std::int64_t size : *sizes) {
      stride /= size;
      result.push({size, stride});
    }
  }
  return tensor.with(tensor.dtype(), tensor.offset_bytes(), result.span());
}

Tensor flatten_dims(const Tensor& tensor, int start_dim, int end_dim) {
  require_viewable(tensor, "flatten_dims");
  const int first = resolve_axis(tensor, start_dim);
  const int last = resolve_axis(tensor, end_dim);
  if (first > last) {
    usage("axis-out-of-range", {.rule = "flatten_dims merges start_dim to end_dim, both included",
                                .here = fmt::format("dimensions {} to {}", start_dim, end_dim)});
  }
  if (last > first) {
    require_not_first(tensor, first, "flatten_dims");
  }
  require_rank(tensor, tensor.rank() - (last - first), "flatten_dims");
  std::int64_t count = 1;
  Shape from;
  for (int axis = first; axis <= last; ++axis) {
    count *= tensor.size(axis);
    from.push(tensor.dim(axis));
  }
  const std::array<std::int64_t, 1> sizes = {count};
  std::optional<Shape> merged = restride(from.span(), sizes, width(tensor));
  if (!merged) {
    throw_reshape_layout(tensor, "flatten_dims");
  }
  if (count == 1) {
    merged->dims[0] = tensor.dim(last);
  }
  Shape result;
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    if (axis == first) {
      result.push(merged->dims[0]);
    } else if (axis < first || axis > last) {
      result.push(tensor.dim(axis));
    }
  }
  return tensor.with(tensor.dtype(), tensor.offset_bytes(), result.span());
}

namespace {

[[noreturn]] void throw_view_dtype(const Tensor& tensor, DType dtype, std::string_view reason) {
  illegal("view-dtype",
          {.rule = "another dtype is another way to read the same contiguous bytes",
           .here = fmt::format("view of {} as {}: {}", tensor.describe(), name(dtype), reason)});
}

}  // namespace

Tensor view(const Tensor& tensor, DType dtype) {
  if (tensor.indirection()) {
    illegal("indirect-view",
            {.rule = "an indirect view keeps its dtype",
             .here = fmt::format("view of {} as {}", tensor.describe(), name(dtype)),
             .fix = "take view(dtype) before the run-time index"});
  }
  const std::int64_t from = width(tensor);
  const auto to = static_cast<std::int64_t>(size_bytes(dtype));
  Shape result;
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    result.push(tensor.dim(axis));
  }
  if (from == to || tensor.rank() == 0) {
    if (from != to) {
      throw_view_dtype(tensor, dtype, "it has no last dimension to rescale");
    }
    return tensor.with(dtype, tensor.offset_bytes(), result.span());
  }
  Dim& last = result.dims[static_cast<std::size_t>(result.rank - 1)];
  const bool last_is_partition = tensor.on_chip() && result.rank == 1;
  if (last_is_partition || (last.stride_bytes != from && last.size != 1)) {
    throw_view_dtype(tensor, dtype, "its last dimension is not contiguous");
  }
  if (last.size * from % to != 0) {
    throw_view_dtype(
        tensor, dtype,
        fmt::format("its last dimension has {} bytes, no multiple of {}", last.size * from, to));
  }
  const std::int64_t origin = tensor.on_chip()
                                  ? tensor.offset_bytes() % tensor.buffer()->pitch_bytes
                                  : tensor.offset_bytes();
  bool aligned = origin % to == 0 && (!tensor.on_chip() || tensor.buffer()->row_bytes % to == 0);
  last = {last.size * from / to, to};
  for (int axis = tensor.on_chip() ? 1 : 0; axis < result.rank; ++axis) {
    const Dim& dim = result.dims[static_cast<std::size_t>(axis)];
    aligned = aligned && (dim.size == 1 || dim.stride_bytes % to == 0);
  }
  if (!aligned) {
    throw_view_dtype(tensor, dtype,
                     fmt::format("its rows do not start at multiples of {} bytes", to));
  }
  return tensor.with(dtype, tensor.offset_bytes(), result.span());
}

// ---- rearrange
// -----------------------------------------------------------------------------------------

namespace {

using FixedSizes = std::span<const std::pair<std::string, std::int64_t>>;

[[noreturn]] void throw_rearrange(const Tensor& tensor, std::string here) {
  usage("rearrange-pattern",
        {.rule = "both patterns of rearrange name the same dimensions once; each group has at "
                 "most one size that fixed_sizes does not give",
         .here = fmt::format("{} for {}", here, tensor.describe())});
}

std::vector<std::int64_t> group_sizes(const Group& group, FixedSizes fixed_sizes) {
  std::vector<std::int64_t> sizes;
  for (const std::string& name : group) {
    const auto fixed = std::find_if(fixed_sizes.begin(), fixed_sizes.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    sizes.push_back(fixed == fixed_sizes.end() ? -1 : fixed->second);
  }
  return sizes;
}

// Splits every group of the source pattern; `names` becomes the flat list of dimension names.
Tensor split_groups(const Tensor& tensor, std::span<const Group> source, FixedSizes fixed_sizes,
                    Group& names) {
  Tensor split = tensor;
  for (const Group& group : source) {
    const int axis = static_cast<int>(names.size());
    const std::vector<std::int64_t> sizes = group_sizes(group, fixed_sizes);
    if (!infer(sizes, split.size(axis))) {
      throw_rearrange(tensor,
                      fmt::format("({}) with sizes ({}) for dimension of size {}",
                                  fmt::join(group, " "), fmt::join(sizes, ", "), split.size(axis)));
    }
    split = reshape_dim(split, axis, sizes);
    names.insert(names.end(), group.begin(), group.end());
  }
  return split;
}

}  // namespace

Tensor rearrange(const Tensor& tensor, std::span<const Group> source,
                 std::span<const Group> destination, FixedSizes fixed_sizes) {
  if (static_cast<int>(source.size()) != tensor.rank()) {
    throw_rearrange(tensor, fmt::format("a source pattern of {} dimensions", source.size()));
  }
  Group names;
  Tensor result = split_groups(tensor, source, fixed_sizes, names);
  std::vector<int> order;
  for (const Group& group : destination) {
    for (const std::string& name : group) {
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end()) {
        throw_rearrange(tensor, fmt::format("'{}' is only in the destination", name));
      }
      order.push_back(static_cast<int>(found - names.begin()));
    }
  }
  Group sorted = names;
  std::sort(sorted.begin(), sorted.end());
  if (order.size() != names.size() ||
      std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    throw_rearrange(tensor, fmt::format("{} names in the source, {} in the destination",
                                        names.size(), order.size()));
  }
  result = permute(result, order);
  int axis = 0;
  for (const Group& group : destination) {
    if (group.empty()) {
      result = expand_dim(result, axis++);
    } else {
      result = flatten_dims(result, axis, axis + static_cast<int>(group.size()) - 1);
      ++axis;
    }
  }
  return result;
}

// ---- access patterns
// -----------------------------------------------------------------------------------

namespace {

void require_pattern(const Tensor& tensor, const ApRequest& request) {
  constexpr std::size_t kMaxDims = 5;  // the partition dimension and four free ones (hw.md §1.5)
  const std::size_t least = tensor.on_chip() ? 2 : 1;
  bool valid = request.pattern.size() >= least && request.pattern.size() <= kMaxDims;
  for (const Step& step : request.pattern) {
    valid = valid && step.count >= 1;
  }
  if (!valid) {
    usage("ap-pattern",
          {.rule = "an access pattern is a list of [stride, count] pairs, outermost first",
           .here = fmt::format("{} pairs for {}", request.pattern.size(), tensor.describe()),
           .limit = fmt::format("{} to {} pairs with counts of at least 1", least, kMaxDims)});
  }
}

// Offset in bytes of an element number of the dense tensor.
std::int64_t element_to_bytes(const Tensor& tensor, std::int64_t element, DType dtype) {
  const auto element_bytes = static_cast<std::int64_t>(size_bytes(dtype));
  if (!tensor.on_chip()) {
    return element * element_bytes;
  }
  const std::int64_t per_partition = partition_elements(tensor, dtype);
  return element / per_partition * tensor.buffer()->pitch_bytes +
         element % per_partition * element_bytes;
}

std::int64_t offset_elements(const Tensor& tensor, DType dtype) {
  const auto element_bytes = static_cast<std::int64_t>(size_bytes(dtype));
  const std::int64_t bytes = tensor.offset_bytes();
  if (!tensor.on_chip()) {
    return bytes / element_bytes;
  }
  const std::int64_t pitch = tensor.buffer()->pitch_bytes;
  return bytes / pitch * partition_elements(tensor, dtype) + bytes % pitch / element_bytes;
}

ErrorText ap_bounds(const Tensor& tensor, const ApRequest& request, std::int64_t offset_element,
                    DType dtype) {
  std::vector<std::string> steps;
  for (const Step& step : request.pattern) {
    steps.push_back(fmt::format("[{}, {}]", step.stride, step.count));
  }
  const std::int64_t limit = tensor.on_chip() ? partition_elements(tensor, dtype)
                                              : tensor.buffer()->size_bytes() /
                                                    static_cast<std::int64_t>(size_bytes(dtype));
  return {.rule = "an access pattern stays inside its tensor, on the chip inside each partition",
          .here = fmt::format("pattern [{}] from element {} of {}", fmt::join(steps, ", "),
                              offset_element, tensor.describe()),
          .limit = fmt::format("{} elements{}", limit, tensor.on_chip() ? " per partition" : "")};
}

// A view of the wanted shape that whoever uses it is refused with `text`. Its strides are none, so
// that its extent stays inside the buffer.
Tensor escaped(const Tensor& tensor, DType dtype, Shape dims, ErrorText text) {
  auto indirection = std::make_shared<Indirection>();
  indirection->kind = Indirection::Kind::kScalar;
  indirection->escape = std::move(text);
  indirection->escape_is_static = true;
  for (int axis = 0; axis < dims.rank; ++axis) {
    dims.dims[static_cast<std::size_t>(axis)].stride_bytes = 0;
  }
  return tensor.with(dtype, 0, dims.span()).with_indirection(std::move(indirection));
}

Shape ap_dims(const Tensor& tensor, const ApRequest& request, DType dtype) {
  const auto element_bytes = static_cast<std::int64_t>(size_bytes(dtype));
  Shape dims;
  for (const Step& step : request.pattern) {
    dims.push({step.count, step.stride * element_bytes});
  }
  if (!tensor.on_chip()) {
    return dims;
  }
  const std::int64_t per_partition = partition_elements(tensor, dtype);
  if (request.pattern[0].stride != per_partition && request.pattern[0].count != 1) {
    throw_partition_stride(
        tensor,
        fmt::format("first pair [{}, {}]", request.pattern[0].stride, request.pattern[0].count),
        fmt::format("stride {}, the elements in one partition", per_partition));
  }
  dims.dims[0].stride_bytes = tensor.buffer()->pitch_bytes;
  return dims;
}

void require_integer_tensor(const Tensor& tensor, std::string_view role, bool column) {
  const bool shaped = column ? tensor.space() == Space::kSbuf : tensor.element_count() == 1;
  if (shaped && info(tensor.dtype()).is_integer) {
    return;
  }
  usage("indirect-offset",
        {.rule = column ? "a vector offset is a tensor of integers in SBUF, (P, 1) or (P, K)"
                        : "a run-time index is one integer: a register or a tensor of one element",
         .here = fmt::format("{}={}", role, tensor.describe())});
}

std::shared_ptr<const Indirection> vector_indirection(const Tensor& tensor,
                                                      const Tensor& vector_offset,
                                                      std::int64_t rows) {
  require_integer_tensor(vector_offset, "vector_offset", true);
  if (tensor.on_chip()) {
    illegal("indirect-space", {.rule = "rows are gathered from HBM only",
                               .here = fmt::format("vector_offset on {}", tensor.describe()),
                               .fix = "on the chip use .indirect() (v4) or nc_n_gather"});
  }
  if (tensor.indirection()) {
    illegal("indirect-view",
            {.rule = "a view takes one run-time index: it cannot be made indirect again",
             .here = fmt::format("vector_offset on {}", tensor.describe())});
  }
  if (vector_offset.element_count() < rows) {
    usage("indirect-offset",
          {.rule = "a vector offset has one index for each row of the view",
           .here = fmt::format("{} rows with vector_offset={}", rows, vector_offset.describe())});
  }
  auto indirection = std::make_shared<Indirection>();
  indirection->kind = Indirection::Kind::kVector;
  indirection->index = vector_offset;
  indirection->row_stride_bytes = tensor.dim(0).stride_bytes;
  indirection->row_count = tensor.size(0);
  return indirection;
}

}  // namespace

ApView ap(const Tensor& tensor, const ApRequest& request) {
  require_viewable(tensor, "ap");
  require_pattern(tensor, request);
  const DType dtype = request.dtype.value_or(tensor.dtype());
  const auto element_bytes = static_cast<std::int64_t>(size_bytes(dtype));
  if (tensor.offset_bytes() % element_bytes != 0 ||
      (tensor.on_chip() && tensor.buffer()->row_bytes % element_bytes != 0)) {
    throw_view_dtype(tensor, dtype, "its bytes do not divide into such elements");
  }
  if (request.scalar_offset && request.vector_offset != nullptr) {
    usage("indirect-offset", {.rule = "scalar_offset and vector_offset exclude each other",
                              .here = fmt::format("both on {}", tensor.describe())});
  }
  ApView result;
  const bool counts_from_view = !request.offset || kApOffset == ApOffset::kAddedToView;
  const std::int64_t base = counts_from_view ? offset_elements(tensor, dtype) : 0;
  const std::int64_t element = base + request.offset.value_or(0);
  result.offset_is_contested = request.offset.has_value() && tensor.offset_bytes() != 0;
  Shape dims = ap_dims(tensor, request, dtype);
  std::int64_t offset_bytes = element < 0 ? -1 : element_to_bytes(tensor, element, dtype);
  std::shared_ptr<const Indirection> indirection;
  if (request.scalar_offset) {
    const int axis = resolve_axis(tensor, request.indirect_dim);
    require_not_first(tensor, axis, "scalar_offset");
    std::shared_ptr<Indirection> scalar = scalar_indirection(tensor, request.scalar_offset->tensor);
    const std::int64_t value = request.scalar_offset->tensor != nullptr
                                   ? scalar_value(*request.scalar_offset->tensor, "scalar_offset")
                                   : request.scalar_offset->value;
    offset_bytes += index_or_escape(tensor, axis, value, *scalar) * tensor.dim(axis).stride_bytes;
    indirection = std::move(scalar);
  }
  std::span<const Dim> checked = dims.span();
  if (request.vector_offset != nullptr) {
    const int axis = resolve_axis(tensor, request.indirect_dim);
    if (axis != 0) {
      illegal("indirect-dim", {.rule = "vector_offset chooses rows: indirect_dim is 0",
                               .here = fmt::format("indirect_dim={}", request.indirect_dim)});
    }
    indirection = vector_indirection(tensor, *request.vector_offset, request.pattern[0].count);
    dims.dims[0].stride_bytes =
        indirection->row_stride_bytes;  // the pattern's own is ignored (nki.md §5.1-5)
    checked = dims.span().subspan(1);
  }
  if (!inside(tensor, offset_bytes, checked, element_bytes)) {
    ErrorText text = ap_bounds(tensor, request, element, dtype);
    if (indirection != nullptr || tensor.indirection() != nullptr) {
      throw Error(ErrorKind::kBounds, "out-of-bounds", std::move(text));
    }
    result.tensor = escaped(tensor, dtype, dims, std::move(text));
    return result;
  }
  result.tensor =
      tensor.with(dtype, offset_bytes, dims.span()).with_indirection(std::move(indirection));
  return result;
}

Tensor vector_select(const Tensor& tensor, int dim, const Tensor& vector_offset) {
  require_viewable(tensor, "vector_select");
  if (resolve_axis(tensor, dim) != 0) {
    illegal("indirect-dim",
            {.rule = "vector_select chooses rows: dim is 0", .here = fmt::format("dim={}", dim)});
  }
  std::shared_ptr<const Indirection> indirection =
      vector_indirection(tensor, vector_offset, vector_offset.size(0));
  Shape result;
  result.push({vector_offset.size(0), indirection->row_stride_bytes});
  for (int axis = 1; axis < tensor.rank(); ++axis) {
    result.push(tensor.dim(axis));
  }
  return tensor.with(tensor.dtype(), tensor.offset_bytes(), result.span())
      .with_indirection(std::move(indirection));
}

Tensor indirect(const Tensor& tensor, const Tensor& index, std::optional<std::int64_t> count) {
  require_viewable(tensor, "indirect");
  if (tensor.indirection()) {
    illegal("indirect-view",
            {.rule = "a view takes one run-time index: it cannot be made indirect again",
             .here = fmt::format("indirect on {}", tensor.describe())});
  }
  if (!tensor.on_chip() || index.space() != Space::kSbuf) {
    illegal("indirect-space",
            {.rule = "tensor indirection addresses SBUF or PSUM with an index in SBUF",
             .here = fmt::format("{} by {}", tensor.describe(), index.describe())});
  }
  if (!tensor.free_contiguous() && tensor.free_size() > 1) {
    throw_not_modelled("tensor indirection of " + tensor.describe() +
                       ", which has gaps in its partitions");
  }
  const std::int64_t limit = index.element_count();
  const std::int64_t columns = count.value_or(limit);
  const bool fits =
      index.rank() > 0 && index.size(0) == tensor.size(0) && columns >= 1 && columns <= limit;
  if (!fits || !info(index.dtype()).is_integer) {
    usage("indirect-offset",
          {.rule =
               "an index holds integers, (P, K) for a tensor of P partitions, and num_elem of them",
           .here = fmt::format("num_elem={} with index={} for {}", columns, index.describe(),
                               tensor.describe()),
           .limit = fmt::format("1 to {} elements", limit)});
  }
  auto indirection = std::make_shared<Indirection>();
  indirection->kind = Indirection::Kind::kColumns;
  indirection->index = index;
  indirection->row_count = tensor.free_size();
  Shape result;
  result.push(tensor.dim(0));
  result.push({columns, width(tensor)});
  return tensor.with(tensor.dtype(), tensor.offset_bytes(), result.span())
      .with_indirection(std::move(indirection));
}

// ---- numbers of a view
// ---------------------------------------------------------------------------------

std::vector<std::int64_t> strides(const Tensor& tensor) {
  std::vector<std::int64_t> result;
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    result.push_back(stride_elements(tensor, axis));
  }
  return result;
}

std::int64_t offset(const Tensor& tensor) { return offset_elements(tensor, tensor.dtype()); }

std::vector<Step> pattern(const Tensor& tensor) {
  std::vector<Step> result;
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    result.push_back({stride_elements(tensor, axis), tensor.size(axis)});
  }
  return result;
}

bool is_contiguous(const Tensor& tensor) {
  std::int64_t dense = width(tensor);
  for (int axis = tensor.rank() - 1; axis >= (tensor.on_chip() ? 1 : 0); --axis) {
    const Dim& dim = tensor.dim(axis);
    if (dim.size != 1 && dim.stride_bytes != dense) {
      return false;
    }
    dense *= dim.size;
  }
  return true;
}

// ---- run-time indices
// ----------------------------------------------------------------------------------

namespace {

std::int64_t integer_at(const Tensor& tensor, const std::byte* data) {
  const auto load = [data]<typename T>(T value) {
    std::memcpy(&value, data, sizeof value);
    return static_cast<std::int64_t>(value);
  };
  switch (size_bytes(tensor.dtype())) {
    case 1:
      return info(tensor.dtype()).is_signed ? load(std::int8_t{}) : load(std::uint8_t{});
    case 2:
      return info(tensor.dtype()).is_signed ? load(std::int16_t{}) : load(std::uint16_t{});
    case 4:
      return info(tensor.dtype()).is_signed ? load(std::int32_t{}) : load(std::uint32_t{});
    default:
      return load(std::int64_t{});
  }
}

}  // namespace

std::int64_t scalar_value(const Tensor& tensor, std::string_view role) {
  require_integer_tensor(tensor, role, false);
  require_inside(tensor);
  if (!tensor.buffer()->has_data()) {
    throw_not_modelled(
        fmt::format("{}={}: an address that depends on data, in a run for time alone", role,
                    tensor.describe()));
  }
  if (!is_written(tensor)) {
    throw Error(ErrorKind::kUnwritten, "unwritten-read",
                {.rule = "every byte that is read must have been written before",
                 .here = fmt::format("{}={} was never written", role, tensor.describe())});
  }
  tensor.buffer()->storage->settle();
  return integer_at(tensor, tensor.data());
}

std::int64_t gathered_index(const Tensor& view, std::int64_t row) {
  const Tensor& index = *view.indirection()->index;
  std::int64_t offset = row % index.size(0) * index.dim(0).stride_bytes;
  std::int64_t column = row / index.size(0);
  for (int axis = index.rank() - 1; axis > 0; --axis) {
    offset += column % index.size(axis) * index.dim(axis).stride_bytes;
    column /= index.size(axis);
  }
  return integer_at(index, index.data() + offset);
}

bool in_bounds(const Tensor& view, std::int64_t index) {
  return index >= 0 && index < view.indirection()->row_count;
}

Tensor gathered_row(const Tensor& view, std::int64_t row) {
  const std::int64_t index = gathered_index(view, row);
  Shape dims;
  dims.push({1, view.dim(0).stride_bytes});
  for (int axis = 1; axis < view.rank(); ++axis) {
    dims.push(view.dim(axis));
  }
  const std::int64_t offset_bytes =
      view.offset_bytes() + index * view.indirection()->row_stride_bytes;
  if (!in_bounds(view, index) || !inside(view, offset_bytes, dims.span(), width(view))) {
    throw Error(ErrorKind::kBounds, "out-of-bounds",
                {.rule = "a run-time index names a row of its tensor",
                 .here = fmt::format("vector_offset[{}] is {} for {}", row, index, view.describe()),
                 .limit = fmt::format("0 to {}", view.indirection()->row_count - 1),
                 .device = "the DMA reports an error at run time (oob_mode.error) or skips the row "
                           "(oob_mode.skip)"});
  }
  return view.with(view.dtype(), offset_bytes, dims.span()).with_indirection(nullptr);
}

}  // namespace trena::views
