// Which law of an engine holds: hardware detects its fast modes from types and places (hw.md §2.3).
#pragma once

#include "trena/isa/instruction.h"

namespace trena {

// 16-bit types stream faster from v3 on, fp8 from v4 on.
bool streams_fast(const Machine& machine, std::initializer_list<const Tensor*> tensors);

// tensor_copy and tensor_scalar on the vector engine: one stream in, one out.
const StreamLaw& vector_copy_law(const Machine& machine, const Tensor& dst, const Tensor& src);

// tensor_tensor and its kin: two streams in, one out. On v2 only contiguous bfloat16 streams fast,
// and only through `fast_operators` (hw.md §2.3).
const StreamLaw& vector_two_source_law(const Machine& machine, const Tensor& dst, const Tensor& a,
                                       const Tensor& b, bool fast_operators);

// tensor_copy and tensor_scalar on the scalar engine.
const StreamLaw& scalar_copy_law(const Machine& machine, const Tensor& dst, const Tensor& src);

// The scalar engine's completion is so many cycles earlier when it reads PSUM (hw.md §2.4).
double scalar_psum_credit(const Machine& machine, const Tensor& src);

}  // namespace trena
