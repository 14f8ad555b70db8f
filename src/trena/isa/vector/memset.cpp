#include "trena/isa/vector/memset.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"
#include "trena/number/convert.h"

namespace trena {
namespace {

std::string text(const MemsetValue& value) {
  return std::visit([](auto number) { return fmt::format("{}", number); }, value);
}

// Least and greatest value of an integer type.
std::pair<std::int64_t, std::int64_t> integer_range(DType dtype) {
  if (dtype == DType::kBool) {
    return {0, 1};
  }
  const DTypeInfo& type = info(dtype);
  const int bits = 8 * type.size_bytes - (type.is_signed ? 1 : 0);
  const std::int64_t high = (std::int64_t{1} << bits) - 1;
  return {type.is_signed ? -high - 1 : 0, high};
}

void require_integer_value(const Tensor& dst, const MemsetValue& value) {
  const auto [low, high] = integer_range(dst.dtype());
  const auto* number = std::get_if<std::int64_t>(&value);
  if (number != nullptr && *number >= low && *number <= high) {
    return;
  }
  refuse("memset-value",
         {.rule = "memset writes a constant of the tensor's own type, without a cast",
          .here = fmt::format("value={} into {}", text(value), dst.describe()),
          .limit = fmt::format("an integer from {} to {}", low, high)});
}

}  // namespace

bool Memset::is_zero() const {
  return std::visit([](auto number) { return number == 0; }, value_);
}

EngineKind Memset::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), engine_);
}

void Memset::check(const Machine& machine) const {
  require_space(name(), "dst", dst_, {Space::kSbuf, Space::kPsum});
  require_partition_start(machine, name(), "dst", dst_);
  require_engine_reaches(machine, name(), engine(machine), {&dst_});
  if (is_packed_x4(dst_.dtype())) {
    if (!is_zero()) {
      refuse("memset-value",
             {.rule = "memset has no notion of the values packed in an x4 element",
              .here = fmt::format("value={} into {}", text(value_), dst_.describe()),
              .limit = "0",
              .fix = "load packed values with dma_copy"});
    }
    return;
  }
  require_compute_dtype(name(), "dst", dst_);
  if (info(dst_.dtype()).is_integer && !is_zero()) {  // 0.0 has the bits of 0: kernels write it
    require_integer_value(dst_, value_);
  }
}

void Memset::access(AccessList& list) const { list.write(dst_); }

void Memset::execute(CoreState&) const {
  std::uint32_t bits = 0;
  if (!is_zero() && info(dst_.dtype()).is_integer) {
    bits = static_cast<std::uint32_t>(std::get<std::int64_t>(value_));
  } else if (!is_packed_x4(dst_.dtype())) {
    const double number = std::visit([](auto value) { return static_cast<double>(value); }, value_);
    std::array<std::byte, 4> bytes{};
    from_float(dst_.dtype(), static_cast<float>(number), bytes.data());
    std::memcpy(&bits, bytes.data(), bytes.size());
  }
  const TileRows out(dst_);
  for_each_block(dst_.partitions(), out.row_elements(), 0.25,
                 [&](const Block& block) { out.fill(block, bits); });
}

Cost Memset::cost(const Machine& machine) const {
  const EngineKind engine = this->engine(machine);
  if (engine == EngineKind::kGpsimd) {
    return stream_cost(machine, engine, machine.core.gpsimd.copy, dst_.free_size(), {&dst_});
  }
  const VectorEngine& vector = machine.core.vector;
  const bool fast = is_zero() && size_bytes(dst_.dtype()) == 2;
  return stream_cost(machine, engine, fast ? vector.memset_zero_16bit : vector.memset,
                     dst_.free_size(), {&dst_});
}

}  // namespace trena
