// dma_compute: dst = the sum of up to 16 tensors, computed in float32 inside the DMA engines (hw.md
// §1.7). With an index vector it reads, adds and writes rows: dst(HBM)[index] += src(SBUF), or
// dst(SBUF) += src(HBM)[index].
#pragma once

#include <optional>
#include <vector>

#include "trena/isa/dma/trigger.h"
#include "trena/number/vector_math.h"

namespace trena {

class DmaCompute final : public Instruction {
 public:
  DmaCompute(Tensor dst, std::vector<Tensor> sources, AluOp op,
             std::optional<std::vector<float>> scales, bool unique_indices, OobMode oob);

  std::string_view name() const override { return "dma_compute"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;
  bool is_dma() const override { return true; }
  bool judges_values() const override { return indirect(); }

 private:
  bool indirect() const;
  std::int64_t rows() const;
  DmaTrigger trigger(const Machine& machine) const;
  void check_indirect() const;
  void execute_rows() const;

  Tensor dst_;
  std::vector<Tensor> sources_;
  Tensor dst_reach_;
  std::vector<Tensor> source_reach_;
  AluOp op_;
  std::optional<std::vector<float>> scales_;
  bool unique_indices_;
  OobMode oob_;
};

}  // namespace trena
