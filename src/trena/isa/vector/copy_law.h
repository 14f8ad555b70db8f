// Which copy law of the vector engine holds: hardware detects its fast modes from types and places (hw.md §2.3).
#pragma once

#include "trena/isa/instruction.h"

namespace trena {

// tensor_copy and tensor_scalar: one stream in, one out.
const StreamLaw& vector_copy_law(const VectorEngine& vector, const Tensor& dst, const Tensor& src);

// tensor_tensor and its kin: two streams in, one out.
const StreamLaw& vector_two_source_law(const VectorEngine& vector, const Tensor& dst, const Tensor& a, const Tensor& b);

}  // namespace trena
