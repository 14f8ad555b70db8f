#include "trena/memory/view_rules.h"

#include <algorithm>

namespace trena::views {

void usage(std::string_view id, ErrorText text) {
  throw Error(ErrorKind::kUsage, id, std::move(text));
}

void illegal(std::string_view id, ErrorText text) {
  throw Error(ErrorKind::kIllegal, id, std::move(text));
}

void throw_view_dtype(const Tensor& tensor, DType dtype, std::string_view reason) {
  illegal("view-dtype",
          {.rule = "another dtype is another way to read the same contiguous bytes",
           .here = fmt::format("view of {} as {}: {}", tensor.describe(), name(dtype), reason)});
}

void throw_partition_stride(const Tensor& tensor, std::string here, std::string limit) {
  illegal("partition-stride", {.rule = "an access reads consecutive partitions: there is no stride "
                                       "along the partition dimension "
                                       "(hw.md §1.5)",
                               .here = fmt::format("{} of {}", here, tensor.describe()),
                               .limit = std::move(limit)});
}

ErrorText index_text(const Tensor& tensor, int axis, std::int64_t index, std::int64_t first) {
  return {.rule = "an index stays inside its dimension",
          .here = fmt::format("index {} of dimension {} of {}", index, axis, tensor.describe()),
          .limit = fmt::format("{} to {}", first, tensor.size(axis) - 1)};
}

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

void require_inside(const Tensor& tensor) {
  if (tensor.indirection() && tensor.indirection()->escape) {
    throw Error(ErrorKind::kBounds, "out-of-bounds", *tensor.indirection()->escape);
  }
}

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

namespace {

// Lowest and highest byte, relative to the first element, that these dimensions reach.
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

}  // namespace

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

std::int64_t index_or_escape(const Tensor& tensor, int axis, std::int64_t index,
                             Indirection& indirection) {
  if (index >= 0 && index < tensor.size(axis)) {
    return index;
  }
  indirection.escape = index_text(tensor, axis, index, 0);
  return 0;
}

}  // namespace trena::views
