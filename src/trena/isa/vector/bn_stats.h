// bn_stats and bn_aggr: mean and variance of a row in two steps (hw.md §2.3, §3.7).
#pragma once

#include "trena/isa/rules.h"

namespace trena {

// Count, mean and variance * count of the even elements, then of the odd ones.
class BnStats final : public Instruction {
 public:
  BnStats(Tensor dst, Tensor data) : dst_(std::move(dst)), data_(std::move(data)) {}

  std::string_view name() const override { return "bn_stats"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  Tensor dst_;
  Tensor data_;
};

// Mean and variance of everything that (count, mean, variance * count) triples describe.
class BnAggregate final : public Instruction {
 public:
  BnAggregate(Tensor dst, Tensor data) : dst_(std::move(dst)), data_(std::move(data)) {}

  std::string_view name() const override { return "bn_aggr"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  Tensor dst_;
  Tensor data_;
};

}  // namespace trena
