// tensor_partition_reduce: one row out of all partitions (hw.md §2.3).
#pragma once

#include "trena/isa/rules.h"
#include "trena/number/vector_math.h"

namespace trena {

class TensorPartitionReduce final : public Instruction {
 public:
  TensorPartitionReduce(Tensor dst, AluOp op, Tensor data)
      : dst_(std::move(dst)), op_(op), data_(std::move(data)) {}

  std::string_view name() const override { return "tensor_partition_reduce"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  void execute_bits() const;
  void execute_float32() const;

  Tensor dst_;
  AluOp op_;
  Tensor data_;
};

}  // namespace trena
