#include "trena/memory/views.h"

#include <fmt/format.h>

#include "trena/memory/view_rules.h"

namespace trena::views {
namespace {

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

std::int64_t wrap(std::int64_t index, std::int64_t size) {
  return index < 0 ? index + size : index;
}

// A slice of no elements. Kernels index with one and then loop over nothing (nki-library's cross
// entropy of one position on two cores); only `.slice` itself is documented to forbid it.
bool holds_nothing(const Tensor& tensor, int axis, std::int64_t start, std::int64_t stop) {
  return start == stop && start >= 0 && stop <= tensor.size(axis);
}

ErrorText empty_text(const Tensor& tensor, int axis, std::int64_t start, std::int64_t stop) {
  return {.rule = "an operand holds at least one element",
          .here = fmt::format("slice {}:{} of dimension {} of {}", start, stop, axis,
                              tensor.describe()),
          .fix = "leave the instruction out where there is nothing to do"};
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

// Where a window of `index.stop` elements ends.
std::int64_t window_end(const Tensor& tensor, int axis, const Index& index, std::int64_t start) {
  if (index.step < 1) {
    throw_step(tensor, axis, index.step);
  }
  return index.stop == 0 ? start : start + (index.stop - 1) * index.step + 1;
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
  std::optional<ErrorText> empty;
  const auto cut = [&](std::int64_t start, std::int64_t stop, std::int64_t step) {
    if (holds_nothing(tensor, axis, start, stop)) {
      empty = empty_text(tensor, axis, start, stop);
      result.push({0, 0});
    } else {
      offset += push_slice(tensor, axis, start, stop, step, result);
    }
    ++axis;
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
        cut(start, stop, index.step);
        break;
      }
      case Index::Kind::kWindow: {
        const std::int64_t start =
            index.value != nullptr ? run_time_index(*index.value) : index.start;
        cut(start, window_end(tensor, axis, index, start), index.step);
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
  if (empty) {
    return escaped(tensor, tensor.dtype(), result, *std::move(empty));
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
  const Tensor selected =
      drop_axis(tensor, axis, index_or_escape(tensor, axis, value, *indirection));
  return selected.with_indirection(std::move(indirection));
}

}  // namespace trena::views
