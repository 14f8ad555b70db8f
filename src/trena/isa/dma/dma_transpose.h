// dma_transpose: [1,0], [2,1,0] or [3,1,2,0] of a tensor in HBM or SBUF into SBUF; 2- and 4-byte
// types, bit by bit (hw.md §1.7). The rows may be chosen by an index vector (v3+). Rules of
// hardware and software descriptors: AWS nki.isa reference.
#pragma once

#include <optional>
#include <vector>

#include "trena/isa/dma/trigger.h"

namespace trena {

class DmaTranspose final : public Instruction {
 public:
  // `axes` empty: the permutation of src's rank.
  DmaTranspose(Tensor dst, Tensor src, std::optional<std::vector<int>> axes, DmaRequest request);

  std::string_view name() const override { return "dma_transpose"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;
  bool is_dma() const override { return true; }
  bool judges_values() const override;

 private:
  DmaTrigger trigger(const Machine& machine) const;
  void check_shape() const;
  void check_hardware_descriptors() const;
  void check_gather() const;

  Tensor dst_;
  Tensor src_;
  Tensor src_reach_;
  std::vector<int> axes_;
  DmaRequest request_;
};

}  // namespace trena
