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

}  // namespace

EngineKind QuantizeMx::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

void QuantizeMx::check(const Machine& machine) const {
  engine(machine);
  require_space(name(), "dst", dst_, {Space::kSbuf});
  require_space(name(), "src", src_, {Space::kSbuf});
  require_space(name(), "dst_scale", dst_scale_, {Space::kSbuf});
  require_dtype(name(), "src", src_, {DType::kFloat16, DType::kBfloat16});
  require_dtype(name(), "dst", dst_, {DType::kFloat8E4m3fnX4, DType::kFloat8E5m2X4});
  require_same_partitions(name(), "dst", dst_, "src", src_);
  require_partition_start(machine, name(), "src", src_);
  require_partition_start(machine, name(), "dst", dst_);
  if (dst_.free_size() * mx::kPacked != src_.free_size()) {
    refuse("mx-layout", {.rule = "quantize_mx packs four neighbours of src into one element of dst",
                         .here = fmt::format("src {}, dst {}", src_.describe(), dst_.describe()),
                         .limit = fmt::format("{} elements of dst per partition",
                                              src_.free_size() / mx::kPacked)});
  }
  mx::require_scale(name(), "dst_scale", dst_scale_, src_.partitions(), dst_.free_size());
}

void QuantizeMx::access(AccessList& list) const {
  list.read(src_);
  list.write(dst_);
  for (const Tensor& rows : scale_rows_) {
    list.write(rows);
  }
}

void QuantizeMx::quantize_group(std::int64_t group) const {
  const std::int64_t columns = dst_.free_size();
  const auto row_floats = static_cast<std::size_t>(src_.free_size());
  std::vector<float> values(row_floats * mx::kGroupPartitions);
  std::vector<std::uint32_t> largest(static_cast<std::size_t>(columns), 0);
  for (std::int64_t p = 0; p < mx::kGroupPartitions; ++p) {
    float* row = values.data() + static_cast<std::size_t>(p) * row_floats;
    read_row(src_, group * mx::kGroupPartitions + p, row);
    for (std::size_t i = 0; i < row_floats; ++i) {
      std::uint32_t& most = largest[i / mx::kPacked];
      most = std::max(most, std::bit_cast<std::uint32_t>(row[i]) & kMagnitude);
    }
  }
  std::vector<std::byte> scales(static_cast<std::size_t>(columns));
  std::vector<float> factors(static_cast<std::size_t>(columns));
  const int exponent = largest_exponent(dst_.dtype());
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const std::uint8_t bits = scale_bits(largest[i], exponent);
    scales[i] = static_cast<std::byte>(bits);
    factors[i] = reciprocal(bits);
  }
  const Tensor& rows = scale_rows_[static_cast<std::size_t>(group / mx::kScaleRows)];
  write_row_bits(rows, group % mx::kScaleRows, scales.data());
  std::vector<std::byte> packed(static_cast<std::size_t>(dst_.free_bytes()));
  for (std::int64_t p = 0; p < mx::kGroupPartitions; ++p) {
    float* row = values.data() + static_cast<std::size_t>(p) * row_floats;
    for (std::size_t i = 0; i < row_floats; ++i) {
      row[i] *= factors[i / mx::kPacked];
    }
    pack_x4_row(dst_.dtype(), row, packed.data(),
                static_cast<std::ptrdiff_t>(size_bytes(dst_.dtype())),
                static_cast<std::size_t>(columns));
    write_row_bits(dst_, group * mx::kGroupPartitions + p, packed.data());
  }
}

void QuantizeMx::execute(CoreState&) const {
  const std::int64_t groups = src_.partitions() / mx::kGroupPartitions;
  parallel_for_partitions(static_cast<std::size_t>(groups),
                          static_cast<std::size_t>(src_.element_count() * 2),
                          [&](std::size_t begin, std::size_t end) {
                            for (std::size_t group = begin; group < end; ++group) {
                              quantize_group(static_cast<std::int64_t>(group));
                            }
                          });
}

Cost QuantizeMx::cost(const Machine& machine) const {
  return stream_cost(machine, engine(machine), machine.core.vector.quantize_mx, src_.free_size(),
                     {&src_, &dst_});
}

}  // namespace trena
