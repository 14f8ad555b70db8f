// Of views.h: dimensions that change their order, number or name.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "trena/memory/view_rules.h"
#include "trena/memory/views.h"

namespace trena::views {

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

// ---- rearrange ----------------------------------------------------------------------------------

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

}  // namespace trena::views
