#include "trena/isa/mx.h"

#include <fmt/format.h>

#include "trena/memory/views.h"

namespace trena::mx {

void require_scale(std::string_view instruction, std::string_view role, const Tensor& scale,
                   std::int64_t partitions, std::int64_t columns) {
  require_dtype(instruction, role, scale, {DType::kFloat8E8m0fnu, DType::kUint8});
  const bool whole = partitions > 0 && partitions % kQuadrant == 0;
  if (!whole) {
    refuse("mx-layout", {.rule = "MX groups come by quadrants of 32 partitions",
                         .here = fmt::format("{} of {} partitions", instruction, partitions),
                         .limit = "32, 64, 96 or 128 partitions"});
  }
  const std::int64_t rows = partitions - kQuadrant + kScaleRows;
  const int start = scale.start_partition() % static_cast<int>(kQuadrant);
  const bool placed = start % kScaleRows == 0 && start <= 12;
  if (scale.partitions() < rows || scale.free_size() != columns || !placed) {
    refuse("mx-layout",
           {.rule = "scales lie in the quadrants of their groups, four rows from partition 0, 4, 8 "
                    "or 12 of each quadrant, one for each packed column",
            .here = fmt::format("{} `{}` is {} from partition {}", instruction, role,
                                scale.describe(), scale.start_partition()),
            .limit = fmt::format("at least {} partitions and exactly {} columns", rows, columns)});
  }
}

std::vector<Tensor> scale_rows(const Tensor& scale, std::int64_t partitions) {
  std::vector<Tensor> rows;
  for (std::int64_t first = 0; first + kScaleRows <= scale.partitions() && first < partitions;
       first += kQuadrant) {
    rows.push_back(views::slice(scale, 0, first, first + kScaleRows));
  }
  return rows;
}

}  // namespace trena::mx
