// Registers of the engine sequencers (hw.md §4). The front end holds the live value; these
// instructions are what setting, loading and storing it costs and touches. 32 bits, two's
// complement.
#pragma once

#include "trena/isa/rules.h"

namespace trena {

class RegisterMove final : public Instruction {
 public:
  RegisterMove() = default;
  std::string_view name() const override { return "register_move"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override { list.uses_state(HiddenState::kRegisters); }
  void execute(CoreState&) const override {}
  Cost cost(const Machine& machine) const override;
};

// The one element of an integer tensor in HBM or SBUF. `result`, if given, receives the value when
// the instruction is executed; the pointer is not used later.
class RegisterLoad final : public Instruction {
 public:
  RegisterLoad(Tensor src, std::int64_t* result) : src_(std::move(src)), result_(result) {}
  std::string_view name() const override { return "register_load"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override {
    list.read(src_);
    list.uses_state(HiddenState::kRegisters);
  }
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  Tensor src_;
  std::int64_t* result_;
};

class RegisterStore final : public Instruction {
 public:
  RegisterStore(Tensor dst, std::int64_t value) : dst_(std::move(dst)), value_(value) {}
  std::string_view name() const override { return "register_store"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override {
    list.write(dst_);
    list.uses_state(HiddenState::kRegisters);
  }
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  Tensor dst_;
  std::int64_t value_;
};

// `register-range`: what 32 bits hold, signed or unsigned.
void require_register_range(std::int64_t value);

}  // namespace trena
