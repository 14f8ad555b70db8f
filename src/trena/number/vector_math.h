// Row kernels on float32: activation functions (hw.md §3.5), ALU operators and reductions (hw.md
// §3.3, §3.7).
//
// The device uses piecewise polynomials that are not public (hw.md §7 row 23); Trena computes the
// exact function, within 1 ulp, in double precision with separately rounded operations. So every
// SIMD target gives the same bytes. Denormal inputs and results are zero (design: flushed on entry
// to a worker). A NaN that is computed is 0x7FC00000. `out` may be the same row as an input, but
// may not overlap it otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace trena {

enum class MathFunction : std::uint8_t {
  kCopy,  // bits unchanged
  kAbs,
  kSign,  // -1, 0, 1
  kSquare,
  kRelu,
  kExp,
  kLog,
  kSqrt,
  kRsqrt,
  kReciprocal,
  kTanh,
  kSigmoid,
  kSilu,
  kSiluDx,
  kGelu,  // erf form
  kGeluDx,
  kGeluApprxTanh,
  kGeluApprxSigmoid,  // x * sigmoid(1.702 x)
  kGeluApprxSigmoidDx,
  kSoftplus,
  kMish,
  kErf,
  kErfDx,
  kSin,  // no range reduction: outside [-pi, pi] the last cubic is extrapolated (hw.md §3.5)
  kArctan,
  kPrelu,  // slope 0 here; prelu_row takes any
};
inline constexpr std::size_t kMathFunctionCount = 26;

// NKI's names: "gelu_apprx_tanh", …
std::string_view name(MathFunction function);
std::optional<MathFunction> math_function_from_name(std::string_view name);

// y[i] = function(x[i])
void apply_row(MathFunction function, const float* x, float* y, std::size_t count);

// y[i] = x[i] < 0 ? slope * x[i] : x[i]
void prelu_row(const float* x, float slope, float* y, std::size_t count);

// The inputs for which the scalar engine's tables are valid (hw.md §3.5); outside, results are
// Trena's own.
struct ValidRange {
  float low, high;
};
ValidRange valid_range(MathFunction function);

// NKI's operator names (nl.add, nl.maximum, …). divide and mod are no device operators.
enum class AluOp : std::uint8_t {
  kBypass,  // a
  kAdd,
  kSubtract,
  kMultiply,
  kMaximum,  // NaN if either is NaN; so are the next three
  kMinimum,
  kAbsMax,  // a if |a| > |b|, else b: the value keeps its sign
  kAbsMin,
  kEqual,  // comparisons and logical operators give 1 or 0
  kNotEqual,
  kGreaterEqual,
  kGreater,
  kLessEqual,
  kLess,
  kLogicalAnd,
  kLogicalOr,
  kLogicalXor,
  kPower,
  kAbs,  // unary operators ignore b
  kSquare,
  kRelu,
  kRsqrt,
  kReciprocal,
  kLogicalNot,
  kBitwiseAnd,  // bitvec operators act on raw integer bits
  kBitwiseOr,
  kBitwiseXor,
  kInvert,
  kLeftShift,   // logical; a count of 32 or more gives 0
  kRightShift,  // logical: the arithmetic right shift is missing in hardware (hw.md §3.3)
  kAverage,     // reduction of the partition reduce only (hw.md §2.3)
};
inline constexpr std::size_t kAluOpCount = 31;

std::string_view name(AluOp op);
std::optional<AluOp> alu_op_from_name(std::string_view name);
bool is_bitvec(AluOp op);
bool is_unary(AluOp op);
// Legal as a reduction (hw.md §3.3): and, or, xor, add, subtract, multiply, max, min, logical
// and/or/xor; abs_max and abs_min on v4's activate2 (hw.md §2.3).
bool is_reduction(AluOp op);
// What an accumulator starts from (hw.md §3.7): add 0, multiply 1, max -inf, min +inf, …
float identity(AluOp op);
std::uint32_t identity_bits(AluOp op);

// out[i] = a[i] op b[i], in float32. A stride is 1, or 0 for one value used for the whole row.
// Throws `alu-op-type` for a bitvec operator, which needs integers.
void binary_row(AluOp op, const float* a, std::ptrdiff_t a_stride, const float* b,
                std::ptrdiff_t b_stride, float* out, std::size_t count);

// Exact integer versions (GpSimd, hw.md §1.6, §3.3). Arithmetic wraps modulo 2^32; `power`, `rsqrt`
// and `reciprocal` throw `alu-op-type`. Bitvec operators on narrower types go through
// read_row_bits.
void binary_row_int32(AluOp op, const std::int32_t* a, std::ptrdiff_t a_stride,
                      const std::int32_t* b, std::ptrdiff_t b_stride, std::int32_t* out,
                      std::size_t count);
void binary_row_uint32(AluOp op, const std::uint32_t* a, std::ptrdiff_t a_stride,
                       const std::uint32_t* b, std::ptrdiff_t b_stride, std::uint32_t* out,
                       std::size_t count);

// One value out of a row, in one order on every machine (host.md §2): lane i of 16 takes elements
// i, i+16, …, then lanes combine pairwise 8, 4, 2, 1 apart. subtract is the first element minus the
// sum of the rest. An empty row gives the identity.
float reduce_row(AluOp op, const float* values, std::size_t count);
std::uint32_t reduce_row_uint32(AluOp op, const std::uint32_t* values, std::size_t count);
std::int32_t reduce_row_int32(AluOp op, const std::int32_t* values, std::size_t count);

// state = (a[i] op0 state) op1 b[i]; out[i] = state; strides as above. Returns the last state.
// The scan of nki.isa.tensor_tensor_scan (hw.md §2.3), in element order.
float scan_row(AluOp op0, AluOp op1, const float* a, std::ptrdiff_t a_stride, const float* b,
               std::ptrdiff_t b_stride, float initial, float* out, std::size_t count);

}  // namespace trena
