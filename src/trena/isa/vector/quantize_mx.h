// quantize_mx: float16 or bfloat16 to MXFP8 elements and scales, by groups of 32 (hw.md §3.6).
#pragma once

#include <vector>

#include "trena/isa/mx.h"

namespace trena {

// scale = 2^(floor(log2 amax) - (Emax - 1)), Emax 8 for e4m3fn and 15 for e5m2: twice OCP's sample,
// so that rounding never saturates; 2^-127 for a group of zeros. element = round(value / scale).
class QuantizeMx final : public Instruction {
 public:
  QuantizeMx(Tensor dst, Tensor src, Tensor dst_scale)
      : dst_(std::move(dst)),
        src_(std::move(src)),
        dst_scale_(std::move(dst_scale)),
        scale_rows_(mx::scale_rows(dst_scale_, src_.partitions())) {}

  std::string_view name() const override { return "quantize_mx"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;

 private:
  void quantize_group(std::int64_t group) const;

  Tensor dst_;
  Tensor src_;
  Tensor dst_scale_;
  std::vector<Tensor> scale_rows_;
};

}  // namespace trena
