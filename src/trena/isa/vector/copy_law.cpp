#include "trena/isa/vector/copy_law.h"

namespace trena {
namespace {

bool in_psum(const Tensor& tensor) { return tensor.space() == Space::kPsum; }

}  // namespace

bool streams_fast(const Machine& machine, std::initializer_list<const Tensor*> tensors) {
  const bool fp8_too = machine.is_generation(4);
  for (const Tensor* tensor : tensors) {
    const bool fp8 = fp8_too && is_float8(tensor->dtype());
    if (size_bytes(tensor->dtype()) != 2 && !fp8) {
      return false;
    }
  }
  return true;
}

const StreamLaw& vector_copy_law(const Machine& machine, const Tensor& dst, const Tensor& src) {
  const VectorEngine& vector = machine.core.vector;
  const bool fast = streams_fast(machine, {&dst, &src});
  const bool contiguous = dst.free_contiguous() && src.free_contiguous();
  if (in_psum(dst) && in_psum(src)) {
    return vector.copy_psum;
  }
  if (in_psum(dst) || in_psum(src)) {
    return fast && contiguous ? vector.copy_16bit_slow : vector.copy_psum;
  }
  if (fast) {
    return contiguous ? vector.copy_16bit : vector.copy_16bit_slow;
  }
  if (size_bytes(src.dtype()) < 4 && size_bytes(dst.dtype()) == 4) {
    return vector.copy_widen;
  }
  return vector.copy;
}

const StreamLaw& vector_two_source_law(const Machine& machine, const Tensor& dst, const Tensor& a,
                                       const Tensor& b, bool fast_operators) {
  const VectorEngine& vector = machine.core.vector;
  if (in_psum(a) || in_psum(b)) {
    return vector.tensor_tensor_psum;
  }
  bool fast = streams_fast(machine, {&dst, &a, &b});
  if (!machine.is_generation(3)) {
    fast = fast && fast_operators;
    for (const Tensor* tensor : {&dst, &a, &b}) {
      fast = fast && tensor->dtype() == DType::kBfloat16 && tensor->free_contiguous();
    }
  }
  return fast ? vector.tensor_tensor_16bit : vector.tensor_tensor;
}

const StreamLaw& scalar_copy_law(const Machine& machine, const Tensor& dst, const Tensor& src) {
  const ScalarEngine& scalar = machine.core.scalar;
  return streams_fast(machine, {&dst, &src}) ? scalar.copy_16bit : scalar.copy;
}

double scalar_psum_credit(const Machine& machine, const Tensor& src) {
  return in_psum(src) ? machine.core.scalar.psum_credit_cycles : 0.0;
}

}  // namespace trena
