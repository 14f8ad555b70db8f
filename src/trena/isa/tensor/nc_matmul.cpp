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

class NcMatmulInstruction final : public InstructionOf<NcMatmul> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "nc_matmul"; }
  EngineKind engine(const Machine&) const override { return EngineKind::kTensor; }

  void check(const Machine& machine) const override {
    require_space(name(), "dst", args_.dst, {Space::kPsum});
    require_space(name(), "stationary", args_.stationary, {Space::kSbuf});
    require_space(name(), "moving", args_.moving, {Space::kSbuf});
    require_same_partitions(name(), "stationary", args_.stationary, "moving", args_.moving);
    require_partition_start(machine, name(), "stationary", args_.stationary);
    require_partition_start(machine, name(), "moving", args_.moving);
    check_double_row(machine);
    check_dtypes(machine);
    require_product_shape(machine, name(), args_.dst, stationary_columns(), moving_columns());
    require_array_tile(machine, args_.stationary, stationary_columns(), args_.options.tile_position,
                       args_.options.tile_size, false);
  }

  void access(AccessList& list) const override {
    list.read(args_.stationary);
    list.read(args_.moving);
    const bool overwrites = args_.options.accumulate == false ||
                            (args_.options.transpose && args_.dst.dtype() != DType::kFloat32);
    list.add(args_.dst, overwrites ? AccessKind::kWrite : AccessKind::kAccumulate);
  }

  void execute(CoreState& core) const override {
    const bool exact_transpose = args_.options.transpose &&
                                 core.machine().legality.matmul_transpose_exact &&
                                 args_.dst.dtype() == args_.stationary.dtype() &&
                                 args_.dst.free_size() == args_.stationary.partitions();
    if (exact_transpose) {
      move_bits();
      return;
    }
    const bool direct = args_.dst.dtype() == DType::kFloat32 && args_.dst.free_contiguous();
    WrittenBits& by_matmul = *args_.dst.buffer()->matmul_written;
    bool any = args_.options.accumulate.value_or(false);
    bool all = any;
    if (!args_.options.accumulate) {
      all = true;
      for_each_run(args_.dst, [&](std::size_t offset, std::size_t length) {
        any = any || by_matmul.any(offset, length);
        all = all && by_matmul.covers(offset, length);
      });
    }
    if (!direct || any != all) {
      std::vector<float> product(static_cast<std::size_t>(args_.dst.element_count()));
      multiply(false, product.data(), args_.dst.free_size());
      store_product(args_.dst, args_.options.accumulate, product.data());
      return;
    }
    multiply(all, reinterpret_cast<float*>(args_.dst.data()),
             args_.dst.dim(0).stride_bytes / static_cast<std::int64_t>(sizeof(float)));
    for_each_run(args_.dst,
                 [&](std::size_t offset, std::size_t length) { by_matmul.mark(offset, length); });
  }

  Cost cost(const Machine& machine) const override {
    const DType widest = size_bytes(args_.stationary.dtype()) >= size_bytes(args_.moving.dtype())
                             ? args_.stationary.dtype()
                             : args_.moving.dtype();
    return product_cost(
        machine,
        {.contraction = args_.stationary.partitions() * rows_per_partition(),
         .stationary_columns = stationary_columns(),
         .moving_columns = moving_columns(),
         .dtype = widest,
         .transpose = args_.options.transpose,
         .onezero = args_.options.stationary_onezero || args_.options.moving_onezero,
         .double_row = double_row(),
         .blocks = array_blocks(machine, args_.options.tile_position, args_.options.tile_size)});
  }

  bool adds_always() const override { return args_.options.accumulate.value_or(false); }

 private:
  bool double_row() const { return args_.options.perf_mode == MatmulPerfMode::kDoubleRow; }
  std::int64_t rows_per_partition() const { return double_row() ? 2 : 1; }
  std::int64_t stationary_columns() const {
    return args_.stationary.free_size() / rows_per_partition();
  }
  std::int64_t moving_columns() const { return args_.moving.free_size() / rows_per_partition(); }

  void check_dtypes(const Machine& machine) const {
    require_matmul_dtype(machine, "stationary", args_.stationary);
    require_matmul_dtype(machine, "moving", args_.moving);
    const DType a = args_.stationary.dtype();
    const DType b = args_.moving.dtype();
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
        args_.dst.dtype() == DType::kBfloat16 && machine.legality.matmul_result_16bit;
    const bool moved_bits = args_.options.transpose && args_.dst.dtype() == a;
    if (args_.dst.dtype() != DType::kFloat32 && !result_16bit && !moved_bits) {
      refuse("matmul-result-dtype",
             {.rule = "nc_matmul accumulates float32 in PSUM",
              .here = fmt::format("dst is {}", args_.dst.describe()),
              .limit = machine.legality.matmul_result_16bit ? "float32 or bfloat16" : "float32",
              .fix = "make dst float32 and cast when copying it out of PSUM"});
    }
  }

  void check_double_row(const Machine& machine) const {
    if (!double_row()) {
      return;
    }
    const bool shapes = args_.stationary.rank() >= 3 && args_.moving.rank() >= 3 &&
                        args_.stationary.size(1) == 2 && args_.moving.size(1) == 2;
    if (!machine.legality.matmul_double_row || !shapes || !is_fp8(args_.stationary.dtype()) ||
        !is_fp8(args_.moving.dtype())) {
      refuse("matmul-double-row",
             {.rule = "double_row contracts [K, 2, columns] fp8 tiles, from NeuronCore-v3 on",
              .here = fmt::format("stationary {}, moving {} on {}", args_.stationary.describe(),
                                  args_.moving.describe(), machine.chip.name),
              .limit = "second dimension 2, float8_e4m3 or float8_e5m2"});
    }
    if (args_.options.tile_size && (*args_.options.tile_size)[1] < machine.core.tensor.columns) {
      refuse("matmul-double-row",
             {.rule = "double_row cannot be combined with column tiling",
              .here = fmt::format("tile_size columns {}", (*args_.options.tile_size)[1])});
    }
  }

  // Transpose mode: moving is the identity; dst[m, n] = stationary[n, m], bits unchanged (hw.md
  // §3.2).
  void move_bits() const {
    const std::byte* turned =
        TileRows(args_.stationary).read_transposed(args_.stationary.partitions());
    TileRows(args_.dst).write_packed({0, args_.dst.partitions()}, turned);
  }

  void multiply(bool accumulate, float* out, std::int64_t out_row_floats) const {
    std::vector<std::byte> stationary_bytes;
    std::vector<std::byte> moving_bytes;
    const std::int64_t planes = rows_per_partition();
    for (std::int64_t plane = 0; plane < planes; ++plane) {
      const TileOperand stationary =
          one_stride(args_.stationary, planes)
              ? operand(args_.stationary, plane, planes)
              : packed(args_.stationary, plane, planes, stationary_bytes);
      const TileOperand moving = one_stride(args_.moving, planes)
                                     ? operand(args_.moving, plane, planes)
                                     : packed(args_.moving, plane, planes, moving_bytes);
      tile_product(stationary, moving, static_cast<std::size_t>(args_.stationary.partitions()),
                   static_cast<std::size_t>(stationary_columns()),
                   static_cast<std::size_t>(moving_columns()), out, out_row_floats,
                   accumulate || plane > 0);
    }
  }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(NcMatmul args) {
  return std::make_unique<NcMatmulInstruction>(std::move(args));
}

}  // namespace trena
