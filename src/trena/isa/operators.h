// Which ALU operators an engine has (hw.md §2.3, §3.3), and what their operands may be.
#pragma once

#include <string_view>

#include "trena/isa/rules.h"
#include "trena/number/vector_math.h"

namespace trena {

// `operator-refused`: the vector engine has all but rsqrt, power and average; GpSimd computes, but
// has no bitvec operators; square, relu, abs_max and abs_min came with v4.
void require_operator(const Machine& machine, std::string_view instruction, std::string_view role,
                      AluOp op, EngineKind engine);

// `operator-refused`: the operator takes two operands.
void require_binary(std::string_view instruction, std::string_view role, AluOp op);

// `operator-refused`: not a bitvec operator.
void require_arithmetic(std::string_view instruction, std::string_view role, AluOp op);

// `operator-refused`: one of these.
void require_one_of(std::string_view instruction, std::string_view role, AluOp op,
                    std::initializer_list<AluOp> allowed);

// `operator-refused`: and, or, xor, add, subtract, multiply, maximum, minimum, logical and/or/xor
// (hw.md §3.3).
void require_reduction(std::string_view instruction, std::string_view role, AluOp op);

// `bitvec-operand`: a number with 32 bits, or integers, one per partition of `data`.
void require_bitvec_operand(std::string_view instruction, std::string_view role,
                            const Operand& operand, const Tensor& data);

}  // namespace trena
