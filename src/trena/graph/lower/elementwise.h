// Operators that treat every element alike, with PyTorch's broadcasting, in place or not.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "trena/graph/lowering.h"

namespace trena {

// `name`: "add", "mul", "relu", … (the table in elementwise.cpp). Inputs broadcast to `out`;
// `scalars` are the operator's numbers in PyTorch's order (add: alpha; add_scalar: other, alpha;
// threshold_backward: threshold; …).
void lower_elementwise(Lowering& lowering, std::string_view name, const HbmView& out,
                       std::span<const HbmView> inputs, std::span<const double> scalars);

}  // namespace trena
