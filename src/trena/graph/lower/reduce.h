// Reductions and what is built on them: sum, mean, max, min, log-softmax.
#pragma once

#include <cstdint>
#include <span>

#include "trena/graph/lowering.h"

namespace trena {

// out = scale · (in reduced over `axes`). out has the kept dimensions, in order. op: add, maximum
// or minimum.
void lower_reduce(Lowering& lowering, AluOp op, const HbmView& out, const HbmView& in,
                  std::span<const std::int64_t> axes, float scale);

// The place of the first maximum along `axis`, as int64. Without NaNs.
void lower_argmax(Lowering& lowering, const HbmView& out, const HbmView& in, std::int64_t axis);

// Over `axis`; `logarithm` false gives softmax itself. One row must fit in SBUF (`graph-row-size`).
void lower_softmax(Lowering& lowering, const HbmView& out, const HbmView& in, std::int64_t axis,
                   bool logarithm);
// grad_input = grad − exp(output) · Σ grad, or output · (grad − Σ grad · output).
void lower_softmax_backward(Lowering& lowering, const HbmView& grad_input, const HbmView& grad,
                            const HbmView& output, std::int64_t axis, bool logarithm);

}  // namespace trena
