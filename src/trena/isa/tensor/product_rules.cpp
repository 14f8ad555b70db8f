#include "trena/isa/tensor/product_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "trena/memory/rows.h"

namespace trena {
namespace {

void require_at_most(std::string_view instruction, std::string_view what, std::int64_t value,
                     std::int64_t limit, std::string_view fix) {
  if (value <= limit) {
    return;
  }
  refuse("matmul-size", {.rule = fmt::format("{} has a largest {}", instruction, what),
                         .here = fmt::format("{}", value),
                         .limit = fmt::format("{}", limit),
                         .fix = std::string(fix)});
}

void require_bank(const Machine& machine, std::string_view instruction, const Tensor& dst) {
  const Psum& psum = machine.core.psum;
  const std::int64_t first = dst.free_offset_bytes() % psum.bank_bytes;
  const std::int64_t allowed = psum.bank_bytes * std::max<std::int64_t>(psum.banks_per_result, 1);
  if (first + dst.free_bytes() > allowed) {
    refuse("psum-bank-overflow",
           {.rule = fmt::format("the result of one {} stays inside its PSUM bank", instruction),
            .here = fmt::format("{}: bytes {} to {} of the bank", dst.describe(), first,
                                first + dst.free_bytes()),
            .limit = fmt::format("{} bytes per partition", allowed),
            .fix = "use at most 512 float32 columns per bank, starting at the bank's start"});
  }
}

// One flag per element of dst: does it add?
std::vector<char> adding(const Tensor& dst, std::optional<bool> accumulate) {
  std::vector<char> adds;
  if (accumulate) {
    adds.assign(static_cast<std::size_t>(dst.element_count()), *accumulate ? 1 : 0);
    return adds;
  }
  const WrittenBits& by_matmul = *dst.buffer()->matmul_written;
  const std::size_t width = size_bytes(dst.dtype());
  for_each_run(dst, [&](std::size_t offset, std::size_t length) {
    for (std::size_t byte = 0; byte < length; byte += width) {
      adds.push_back(by_matmul.test(offset + byte) ? 1 : 0);
    }
  });
  return adds;
}

}  // namespace

void require_product_shape(const Machine& machine, std::string_view instruction, const Tensor& dst,
                           std::int64_t stationary_columns, std::int64_t moving_columns) {
  const TensorEngine& engine = machine.core.tensor;
  require_at_most(instruction, "number of stationary columns", stationary_columns,
                  engine.max_stationary_columns,
                  "split the stationary tile (nl.tile_size.gemm_stationary_fmax)");
  const bool result_16bit = size_bytes(dst.dtype()) == 2;
  require_at_most(instruction, "number of moving columns", moving_columns,
                  result_16bit
                      ? std::max(engine.max_moving_columns, engine.max_moving_columns_16bit)
                      : engine.max_moving_columns,
                  "split the moving tile (nl.tile_size.gemm_moving_fmax)");
  if (dst.partitions() != stationary_columns || dst.free_size() != moving_columns) {
    refuse("matmul-shape", {.rule = "dst is [stationary columns, moving columns]",
                            .here = fmt::format("dst is {}", dst.describe()),
                            .limit = fmt::format("[{}, {}]", stationary_columns, moving_columns)});
  }
  require_bank(machine, instruction, dst);
}

void require_array_tile(const Machine& machine, const Tensor& stationary,
                        std::int64_t stationary_columns, const std::optional<RowColumn>& position,
                        const std::optional<RowColumn>& size, bool rows_only) {
  if (!size && !position) {
    return;
  }
  const TensorEngine& engine = machine.core.tensor;
  const auto allowed = [](const std::vector<std::int64_t>& sizes, std::int64_t value) {
    return std::find(sizes.begin(), sizes.end(), value) != sizes.end();
  };
  const RowColumn extent = size.value_or(RowColumn{engine.rows, engine.columns});
  const RowColumn start = position.value_or(RowColumn{0, 0});
  const bool sizes_exist =
      (extent[0] == engine.rows || allowed(engine.row_tile_sizes, extent[0])) &&
      (extent[1] == engine.columns || (!rows_only && allowed(engine.column_tile_sizes, extent[1])));
  const bool aligned = sizes_exist && start[0] >= 0 && start[1] >= 0 && start[0] % extent[0] == 0 &&
                       start[1] % extent[1] == 0 && start[0] < engine.rows &&
                       start[1] < engine.columns;
  if (size && position && aligned && stationary.partitions() <= extent[0] &&
      stationary_columns <= extent[1]) {
    return;
  }
  std::string columns = fmt::format("{}", engine.columns);
  if (!rows_only) {
    columns = fmt::format("{}, {}", fmt::join(engine.column_tile_sizes, ", "), engine.columns);
  }
  refuse("matmul-tiling",
         {.rule = "tile_position and tile_size come together; the position is a multiple of the "
                  "size; the tile holds the stationary operand",
          .here = fmt::format("position ({}), size ({}), stationary {}", fmt::join(start, ", "),
                              fmt::join(extent, ", "), stationary.describe()),
          .limit = fmt::format("row sizes {}, {}; column sizes {}",
                               fmt::join(engine.row_tile_sizes, ", "), engine.rows, columns)});
}

void store_product(const Tensor& dst, std::optional<bool> accumulate, float* product) {
  const std::int64_t columns = dst.free_size();
  const std::vector<char> adds = adding(dst, accumulate);
  std::vector<float> old(static_cast<std::size_t>(columns));
  for (std::int64_t p = 0; p < dst.partitions(); ++p) {
    read_row(dst, p, old.data());
    float* row = product + p * columns;
    for (std::int64_t i = 0; i < columns; ++i) {
      if (adds[static_cast<std::size_t>(p * columns + i)] != 0) {
        row[i] += old[static_cast<std::size_t>(i)];
      }
    }
    write_row(dst, p, row);
  }
  WrittenBits& by_matmul = *dst.buffer()->matmul_written;
  for_each_run(dst,
               [&](std::size_t offset, std::size_t length) { by_matmul.mark(offset, length); });
}

}  // namespace trena
