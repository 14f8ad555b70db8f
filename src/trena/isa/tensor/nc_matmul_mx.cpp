#include "trena/isa/tensor/nc_matmul_mx.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "trena/isa/tensor/product_work.h"
#include "trena/memory/rows.h"
#include "trena/number/convert.h"
#include "trena/number/threads.h"
#include "trena/number/tile_product.h"

namespace trena {
namespace {

constexpr std::int64_t kGroupValues = mx::kGroupPartitions * mx::kPacked;

// The values of a packed tile as bfloat16, which holds every fp8 and fp4 value exactly: row
// 4p + q is value q of partition p.
std::vector<std::byte> unpack(const Tensor& tensor) {
  const std::int64_t columns = tensor.free_size();
  const std::size_t row_bytes = static_cast<std::size_t>(columns) * size_bytes(DType::kBfloat16);
  std::vector<std::byte> rows(static_cast<std::size_t>(tensor.partitions() * mx::kPacked) *
                              row_bytes);
  std::vector<std::byte> packed(static_cast<std::size_t>(tensor.free_bytes()));
  std::vector<float> values(static_cast<std::size_t>(columns * mx::kPacked));
  std::vector<float> plane(static_cast<std::size_t>(columns));
  for (std::int64_t p = 0; p < tensor.partitions(); ++p) {
    read_row_bits(tensor, p, packed.data());
    unpack_x4_row(tensor.dtype(), packed.data(),
                  static_cast<std::ptrdiff_t>(size_bytes(tensor.dtype())),
                  static_cast<std::size_t>(columns), values.data());
    for (std::int64_t q = 0; q < mx::kPacked; ++q) {
      for (std::int64_t i = 0; i < columns; ++i) {
        plane[static_cast<std::size_t>(i)] = values[static_cast<std::size_t>(i * mx::kPacked + q)];
      }
      write_row(DType::kBfloat16, plane.data(),
                rows.data() + static_cast<std::size_t>(p * mx::kPacked + q) * row_bytes,
                static_cast<std::ptrdiff_t>(size_bytes(DType::kBfloat16)),
                static_cast<std::size_t>(columns));
    }
  }
  return rows;
}

TileOperand group_rows(const std::vector<std::byte>& rows, std::int64_t group,
                       std::int64_t columns) {
  const auto width = static_cast<std::ptrdiff_t>(size_bytes(DType::kBfloat16));
  const std::ptrdiff_t row_bytes = columns * width;
  return {DType::kBfloat16, rows.data() + group * kGroupValues * row_bytes, row_bytes, width};
}

// Scales as doubles, in which a product of two of them with a float32 is exact.
std::vector<double> scales_of(const std::vector<Tensor>& quadrants, std::int64_t group) {
  const Tensor& rows = quadrants[static_cast<std::size_t>(group / mx::kScaleRows)];
  std::vector<std::byte> bits(static_cast<std::size_t>(rows.free_size()));
  read_row_bits(rows, group % mx::kScaleRows, bits.data());
  std::vector<double> scales;
  scales.reserve(bits.size());
  for (const std::byte value : bits) {
    const int exponent = std::to_integer<int>(value);
    scales.push_back(exponent == 255 ? std::numeric_limits<double>::quiet_NaN()
                                     : std::ldexp(1.0, exponent - mx::kScaleBias));
  }
  return scales;
}

void require_mx_dtype(std::string_view instruction, std::string_view role, const Tensor& tensor) {
  require_dtype(instruction, role, tensor,
                {DType::kFloat8E4m3fnX4, DType::kFloat8E5m2X4, DType::kFloat4E2m1fnX4});
}

class NcMatmulMxInstruction final : public InstructionOf<NcMatmulMx> {
 public:
  explicit NcMatmulMxInstruction(NcMatmulMx args)
      : InstructionOf(std::move(args)),
        stationary_rows_(mx::scale_rows(args_.stationary_scale, args_.stationary.partitions())),
        moving_rows_(mx::scale_rows(args_.moving_scale, args_.moving.partitions())) {}

