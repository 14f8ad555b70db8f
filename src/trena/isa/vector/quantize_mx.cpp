#include "trena/isa/vector/quantize_mx.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "trena/isa/stream.h"
#include "trena/memory/rows.h"
#include "trena/number/convert.h"
#include "trena/number/threads.h"

namespace trena {
namespace {

constexpr std::uint32_t kExponentShift = 23;  // of float32
constexpr std::uint32_t kMagnitude = 0x7FFFFFFF;

// The largest unbiased exponent of the element type (OCP MX).
int largest_exponent(DType packed) { return packed == DType::kFloat8E5m2X4 ? 15 : 8; }

// The bits of the group's e8m0 scale. Denormals count as zero (hw.md §3.3).
std::uint8_t scale_bits(std::uint32_t largest_magnitude, int element_exponent) {
  const int biased = static_cast<int>(largest_magnitude >> kExponentShift);
  return static_cast<std::uint8_t>(std::max(biased - (element_exponent - 1), 0));
}

// 2^-(bits - 127), exact; the reciprocal of 2^127 is a denormal and never needed: bits <= 254.
float reciprocal(std::uint8_t bits) { return std::ldexp(1.0F, mx::kScaleBias - bits); }

class QuantizeMxInstruction final : public InstructionOf<QuantizeMx> {
 public:
  explicit QuantizeMxInstruction(QuantizeMx args)
      : InstructionOf(std::move(args)),
        scale_rows_(mx::scale_rows(args_.dst_scale, args_.src.partitions())) {}

  std::string_view name() const override { return "quantize_mx"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_space(name(), "dst", args_.dst, {Space::kSbuf});
    require_space(name(), "src", args_.src, {Space::kSbuf});
    require_space(name(), "dst_scale", args_.dst_scale, {Space::kSbuf});
    require_dtype(name(), "src", args_.src, {DType::kFloat16, DType::kBfloat16});
    require_dtype(name(), "dst", args_.dst, {DType::kFloat8E4m3fnX4, DType::kFloat8E5m2X4});
    require_same_partitions(name(), "dst", args_.dst, "src", args_.src);
    require_partition_start(machine, name(), "src", args_.src);
    require_partition_start(machine, name(), "dst", args_.dst);
    if (args_.dst.free_size() * mx::kPacked != args_.src.free_size()) {
      refuse("mx-layout",
             {.rule = "quantize_mx packs four neighbours of src into one element of dst",
              .here = fmt::format("src {}, dst {}", args_.src.describe(), args_.dst.describe()),
              .limit = fmt::format("{} elements of dst per partition",
                                   args_.src.free_size() / mx::kPacked)});
    }
    mx::require_scale(name(), "dst_scale", args_.dst_scale, args_.src.partitions(),
                      args_.dst.free_size());
  }

  void access(AccessList& list) const override {
    list.read(args_.src);
    list.write(args_.dst);
    for (const Tensor& rows : scale_rows_) {
      list.write(rows);
    }
  }

  void execute(CoreState&) const override {
    const std::int64_t groups = args_.src.partitions() / mx::kGroupPartitions;
    parallel_for_partitions(static_cast<std::size_t>(groups),
                            static_cast<std::size_t>(args_.src.element_count() * 2),
                            [&](std::size_t begin, std::size_t end) {
                              for (std::size_t group = begin; group < end; ++group) {
                                quantize_group(static_cast<std::int64_t>(group));
                              }
                            });
  }

  Cost cost(const Machine& machine) const override {
    return stream_cost(machine, engine(machine), machine.core.vector.quantize_mx,
                       args_.src.free_size(), {&args_.src, &args_.dst});
  }

 private:
  void quantize_group(std::int64_t group) const {
    const std::int64_t columns = args_.dst.free_size();
    const auto row_floats = static_cast<std::size_t>(args_.src.free_size());
    std::vector<float> values(row_floats * mx::kGroupPartitions);
    std::vector<std::uint32_t> largest(static_cast<std::size_t>(columns), 0);
    for (std::int64_t p = 0; p < mx::kGroupPartitions; ++p) {
      float* row = values.data() + static_cast<std::size_t>(p) * row_floats;
      read_row(args_.src, group * mx::kGroupPartitions + p, row);
      for (std::size_t i = 0; i < row_floats; ++i) {
        std::uint32_t& most = largest[i / mx::kPacked];
        most = std::max(most, std::bit_cast<std::uint32_t>(row[i]) & kMagnitude);
      }
    }
    std::vector<std::byte> scales(static_cast<std::size_t>(columns));
    std::vector<float> factors(static_cast<std::size_t>(columns));
    const int exponent = largest_exponent(args_.dst.dtype());
    for (std::size_t i = 0; i < scales.size(); ++i) {
      const std::uint8_t bits = scale_bits(largest[i], exponent);
      scales[i] = static_cast<std::byte>(bits);
      factors[i] = reciprocal(bits);
    }
    const Tensor& rows = scale_rows_[static_cast<std::size_t>(group / mx::kScaleRows)];
    write_row_bits(rows, group % mx::kScaleRows, scales.data());
    std::vector<std::byte> packed(static_cast<std::size_t>(args_.dst.free_bytes()));
    for (std::int64_t p = 0; p < mx::kGroupPartitions; ++p) {
      float* row = values.data() + static_cast<std::size_t>(p) * row_floats;
      for (std::size_t i = 0; i < row_floats; ++i) {
        row[i] *= factors[i / mx::kPacked];
      }
      pack_x4_row(args_.dst.dtype(), row, packed.data(),
                  static_cast<std::ptrdiff_t>(size_bytes(args_.dst.dtype())),
                  static_cast<std::size_t>(columns));
      write_row_bits(args_.dst, group * mx::kGroupPartitions + p, packed.data());
    }
  }

  std::vector<Tensor> scale_rows_;
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(QuantizeMx args) {
  return std::make_unique<QuantizeMxInstruction>(std::move(args));
}

}  // namespace trena
