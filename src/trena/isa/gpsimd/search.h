// sequence_bounds, nonzero_with_count and topk: GpSimd looks for elements and tells where they
// stand (hw.md §1.6, §2.3).
#pragma once

#include "trena/isa/rules.h"

namespace trena {

// dst[0, 0, i] and dst[0, 1, i]: where the run of segment_ids[0, i] begins, and one past its end; n
// and -1 where the id is 0 (padding).
class SequenceBounds final : public Instruction {
 public:
  SequenceBounds(Tensor dst, Tensor segment_ids)
      : dst_(std::move(dst)), segment_ids_(std::move(segment_ids)) {}

  std::string_view name() const override { return "sequence_bounds"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  Tensor dst_;
  Tensor segment_ids_;
};

// In every 16th partition: the positions of the elements that are not zero, plus `index_offset`,
// then `padding`, and in the last element how many there are. Other partitions are not touched.
class NonzeroWithCount final : public Instruction {
 public:
  NonzeroWithCount(Tensor dst, Tensor src, std::int64_t index_offset, std::int64_t padding);

  std::string_view name() const override { return "nonzero_with_count"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  Tensor dst_;
  Tensor src_;
  Tensor rows_out_;  // the first partition of each GpSimd core
  Tensor rows_in_;
  std::int64_t index_offset_;
  std::int64_t padding_;
};

// 16 partitions hold one list of `count` bfloat16, column by column. Every partition of the group
// receives its K largest in ascending order, and their positions. Of equal values the earlier
// counts as larger, NaN as the largest (Trena's choice: the documents do not say).
class TopK final : public Instruction {
 public:
  TopK(Tensor values, Tensor indices, Tensor src, std::int64_t count)
      : values_(std::move(values)),
        indices_(std::move(indices)),
        src_(std::move(src)),
        count_(count) {}

  std::string_view name() const override { return "topk"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  Tensor values_;
  Tensor indices_;
  Tensor src_;
  std::int64_t count_;
};

}  // namespace trena
