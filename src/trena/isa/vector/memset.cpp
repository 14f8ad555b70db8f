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

class MemsetInstruction final : public InstructionOf<Memset> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "memset"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), args_.engine);
  }

  void check(const Machine& machine) const override {
    require_space(name(), "dst", args_.dst, {Space::kSbuf, Space::kPsum});
    require_partition_start(machine, name(), "dst", args_.dst);
    require_engine_reaches(machine, name(), engine(machine), {&args_.dst});
    if (is_packed_x4(args_.dst.dtype())) {
      if (!is_zero()) {
        refuse("memset-value",
               {.rule = "memset has no notion of the values packed in an x4 element",
                .here = fmt::format("value={} into {}", text(args_.value), args_.dst.describe()),
                .limit = "0",
                .fix = "load packed values with dma_copy"});
      }
      return;
    }
    require_compute_dtype(name(), "dst", args_.dst);
    if (info(args_.dst.dtype()).is_integer &&
        !is_zero()) {  // 0.0 has the bits of 0: kernels write it
      require_integer_value(args_.dst, args_.value);
    }
  }

  void access(AccessList& list) const override { list.write(args_.dst); }

  void execute(CoreState&) const override {
    std::uint32_t bits = 0;
    if (!is_zero() && info(args_.dst.dtype()).is_integer) {
      bits = static_cast<std::uint32_t>(std::get<std::int64_t>(args_.value));
    } else if (!is_packed_x4(args_.dst.dtype())) {
      const double number =
          std::visit([](auto value) { return static_cast<double>(value); }, args_.value);
      std::array<std::byte, 4> bytes{};
      from_float(args_.dst.dtype(), static_cast<float>(number), bytes.data());
      std::memcpy(&bits, bytes.data(), bytes.size());
    }
    const TileRows out(args_.dst);
    for_each_block(args_.dst.partitions(), out.row_elements(), 0.25,
                   [&](const Block& block) { out.fill(block, bits); });
  }

  Cost cost(const Machine& machine) const override {
    const EngineKind engine = this->engine(machine);
    if (engine == EngineKind::kGpsimd) {
      return stream_cost(machine, engine, machine.core.gpsimd.copy, args_.dst.free_size(),
                         {&args_.dst});
    }
    const VectorEngine& vector = machine.core.vector;
    const bool fast = is_zero() && size_bytes(args_.dst.dtype()) == 2;
    return stream_cost(machine, engine, fast ? vector.memset_zero_16bit : vector.memset,
                       args_.dst.free_size(), {&args_.dst});
  }

 private:
  bool is_zero() const {
    return std::visit([](auto number) { return number == 0; }, args_.value);
  }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(Memset args) {
  return std::make_unique<MemsetInstruction>(std::move(args));
}

}  // namespace trena
