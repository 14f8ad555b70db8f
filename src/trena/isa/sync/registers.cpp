#include "trena/isa/sync/registers.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "trena/isa/core_state.h"

namespace trena {
namespace {

// A compiler keeps a virtual register in the sequencers that need it; without one, the first that
// can.
EngineKind sequencer_for(const Machine& machine, std::string_view instruction) {
  return resolve_engine(machine, instruction, std::nullopt);
}

Cost sequencer_cost(const Machine& machine, double cycles) {
  Cost cost;
  cost.interval = ticks(cycles, machine.core.sequencer.clock_ghz);
  cost.completion = cost.interval;
  return cost;
}

void require_scalar(std::string_view instruction, std::string_view role, const Tensor& tensor) {
  require_space(instruction, role, tensor, {Space::kHbm, Space::kSbuf});
  if (tensor.element_count() != 1) {
    refuse("register-element",
           {.rule = "a register holds one value",
            .here = fmt::format("{} `{}` is {}", instruction, role, tensor.describe()),
            .limit = "one element, shape [1] or [1, 1]"});
  }
  const DTypeInfo& type = info(tensor.dtype());
  if (!type.is_integer || type.size_bytes > 4) {
    refuse("dtype-refused",
           {.rule = "registers are integers of at most 32 bits",
            .here = fmt::format("{} `{}` is {}", instruction, role, tensor.describe()),
            .limit = "8-, 16- and 32-bit integers",
            .fix = "cast the tensor first (tensor_copy)"});
  }
}

template <typename T>
std::int64_t load(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

std::int64_t load_integer(DType dtype, const std::byte* data) {
  switch (dtype) {
    case DType::kInt8:
      return load<std::int8_t>(data);
    case DType::kInt16:
      return load<std::int16_t>(data);
    case DType::kInt32:
      return load<std::int32_t>(data);
    case DType::kUint16:
      return load<std::uint16_t>(data);
    case DType::kUint32:
      return load<std::uint32_t>(data);
    default:
      return load<std::uint8_t>(data);
  }
}

}  // namespace

void require_register_range(std::int64_t value) {
  if (value >= std::numeric_limits<std::int32_t>::min() &&
      value <= std::numeric_limits<std::uint32_t>::max()) {
    return;
  }
  throw Error(ErrorKind::kBounds, "register-range",
              {.rule = "a register has 32 bits",
               .here = fmt::format("{}", value),
               .limit = "-2^31 to 2^32 - 1"});
}

EngineKind RegisterMove::engine(const Machine& machine) const {
  return sequencer_for(machine, name());
}

void RegisterMove::check(const Machine& machine) const { sequencer_for(machine, name()); }

Cost RegisterMove::cost(const Machine& machine) const {
  return sequencer_cost(machine, machine.core.sequencer.register_move_cycles);
}

EngineKind RegisterLoad::engine(const Machine& machine) const {
  return sequencer_for(machine, name());
}

void RegisterLoad::check(const Machine& machine) const {
  sequencer_for(machine, name());
  require_scalar(name(), "src", src_);
}

void RegisterLoad::execute(CoreState&) const {
  if (result_ != nullptr) {
    *result_ = load_integer(src_.dtype(), src_.data());
  }
}

Cost RegisterLoad::cost(const Machine& machine) const {
  return sequencer_cost(machine, machine.core.sequencer.register_load_cycles);
}

EngineKind RegisterStore::engine(const Machine& machine) const {
  return sequencer_for(machine, name());
}

void RegisterStore::check(const Machine& machine) const {
  sequencer_for(machine, name());
  require_scalar(name(), "dst", dst_);
  require_register_range(value_);
}

void RegisterStore::execute(CoreState&) const {
  // Little-endian: the low bytes come first.
  std::memcpy(dst_.data(), &value_, size_bytes(dst_.dtype()));
}

Cost RegisterStore::cost(const Machine& machine) const {
  return sequencer_cost(machine, machine.core.sequencer.register_store_cycles);
}

}  // namespace trena
