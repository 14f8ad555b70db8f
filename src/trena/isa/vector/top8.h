// max8, nc_find_index8 and nc_match_replace8: the eight largest values of a row, where values
// stand, and their removal; together a top-k (hw.md §2.3, §3.7).
#pragma once

#include <optional>

#include "trena/isa/rules.h"

namespace trena {

class Max8 final : public Instruction {
 public:
  Max8(Tensor dst, Tensor src) : dst_(std::move(dst)), src_(std::move(src)) {}

  std::string_view name() const override { return "max8"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  Tensor dst_;
  Tensor src_;
};

// Equal values take their positions in ascending order; a value that is absent gives all ones.
class NcFindIndex8 final : public Instruction {
 public:
  NcFindIndex8(Tensor dst, Tensor data, Tensor values)
      : dst_(std::move(dst)), data_(std::move(data)), values_(std::move(values)) {}

  std::string_view name() const override { return "nc_find_index8"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  Tensor dst_;
  Tensor data_;
  Tensor values_;
};

// The values are looked up from the last to the first, so that equal values take their positions in
// descending order.
class NcMatchReplace8 final : public Instruction {
 public:
  NcMatchReplace8(Tensor dst, Tensor data, Tensor values, float replacement,
                  std::optional<Tensor> dst_index)
      : dst_(std::move(dst)),
        data_(std::move(data)),
        values_(std::move(values)),
        replacement_(replacement),
        dst_index_(std::move(dst_index)) {}

  std::string_view name() const override { return "nc_match_replace8"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  Tensor dst_;
  Tensor data_;
  Tensor values_;
  float replacement_;
  std::optional<Tensor> dst_index_;
};

}  // namespace trena
