// What the functions of views.h share: a view under construction, and the rules of a view.
#pragma once

#include <fmt/format.h>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "trena/error.h"
#include "trena/memory/tensor.h"

namespace trena::views {

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

inline std::int64_t width(const Tensor& tensor) {
  return static_cast<std::int64_t>(size_bytes(tensor.dtype()));
}

inline bool gathers(const Tensor& tensor) {
  return tensor.indirection() && tensor.indirection()->kind == Indirection::Kind::kVector;
}

[[noreturn]] void usage(std::string_view id, ErrorText text);
[[noreturn]] void illegal(std::string_view id, ErrorText text);

// `view-dtype`.
[[noreturn]] void throw_view_dtype(const Tensor& tensor, DType dtype, std::string_view reason);
// `partition-stride`.
[[noreturn]] void throw_partition_stride(const Tensor& tensor, std::string here, std::string limit);
ErrorText index_text(const Tensor& tensor, int axis, std::int64_t index, std::int64_t first);

// Dimension 0 cannot take part in `operation`: partitions on the chip (`partition-dim`), gathered
// rows of an indirect view (`indirect-view`).
void require_not_first(const Tensor& tensor, int dim, std::string_view operation);
// `out-of-bounds` for a view that is known to leave its tensor.
void require_inside(const Tensor& tensor);
// A view of the wanted shape that whoever uses it is refused with `text`. Its strides are none, so
// that its extent stays inside the buffer.
Tensor escaped(const Tensor& tensor, DType dtype, Shape dims, ErrorText text);
// `indirect-view`: views of a tensor-indirect operand do not exist, its columns are known only when
// the instruction runs.
void require_viewable(const Tensor& tensor, std::string_view operation);
// `least-rank`: the chip keeps [partition, free]; HBM keeps one dimension. (Tensors made with fewer
// stay as they are.)
void require_rank(const Tensor& tensor, int rank, std::string_view operation);
int least_rank(const Tensor& tensor);

// A dimension counted from 0; from the end if negative. `axis-out-of-range`.
int resolve_axis(const Tensor& tensor, int dim, int limit);
inline int resolve_axis(const Tensor& tensor, int dim) {
  return resolve_axis(tensor, dim, tensor.rank());
}

// Does [offset, …] with these dimensions stay inside the buffer, and on the chip inside its
// partitions?
bool inside(const Tensor& tensor, std::int64_t offset_bytes, std::span<const Dim> dims,
            std::int64_t element_bytes);

// A view gets its one run-time index. `indirect-view` for a second one.
std::shared_ptr<Indirection> scalar_indirection(const Tensor& tensor, const Tensor* index);
// An index known only at run time: one outside is the business of the instruction (oob_mode).
std::int64_t index_or_escape(const Tensor& tensor, int axis, std::int64_t index,
                             Indirection& indirection);

}  // namespace trena::views
