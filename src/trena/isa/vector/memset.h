// memset: one constant into a whole tile (hw.md §2.3, nki.md §5.3-22).
#pragma once

#include <cstdint>
#include <variant>

#include "trena/isa/rules.h"

namespace trena {

// An integer tensor takes an integer, without a cast.
using MemsetValue = std::variant<std::int64_t, double>;

class Memset final : public Instruction {
 public:
  Memset(Tensor dst, MemsetValue value, EngineRequest engine)
      : dst_(std::move(dst)), value_(value), engine_(engine) {}

  std::string_view name() const override { return "memset"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  bool is_zero() const;

  Tensor dst_;
  MemsetValue value_;
  EngineRequest engine_;
};

}  // namespace trena
