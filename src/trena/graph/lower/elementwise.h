// Operators that treat every element alike, with PyTorch's broadcasting, in place or not.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "trena/graph/lowering.h"

namespace trena {

// `name`: "add", "mul", "relu", … (elementwise_names()). Inputs broadcast to `out`; `scalars` are
// the operator's numbers in PyTorch's order (add: alpha; add_scalar: other, alpha;
// threshold_backward: threshold; …).
void lower_elementwise(Lowering& lowering, std::string_view name, const HbmView& out,
                       std::span<const HbmView> inputs, std::span<const double> scalars);

// With how many tensors and numbers each is called.
struct ElementwiseForm {
  std::string_view name;
  std::size_t inputs;
  std::size_t scalars;
};
std::vector<ElementwiseForm> elementwise_forms();

}  // namespace trena
