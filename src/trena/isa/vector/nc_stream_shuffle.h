// nc_stream_shuffle: moves whole partitions within each quadrant of 32 (hw.md §1.5, §2.3).
#pragma once

#include <cstdint>
#include <vector>

#include "trena/isa/rules.h"

namespace trena {

class NcStreamShuffle final : public Instruction {
 public:
  static constexpr std::int64_t kKeep = 255;  // mask entry: the output partition stays as it is

  // Partition i of each quadrant of dst takes partition mask[i] of the same quadrant of src.
  NcStreamShuffle(Tensor dst, Tensor src, std::vector<std::int64_t> mask);

  std::string_view name() const override { return "nc_stream_shuffle"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  struct Move {
    std::int64_t to;
    std::int64_t from;
  };
  void check_mask(std::int64_t quadrant) const;

  Tensor dst_;
  Tensor src_;
  std::vector<std::int64_t> mask_;
  std::vector<Move> moves_;      // partitions of dst and src
  std::vector<Tensor> written_;  // the partitions of dst that change
  std::vector<Tensor> read_;     // the partitions of src that are used
};

}  // namespace trena
