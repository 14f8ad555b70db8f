// Negative log-likelihood with class indices, as torch.nn.functional.cross_entropy uses it.
#pragma once

#include <optional>

#include "trena/graph/lowering.h"

namespace trena {

enum class LossReduction : std::uint8_t { kNone = 0, kMean = 1, kSum = 2 };  // ATen's numbers

struct NllLossOptions {
  LossReduction reduction = LossReduction::kMean;
  std::int64_t ignore_index = -100;
};

// log_probabilities [N, C] (or [C]), labels int64 [N] (or []). `output` [] or [N], `total_weight`
// []. A label outside 0 … C-1 that is not ignore_index is refused (`label-range`): the device would
// give 0.
void lower_nll_loss(Lowering& lowering, const HbmView& output, const HbmView& total_weight,
                    const HbmView& log_probabilities, const HbmView& labels,
                    NllLossOptions options);
void lower_nll_loss_backward(Lowering& lowering, const HbmView& grad_input,
                             const HbmView& grad_output, const HbmView& labels,
                             const HbmView& total_weight, NllLossOptions options);

}  // namespace trena
