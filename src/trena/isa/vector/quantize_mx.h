// quantize_mx: float16 or bfloat16 to MXFP8 elements and scales, by groups of 32 (hw.md §3.6).
#pragma once

#include <vector>

#include "trena/isa/mx.h"

namespace trena {

// scale = 2^(floor(log2 amax) - (Emax - 1)), Emax 8 for e4m3fn and 15 for e5m2: twice OCP's sample,
// so that rounding never saturates; 2^-127 for a group of zeros. element = round(value / scale).
struct QuantizeMx {
  Tensor dst;
  Tensor src;
  Tensor dst_scale;
};
std::unique_ptr<Instruction> make_instruction(QuantizeMx args);

}  // namespace trena
