#include "trena/isa/tensor/nc_matmul.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "trena/isa/core_state.h"
#include "trena/isa/row_kernel.h"
#include "trena/isa/tensor/product_rules.h"
#include "trena/isa/tensor/product_work.h"
#include "trena/memory/rows.h"
#include "trena/number/tile_product.h"
#include "trena/number/transpose.h"

namespace trena {
namespace {

bool is_fp32_class(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kTfloat32; }
bool is_fp8(DType dtype) {
  return dtype == DType::kFloat8E4m3 || dtype == DType::kFloat8E5m2 ||
         dtype == DType::kFloat8E4m3fn;
}

void require_matmul_dtype(const Machine& machine, std::string_view role, const Tensor& tensor) {
  if (machine.legality.matmul_dtypes.contains(tensor.dtype())) {
    return;
  }
  refuse("dtype-refused",
         {.rule = "the tensor engine multiplies some types only",
          .here = fmt::format("nc_matmul `{}` is {}", role, tensor.describe()),
          .limit = fmt::format("{} on {}", fmt::join(names(machine.legality.matmul_dtypes), ", "),
                               machine.chip.name),
          .fix = "cast the tile first (tensor_copy)"});
}

// The rows of `tensor` (its partitions, or partition × first free dimension in double row) as a
// product operand.
TileOperand operand(const Tensor& tensor, std::int64_t plane, std::int64_t planes) {
  const Tensor::FreePattern pattern = tensor.free_pattern();
  const std::int64_t column_stride = pattern.dims[pattern.rank - 1].stride_bytes;
  const std::int64_t plane_stride = planes > 1 ? tensor.dim(1).stride_bytes : 0;
  return {tensor.dtype(), tensor.data() + plane * plane_stride, tensor.dim(0).stride_bytes,
          column_stride};
}

// Free dimensions of one plane that do not merge into one stride need a packed copy.
bool one_stride(const Tensor& tensor, std::int64_t planes) {
  const Tensor::FreePattern pattern = tensor.free_pattern();
  return pattern.rank == 1 || (planes > 1 && pattern.rank == 2);
}

// A packed copy of the operand, partition-major, `storage` holding its bytes.
TileOperand packed(const Tensor& tensor, std::int64_t plane, std::int64_t planes,
                   std::vector<std::byte>& storage) {
  const auto row_bytes = static_cast<std::size_t>(tensor.free_bytes());
  storage.resize(row_bytes * static_cast<std::size_t>(tensor.partitions()));
  for (std::int64_t p = 0; p < tensor.partitions(); ++p) {
    read_row_bits(tensor, p, storage.data() + static_cast<std::size_t>(p) * row_bytes);
  }
  const std::size_t plane_bytes = row_bytes / static_cast<std::size_t>(planes);
  return {tensor.dtype(), storage.data() + static_cast<std::size_t>(plane) * plane_bytes,
          static_cast<std::ptrdiff_t>(row_bytes),
          static_cast<std::ptrdiff_t>(size_bytes(tensor.dtype()))};
}

}  // namespace

void NcMatmul::check(const Machine& machine) const {
  require_space(name(), "dst", dst_, {Space::kPsum});
  require_space(name(), "stationary", stationary_, {Space::kSbuf});
  require_space(name(), "moving", moving_, {Space::kSbuf});
  require_same_partitions(name(), "stationary", stationary_, "moving", moving_);
  require_partition_start(machine, name(), "stationary", stationary_);
  require_partition_start(machine, name(), "moving", moving_);
  check_double_row(machine);
  check_dtypes(machine);
  require_product_shape(machine, name(), dst_, stationary_columns(), moving_columns());
  require_array_tile(machine, stationary_, stationary_columns(), options_.tile_position,
                     options_.tile_size, false);
}

void NcMatmul::check_double_row(const Machine& machine) const {
  if (!double_row()) {
    return;
  }
  const bool shapes = stationary_.rank() >= 3 && moving_.rank() >= 3 && stationary_.size(1) == 2 &&
                      moving_.size(1) == 2;
  if (!machine.legality.matmul_double_row || !shapes || !is_fp8(stationary_.dtype()) ||
      !is_fp8(moving_.dtype())) {
    refuse("matmul-double-row",
           {.rule = "double_row contracts [K, 2, columns] fp8 tiles, from NeuronCore-v3 on",
            .here = fmt::format("stationary {}, moving {} on {}", stationary_.describe(),
                                moving_.describe(), machine.chip.name),
            .limit = "second dimension 2, float8_e4m3 or float8_e5m2"});
  }
  if (options_.tile_size && (*options_.tile_size)[1] < machine.core.tensor.columns) {
    refuse("matmul-double-row",
           {.rule = "double_row cannot be combined with column tiling",
            .here = fmt::format("tile_size columns {}", (*options_.tile_size)[1])});
  }
}

void NcMatmul::check_dtypes(const Machine& machine) const {
  require_matmul_dtype(machine, "stationary", stationary_);
  require_matmul_dtype(machine, "moving", moving_);
  const DType a = stationary_.dtype();
  const DType b = moving_.dtype();
  const bool legacy_and_ocp = (a == DType::kFloat8E4m3 && b == DType::kFloat8E4m3fn) ||
                              (a == DType::kFloat8E4m3fn && b == DType::kFloat8E4m3);
  if (is_fp32_class(a) != is_fp32_class(b) || legacy_and_ocp) {
    refuse("matmul-dtype-pair",
           {.rule = "float32 and tfloat32 multiply only with each other, and float8_e4m3 never "
                    "with float8_e4m3fn",
            .here = fmt::format("stationary {}, moving {}", trena::name(a), trena::name(b)),
            .fix = "cast one of the tiles"});
  }
  const bool result_16bit =
      dst_.dtype() == DType::kBfloat16 && machine.legality.matmul_result_16bit;
  const bool moved_bits = options_.transpose && dst_.dtype() == a;
  if (dst_.dtype() != DType::kFloat32 && !result_16bit && !moved_bits) {
    refuse("matmul-result-dtype",
           {.rule = "nc_matmul accumulates float32 in PSUM",
            .here = fmt::format("dst is {}", dst_.describe()),
            .limit = machine.legality.matmul_result_16bit ? "float32 or bfloat16" : "float32",
            .fix = "make dst float32 and cast when copying it out of PSUM"});
  }
}

void NcMatmul::access(AccessList& list) const {
  list.read(stationary_);
  list.read(moving_);
  const bool overwrites =
      options_.accumulate == false || (options_.transpose && dst_.dtype() != DType::kFloat32);
  list.add(dst_, overwrites ? AccessKind::kWrite : AccessKind::kAccumulate);
}

void NcMatmul::multiply(bool accumulate, float* out, std::int64_t out_row_floats) const {
  std::vector<std::byte> stationary_bytes;
  std::vector<std::byte> moving_bytes;
  const std::int64_t planes = rows_per_partition();
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    const TileOperand stationary = one_stride(stationary_, planes)
                                       ? operand(stationary_, plane, planes)
                                       : packed(stationary_, plane, planes, stationary_bytes);
    const TileOperand moving = one_stride(moving_, planes)
                                   ? operand(moving_, plane, planes)
                                   : packed(moving_, plane, planes, moving_bytes);
    tile_product(stationary, moving, static_cast<std::size_t>(stationary_.partitions()),
                 static_cast<std::size_t>(stationary_columns()),
                 static_cast<std::size_t>(moving_columns()), out, out_row_floats,
                 accumulate || plane > 0);
  }
}

