// nc_matmul_mx: the product of MX-quantised tiles, dequantised on the way (hw.md §2.2, §3.6).
#pragma once

#include <vector>

#include "trena/isa/mx.h"
#include "trena/isa/tensor/product_rules.h"

namespace trena {

struct MatmulMxOptions {
  std::optional<RowColumn> tile_position;  // rows only
  std::optional<RowColumn> tile_size;
  std::optional<bool> accumulate;  // none: per location, the first overwrites
};

// dst[m][n] (+)= sum over groups g of 2^(sa[g][m] - 127) · 2^(sb[g][n] - 127) · dot, where dot is
// the float32 sum of the 32 products of the group in the order of tile_product. Groups add in
// ascending order, in float32. A scale of 255 is NaN (OCP MX).
class NcMatmulMx final : public Instruction {
 public:
  NcMatmulMx(Tensor dst, Tensor stationary, Tensor moving, Tensor stationary_scale,
             Tensor moving_scale, MatmulMxOptions options)
      : dst_(std::move(dst)),
        stationary_(std::move(stationary)),
        moving_(std::move(moving)),
        stationary_scale_(std::move(stationary_scale)),
        moving_scale_(std::move(moving_scale)),
        options_(options),
        stationary_rows_(mx::scale_rows(stationary_scale_, stationary_.partitions())),
        moving_rows_(mx::scale_rows(moving_scale_, moving_.partitions())) {}

  std::string_view name() const override { return "nc_matmul_mx"; }
  EngineKind engine(const Machine& machine) const override;
  void check(const Machine& machine) const override;
  void access(AccessList& list) const override;
  void execute(CoreState& core) const override;
  Cost cost(const Machine& machine) const override;
  bool adds_always() const override { return options_.accumulate.value_or(false); }

 private:
  std::vector<float> product() const;

  Tensor dst_;
  Tensor stationary_;
  Tensor moving_;
  Tensor stationary_scale_;
  Tensor moving_scale_;
  MatmulMxOptions options_;
  std::vector<Tensor> stationary_rows_;
  std::vector<Tensor> moving_rows_;
};

}  // namespace trena
