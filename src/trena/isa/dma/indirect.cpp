#include "trena/isa/dma/indirect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "trena/memory/rows.h"
#include "trena/number/convert.h"

namespace trena {
namespace {

// Index types are integers of at most 32 bits; those of 16 and less are exact as float32.
std::int64_t integer_at(DType dtype, const std::byte* data) {
  if (dtype == DType::kInt32) {
    std::int32_t value;
    std::memcpy(&value, data, sizeof value);
    return value;
  }
  if (dtype == DType::kUint32) {
    std::uint32_t value;
    std::memcpy(&value, data, sizeof value);
    return value;
  }
  return static_cast<std::int64_t>(to_float(dtype, data));
}

Tensor with_rows(const Tensor& view, std::int64_t offset_bytes, Dim rows) {
  std::array<Dim, Tensor::kMaxRank> dims;
  dims[0] = rows;
  for (int axis = 1; axis < view.rank(); ++axis) {
    dims[static_cast<std::size_t>(axis)] = view.dim(axis);
  }
  return view
      .with(view.dtype(), offset_bytes,
            std::span(dims).first(static_cast<std::size_t>(view.rank())))
      .with_indirection(nullptr);
}

}  // namespace

bool is_vector_indirect(const Tensor& tensor) {
  return tensor.indirection() != nullptr &&
         tensor.indirection()->kind == Indirection::Kind::kVector;
}

Tensor reachable(const Tensor& tensor) {
  if (!is_vector_indirect(tensor)) {
    return tensor;
  }
  const Indirection& indirection = *tensor.indirection();
  return with_rows(tensor, tensor.offset_bytes(),
                   {indirection.row_count, indirection.row_stride_bytes});
}

void read_index(const Tensor& tensor, AccessList& list) {
  if (is_vector_indirect(tensor)) {  // other indices come with their view
    list.read(*tensor.indirection()->index);
  }
}

std::int64_t row_index(const Tensor& view, std::int64_t row) {
  const Tensor& index = *view.indirection()->index;
  const std::int64_t partition = row % index.partitions();
  const std::int64_t column = row / index.partitions();
  std::int64_t offset = partition * index.dim(0).stride_bytes;
  if (index.rank() > 1) {
    offset += column * index.dim(1).stride_bytes;
  }
  return integer_at(index.dtype(), index.data() + offset);
}

std::vector<Tensor> chosen_rows(const Tensor& view) {
  const Indirection& indirection = *view.indirection();
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < view.size(0); ++row) {
    const std::int64_t index = row_index(view, row);
    if (index >= 0 && index < indirection.row_count) {
      rows.push_back(index);
    }
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  std::vector<Tensor> runs;
  for (std::size_t first = 0, past = 0; first < rows.size(); first = past) {
    while (past < rows.size() &&
           rows[past] - rows[first] == static_cast<std::int64_t>(past - first)) {
      ++past;
    }
    const std::int64_t stride = indirection.row_stride_bytes;
    runs.push_back(with_rows(view, view.offset_bytes() + rows[first] * stride,
                             {static_cast<std::int64_t>(past - first), stride}));
  }
  return runs;
}

std::optional<Tensor> resolve_row(std::string_view instruction, const Tensor& view,
                                  std::int64_t row, OobMode oob) {
  const Indirection& indirection = *view.indirection();
  const std::int64_t index = row_index(view, row);
  if (index < 0 || index >= indirection.row_count) {
    if (oob == OobMode::kSkip) {
      return std::nullopt;
    }
    throw Error(ErrorKind::kBounds, "out-of-bounds",
                {.rule = "an index vector names rows of the tensor it gathers from or scatters to",
                 .here = fmt::format("{}: row {} of {} has index {}", instruction, row,
                                     view.describe(), index),
                 .limit = fmt::format("0 to {}", indirection.row_count - 1),
                 .device = "a run-time error with oob_mode.error",
                 .fix = "clamp the index, or pass oob_mode=oob_mode.skip"});
  }
  return with_rows(view, view.offset_bytes() + index * indirection.row_stride_bytes,
                   {1, indirection.row_stride_bytes});
}

RowSplit::RowSplit(std::string_view instruction, const Tensor& tensor, std::int64_t rows)
    : tensor_(tensor) {
  std::int64_t inner_count = tensor.element_count() / rows;
  for (int axis = tensor.rank() - 1; axis >= 0; --axis) {
    const Dim dim = tensor.dim(axis);
    const std::int64_t inside = std::min(inner_count, dim.size);
    if (inside > 0 && (dim.size % inside != 0 || inner_count % inside != 0)) {
      refuse("dma-indirect-shape",
             {.rule = "the other side of a gather or scatter divides into its rows",
              .here = fmt::format("{}: {} rows from {}", instruction, rows, tensor.describe())});
    }
    inner_count = inside > 0 ? inner_count / inside : inner_count;
    if (inside > 1) {
      inner_.insert(inner_.begin(), {inside, dim.stride_bytes});
    }
    if (dim.size > inside) {
      outer_.insert(outer_.begin(), {dim.size / inside, dim.stride_bytes * inside});
    }
  }
}

Tensor RowSplit::row(std::int64_t index) const {
  std::int64_t offset = tensor_.offset_bytes();
  for (std::size_t axis = outer_.size(); axis-- > 0;) {
    offset += index % outer_[axis].size * outer_[axis].stride_bytes;
    index /= outer_[axis].size;
  }
  return tensor_.with(tensor_.dtype(), offset, inner_);
}

void require_row_written(std::string_view instruction, const Tensor& view, const Tensor& row,
                         std::int64_t index) {
  if (is_written(row)) {
    return;
  }
  throw Error(ErrorKind::kUnwritten, "unwritten-read",
              {.rule = "every byte an instruction reads must have been written before",
               .here = fmt::format("{} gathers row {} of {}, which was never (fully) written",
                                   instruction, index, view.describe()),
               .device = "whatever the memory held before: garbage that changes from run to run",
               .fix = "write the row first"});
}

std::vector<ResolvedRow> resolve_rows(std::string_view instruction, const Tensor& view,
                                      OobMode oob) {
  std::vector<ResolvedRow> rows;
  for (std::int64_t place = 0; place < view.size(0); ++place) {
    if (std::optional<Tensor> row = resolve_row(instruction, view, place, oob)) {
      require_row_written(instruction, view, *row, place);
      rows.push_back({place, std::move(*row)});
    }
  }
  return rows;
}

}  // namespace trena
