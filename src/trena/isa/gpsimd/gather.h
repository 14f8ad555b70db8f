// local_gather and nc_n_gather: elements of a row by index, inside SBUF (hw.md §1.6, §2.3).
#pragma once

#include <optional>

#include "trena/isa/rules.h"

namespace trena {

// Each GpSimd core sees 16 partitions. Their indices, column by column, are free offsets: from
// every one of the 16 rows it takes `elements_per_index` contiguous elements at each of them.
class LocalGather final : public Instruction {
 public:
  LocalGather(Tensor dst, Tensor src, Tensor index, std::int64_t elements_per_index,
              std::optional<std::int64_t> valid_indices)
      : dst_(std::move(dst)),
        src_(std::move(src)),
        index_(std::move(index)),
        elements_per_index_(elements_per_index),
        valid_indices_(valid_indices) {}

  std::string_view name() const override { return "local_gather"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  void check_sizes(const Machine& machine) const;
  std::int64_t indices(std::int64_t group_partitions) const;  // used by each core

  Tensor dst_;
  Tensor src_;
  Tensor index_;
  std::int64_t elements_per_index_;
  std::optional<std::int64_t> valid_indices_;
};

// dst[p, i] = data[p, indices[p, i]], the free axes of each operand flattened.
class NcNGather final : public Instruction {
 public:
  NcNGather(Tensor dst, Tensor data, Tensor indices)
      : dst_(std::move(dst)), data_(std::move(data)), indices_(std::move(indices)) {}

  std::string_view name() const override { return "nc_n_gather"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  Tensor dst_;
  Tensor data_;
  Tensor indices_;
};

}  // namespace trena
