// tensor_reduce: the trailing free axes of a tile to one value each (hw.md §2.3; nki.md §5.2-15).
#pragma once

#include <cstdint>
#include <vector>

#include "trena/isa/rules.h"
#include "trena/number/vector_math.h"

namespace trena {

class TensorReduce final : public Instruction {
 public:
  // `axes` are numbered as the dimensions of `data`, 0 being the partitions. `keepdims` says only
  // how dst is written down: it changes nothing here.
  TensorReduce(Tensor dst, AluOp op, Tensor data, std::vector<std::int64_t> axes, bool negate)
      : dst_(std::move(dst)),
        op_(op),
        data_(std::move(data)),
        axes_(std::move(axes)),
        negate_(negate) {}

  std::string_view name() const override { return "tensor_reduce"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;
  IndirectOperands indirect_operands() const override { return {&dst_, &data_}; }

 private:
  std::int64_t window() const;
  void check_axes() const;

  Tensor dst_;
  AluOp op_;
  Tensor data_;
  std::vector<std::int64_t> axes_;
  bool negate_;
};

}  // namespace trena