// Transpose mode: moving is the identity; dst[m, n] = stationary[n, m], bits unchanged (hw.md
// §3.2).
void NcMatmul::move_bits() const {
  const std::size_t width = size_bytes(stationary_.dtype());
  const auto rows = static_cast<std::size_t>(stationary_.partitions());
  const auto columns = static_cast<std::size_t>(stationary_columns());
  const TileRows in(stationary_), out(dst_);
  auto* turned = scratch<std::byte>(1, rows * columns * width);
  transpose_bits(width, in.read_packed({0, stationary_.partitions()}, 0), columns * width, rows,
                 columns, turned);
  out.write_packed({0, dst_.partitions()}, turned);
}

void NcMatmul::execute(CoreState& core) const {
  const bool exact_transpose =
      options_.transpose && core.machine().legality.matmul_transpose_exact &&
      dst_.dtype() == stationary_.dtype() && dst_.free_size() == stationary_.partitions();
  if (exact_transpose) {
    move_bits();
    return;
  }
  const bool direct = dst_.dtype() == DType::kFloat32 && dst_.free_contiguous();
  WrittenBits& by_matmul = *dst_.buffer()->matmul_written;
  bool any = options_.accumulate.value_or(false);
  bool all = any;
  if (!options_.accumulate) {
    all = true;
    for_each_run(dst_, [&](std::size_t offset, std::size_t length) {
      any = any || by_matmul.any(offset, length);
      all = all && by_matmul.covers(offset, length);
    });
  }
  if (!direct || any != all) {
    std::vector<float> product(static_cast<std::size_t>(dst_.element_count()));
    multiply(false, product.data(), dst_.free_size());
    store_product(dst_, options_.accumulate, product.data());
    return;
  }
  multiply(all, reinterpret_cast<float*>(dst_.data()),
           dst_.dim(0).stride_bytes / static_cast<std::int64_t>(sizeof(float)));
  for_each_run(dst_,
               [&](std::size_t offset, std::size_t length) { by_matmul.mark(offset, length); });
}

Cost NcMatmul::cost(const Machine& machine) const {
  const DType widest = size_bytes(stationary_.dtype()) >= size_bytes(moving_.dtype())
                           ? stationary_.dtype()
                           : moving_.dtype();
  return product_cost(
      machine, {.contraction = stationary_.partitions() * rows_per_partition(),
                .stationary_columns = stationary_columns(),
                .moving_columns = moving_columns(),
                .dtype = widest,
                .transpose = options_.transpose,
                .onezero = options_.stationary_onezero || options_.moving_onezero,
                .double_row = double_row(),
                .blocks = array_blocks(machine, options_.tile_position, options_.tile_size)});
}

}  // namespace trena
