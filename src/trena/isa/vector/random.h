// Random numbers: rng, rand2, dropout, and the state of their generators (hw.md §2.3, §3.7).
//
// The device's bits are not published. Trena's generator is XORWOW (number/xorwow.h): the same
// kernel gives the same numbers on every host, but not those of the device.
#pragma once

#include "trena/isa/rules.h"

namespace trena {

// 32 random bits per element, of which an integer dst keeps the low ones.
class Rng final : public Instruction {
 public:
  Rng(Tensor dst, EngineRequest request) : dst_(std::move(dst)), request_(request) {}

  std::string_view name() const override { return "rng"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  Tensor dst_;
  EngineRequest request_;
};

// Uniform float32 numbers from `low` up to `high`, rounded to dst's type. v4.
class Rand2 final : public Instruction {
 public:
  Rand2(Tensor dst, Operand low, Operand high)
      : dst_(std::move(dst)), low_(std::move(low)), high_(std::move(high)) {}

  std::string_view name() const override { return "rand2"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  Tensor dst_;
  Operand low_;
  Operand high_;
};

// Zero with probability `probability`, else data bit by bit: an element stays where its random
// number of [0, 1) is not below it (which side of the comparison the device takes is not stated).
class Dropout final : public Instruction {
 public:
  Dropout(Tensor dst, Tensor data, Operand probability)
      : dst_(std::move(dst)), data_(std::move(data)), probability_(std::move(probability)) {}

  std::string_view name() const override { return "dropout"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  Tensor dst_;
  Tensor data_;
  Operand probability_;
};

// One 32-bit seed for all lanes of the vector engine.
class SetRngSeed final : public Instruction {
 public:
  explicit SetRngSeed(Tensor seed) : seed_(std::move(seed)) {}

  std::string_view name() const override { return "set_rng_seed"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  Tensor seed_;
};

// The states of the lanes that `state` covers: [P, 6] uint32 on GpSimd, [P, 24] on the vector
// engine, each generator as x, y, z, w, v, d (Trena's order). v3+.
class RandState : public Instruction {
 public:
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  Cost cost(const Machine& machine) const override;

 protected:
  RandState(std::string_view role, Tensor state, EngineRequest request)
      : role_(role), state_(std::move(state)), request_(request) {}

  std::string_view role_;
  Tensor state_;
  EngineRequest request_;
};

class RandSetState final : public RandState {
 public:
  RandSetState(Tensor state, EngineRequest request)
      : RandState("src_seeds", std::move(state), request) {}

  std::string_view name() const override { return "rand_set_state"; }
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
};

class RandGetState final : public RandState {
 public:
  RandGetState(Tensor state, EngineRequest request) : RandState("dst", std::move(state), request) {}

  std::string_view name() const override { return "rand_get_state"; }
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
};

}  // namespace trena
