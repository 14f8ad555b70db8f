// Of views.h: access patterns, run-time indices, and the numbers of a view.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "trena/memory/rows.h"
#include "trena/memory/view_rules.h"
#include "trena/memory/views.h"

namespace trena::views {
namespace {

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

// ---- numbers of a view --------------------------------------------------------------------------

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

// ---- run-time indices ---------------------------------------------------------------------------

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
