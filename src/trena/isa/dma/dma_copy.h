// dma_copy: moves a tensor between or within HBM and SBUF. Element counts must agree, shapes need
// not (nki.md §6.4). Equal types move bits, others go through float32 (hw.md §3.3). HBM to HBM
// carries "unwritten" along. Gathers and scatters rows through an index vector (v3+).
#pragma once

#include "trena/isa/dma/trigger.h"

namespace trena {

class DmaCopy final : public Instruction {
 public:
  DmaCopy(Tensor dst, Tensor src, DmaRequest request);

  std::string_view name() const override { return "dma_copy"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;
  bool is_dma() const override { return true; }
  bool judges_values() const override { return indirect(); }
  bool skips_out_of_bounds() const override { return request_.oob == OobMode::kSkip; }

 private:
  DmaNeeds needs() const;
  bool indirect() const;
  bool carries() const { return !dst_.on_chip() && !src_.on_chip(); }
  void copy_rows() const;

  Tensor dst_;
  Tensor src_;
  Tensor dst_reach_;  // what an indirect side may touch; else the side itself
  Tensor src_reach_;
  DmaRequest request_;
};

}  // namespace trena
