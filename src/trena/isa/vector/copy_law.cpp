#include "trena/isa/vector/copy_law.h"

namespace trena {
namespace {

bool is_16bit(const Tensor& tensor) { return size_bytes(tensor.dtype()) == 2; }
bool in_psum(const Tensor& tensor) { return tensor.space() == Space::kPsum; }

}  // namespace

const StreamLaw& vector_copy_law(const VectorEngine& vector, const Tensor& dst, const Tensor& src) {
  const bool both_16bit = is_16bit(dst) && is_16bit(src);
  const bool contiguous = dst.free_contiguous() && src.free_contiguous();
  if (in_psum(dst) && in_psum(src)) {
    return vector.copy_psum;
  }
  if (in_psum(dst) || in_psum(src)) {
    return both_16bit && contiguous ? vector.copy_16bit_slow : vector.copy_psum;
  }
  if (both_16bit) {
    return contiguous ? vector.copy_16bit : vector.copy_16bit_slow;
  }
  if (size_bytes(src.dtype()) < 4 && size_bytes(dst.dtype()) == 4) {
    return vector.copy_widen;
  }
  return vector.copy;
}

const StreamLaw& vector_two_source_law(const VectorEngine& vector, const Tensor& dst, const Tensor& a, const Tensor& b) {
  if (in_psum(a) || in_psum(b)) {
    return vector.tensor_tensor_psum;
  }
  return is_16bit(dst) && is_16bit(a) && is_16bit(b) ? vector.tensor_tensor_16bit : vector.tensor_tensor;
}

}  // namespace trena
