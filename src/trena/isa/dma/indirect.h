// Rows chosen at run time: gather (indirect src) and scatter (indirect dst) through an index vector
// (nki.md §5.1-5; hw.md §1.7). Row i of the view is row index[i] of the base tensor.
#pragma once

#include <optional>

#include "trena/isa/dma/transfer.h"
#include "trena/isa/dma/trigger.h"

namespace trena {

bool is_vector_indirect(const Tensor& tensor);

// The base rows an indirect view may touch, as an ordinary view: what orders it against other
// instructions. An ordinary view: itself.
Tensor reachable(const Tensor& tensor);

// Orders a transfer behind whoever made the index of `tensor`.
void read_index(const Tensor& tensor, AccessList& list);

// The index that row `row` of the view takes. An index tensor of several columns counts down its
// columns: indices.T.flatten().
std::int64_t row_index(const Tensor& view, std::int64_t row);

// The rows that the index names now, neighbours joined, each run of rows an ordinary view; what is
// outside the base tensor is left out.
std::vector<Tensor> chosen_rows(const Tensor& view);

// The view's row `row` as an ordinary view of one row, by its index; nothing when the index is
// outside the base tensor and `oob` says skip. Throws `out-of-bounds`.
std::optional<Tensor> resolve_row(std::string_view instruction, const Tensor& view,
                                  std::int64_t row, OobMode oob);

// All rows inside the bounds, judged before anything moves, each with its place in the view. Throws
// `unwritten-read` for rows nobody wrote.
struct ResolvedRow {
  std::int64_t place;
  Tensor row;
};
std::vector<ResolvedRow> resolve_rows(std::string_view instruction, const Tensor& view,
                                      OobMode oob);

// An ordinary view cut into `rows` equal parts in element order. Throws `dma-indirect-shape` when
// its dimensions do not divide that way.
class RowSplit {
 public:
  RowSplit(std::string_view instruction, const Tensor& tensor, std::int64_t rows);
  Tensor row(std::int64_t index) const;

 private:
  const Tensor& tensor_;
  std::vector<Dim> outer_;  // outermost first: their sizes multiply to `rows`
  std::vector<Dim> inner_;
};

// Reading rows nobody wrote is refused as everywhere (`unwritten-read`).
void require_row_written(std::string_view instruction, const Tensor& view, const Tensor& row,
                         std::int64_t index);

}  // namespace trena