  std::string_view name() const override { return "nc_matmul_mx"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_space(name(), "dst", args_.dst, {Space::kPsum});
    require_space(name(), "stationary", args_.stationary, {Space::kSbuf});
    require_space(name(), "moving", args_.moving, {Space::kSbuf});
    require_space(name(), "stationary_scale", args_.stationary_scale, {Space::kSbuf});
    require_space(name(), "moving_scale", args_.moving_scale, {Space::kSbuf});
    require_mx_dtype(name(), "stationary", args_.stationary);
    require_mx_dtype(name(), "moving", args_.moving);
    require_dtype(name(), "dst", args_.dst, {DType::kFloat32, DType::kBfloat16});
    require_same_partitions(name(), "stationary", args_.stationary, "moving", args_.moving);
    require_partition_start(machine, name(), "stationary", args_.stationary);
    require_partition_start(machine, name(), "moving", args_.moving);
    if (args_.stationary.free_size() % 2 != 0) {
      refuse("mx-layout",
             {.rule = "the stationary tile of nc_matmul_mx has an even number of columns",
              .here = args_.stationary.describe(),
              .fix = "add a column of zeros"});
    }
    mx::require_scale(name(), "stationary_scale", args_.stationary_scale,
                      args_.stationary.partitions(), args_.stationary.free_size());
    mx::require_scale(name(), "moving_scale", args_.moving_scale, args_.moving.partitions(),
                      args_.moving.free_size());
    require_product_shape(machine, name(), args_.dst, args_.stationary.free_size(),
                          args_.moving.free_size());
    require_array_tile(machine, args_.stationary, args_.stationary.free_size(),
                       args_.options.tile_position, args_.options.tile_size, true);
  }

  void access(AccessList& list) const override {
    list.read(args_.stationary);
    list.read(args_.moving);
    for (const std::vector<Tensor>* quadrants : {&stationary_rows_, &moving_rows_}) {
      for (const Tensor& rows : *quadrants) {
        list.read(rows);
      }
    }
    list.add(args_.dst,
             args_.options.accumulate == false ? AccessKind::kWrite : AccessKind::kAccumulate);
  }

  void execute(CoreState&) const override {
    std::vector<float> result = product();
    store_product(args_.dst, args_.options.accumulate, result.data());
  }

  Cost cost(const Machine& machine) const override {
    return product_cost(machine, {.contraction = args_.stationary.partitions() * mx::kPacked,
                                  .stationary_columns = args_.stationary.free_size(),
                                  .moving_columns = args_.moving.free_size(),
                                  .dtype = args_.stationary.dtype(),
                                  .mx = true,
                                  .blocks = array_blocks(machine, args_.options.tile_position,
                                                         args_.options.tile_size)});
  }

  bool adds_always() const override { return args_.options.accumulate.value_or(false); }

 private:
  std::vector<float> product() const {
    const std::int64_t m_count = args_.stationary.free_size();
    const std::int64_t n_count = args_.moving.free_size();
    const std::vector<std::byte> stationary = unpack(args_.stationary);
    const std::vector<std::byte> moving = unpack(args_.moving);
    std::vector<float> sum(static_cast<std::size_t>(m_count * n_count), 0.0F);
    std::vector<float> dot(sum.size());
    for (std::int64_t group = 0; group < args_.stationary.partitions() / mx::kGroupPartitions;
         ++group) {
      tile_product(group_rows(stationary, group, m_count), group_rows(moving, group, n_count),
                   kGroupValues, static_cast<std::size_t>(m_count),
                   static_cast<std::size_t>(n_count), dot.data(), n_count, false);
      const std::vector<double> row_scales = scales_of(stationary_rows_, group);
      const std::vector<double> column_scales = scales_of(moving_rows_, group);
      parallel_for_partitions(
          static_cast<std::size_t>(m_count), sum.size(), [&](std::size_t begin, std::size_t end) {
            for (std::size_t m = begin; m < end; ++m) {
              float* out = sum.data() + m * static_cast<std::size_t>(n_count);
              const float* in = dot.data() + m * static_cast<std::size_t>(n_count);
              for (std::size_t n = 0; n < static_cast<std::size_t>(n_count); ++n) {
                out[n] += static_cast<float>(static_cast<double>(in[n]) * row_scales[m] *
                                             column_scales[n]);
              }
            }
          });
    }
    for (float& value : sum) {
      value =
          value == value ? value : std::numeric_limits<float>::quiet_NaN();  // one NaN: 0x7FC00000
    }
    return sum;
  }

  std::vector<Tensor> stationary_rows_;
  std::vector<Tensor> moving_rows_;
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(NcMatmulMx args) {
  return std::make_unique<NcMatmulMxInstruction>(std::move(args));
}

}  // namespace trena
