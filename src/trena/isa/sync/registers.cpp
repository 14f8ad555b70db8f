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

namespace {

class RegisterMoveInstruction final : public InstructionOf<RegisterMove> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "register_move"; }

  EngineKind engine(const Machine& machine) const override {
    return sequencer_for(machine, name());
  }

  void check(const Machine& machine) const override { sequencer_for(machine, name()); }

  void access(AccessList& list) const override { list.uses_state(HiddenState::kRegisters); }
  void execute(CoreState&) const override {}

  Cost cost(const Machine& machine) const override {
    return sequencer_cost(machine, machine.core.sequencer.register_move_cycles);
  }
};

class RegisterLoadInstruction final : public InstructionOf<RegisterLoad> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "register_load"; }

  EngineKind engine(const Machine& machine) const override {
    return sequencer_for(machine, name());
  }

  void check(const Machine& machine) const override {
    sequencer_for(machine, name());
    require_scalar(name(), "src", args_.src);
  }

  void access(AccessList& list) const override {
    list.read(args_.src);
    list.uses_state(HiddenState::kRegisters);
  }

  void execute(CoreState&) const override {
    if (args_.result != nullptr) {
      *args_.result = load_integer(args_.src.dtype(), args_.src.data());
    }
  }

  Cost cost(const Machine& machine) const override {
    return sequencer_cost(machine, machine.core.sequencer.register_load_cycles);
  }
};

class RegisterStoreInstruction final : public InstructionOf<RegisterStore> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "register_store"; }

  EngineKind engine(const Machine& machine) const override {
    return sequencer_for(machine, name());
  }

  void check(const Machine& machine) const override {
    sequencer_for(machine, name());
    require_scalar(name(), "dst", args_.dst);
    require_register_range(args_.value);
  }

  void access(AccessList& list) const override {
    list.write(args_.dst);
    list.uses_state(HiddenState::kRegisters);
  }

  void execute(CoreState&) const override {
    // Little-endian: the low bytes come first.
    std::memcpy(args_.dst.data(), &args_.value, size_bytes(args_.dst.dtype()));
  }

  Cost cost(const Machine& machine) const override {
    return sequencer_cost(machine, machine.core.sequencer.register_store_cycles);
  }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(RegisterMove args) {
  return std::make_unique<RegisterMoveInstruction>(std::move(args));
}

std::unique_ptr<Instruction> make_instruction(RegisterLoad args) {
  return std::make_unique<RegisterLoadInstruction>(std::move(args));
}

std::unique_ptr<Instruction> make_instruction(RegisterStore args) {
  return std::make_unique<RegisterStoreInstruction>(std::move(args));
}

}  // namespace trena
