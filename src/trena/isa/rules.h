// The rules that many instructions share, each with its own id (docs/errors.md).
//
// All throw Error{kIllegal}. `instruction` is the mnemonic, `role` the argument's name in the call:
// both only make the message readable.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>

#include "trena/isa/instruction.h"

namespace trena {

// What the kernel asked for: an engine, or none (the compiler's choice).
using EngineRequest = std::optional<EngineKind>;

[[noreturn]] void refuse(std::string_view id, ErrorText text);

// The requested engine if this machine can run the instruction there (engine-refused); else the
// first of the machine's engines for it. `not-on-this-machine` when no engine can.
EngineKind resolve_engine(const Machine& machine, std::string_view instruction,
                          EngineRequest request);

// `memory-refused`: the operand lives in a memory that the instruction cannot reach (hw.md §1.5).
void require_space(std::string_view instruction, std::string_view role, const Tensor& tensor,
                   std::initializer_list<Space> allowed);

// GpSimd does not reach PSUM (hw.md §1.5): `memory-refused`.
void require_engine_reaches(const Machine& machine, std::string_view instruction, EngineKind engine,
                            std::initializer_list<const Tensor*> tensors);

// `partition-start`: 65–128 partitions start at 0, 33–64 at 0 or 64, 1–32 at a multiple of 32
// (hw.md §1.5). Only manual tensors and slices along the partition dimension can break it.
void require_partition_start(const Machine& machine, std::string_view instruction,
                             std::string_view role, const Tensor& tensor);

// `partition-mismatch`, `element-mismatch`: as many partitions, as many elements per partition
// (ranks may differ).
void require_same_partitions(std::string_view instruction, std::string_view role_a, const Tensor& a,
                             std::string_view role_b, const Tensor& b);
void require_same_elements(std::string_view instruction, std::string_view role_a, const Tensor& a,
                           std::string_view role_b, const Tensor& b);
// Both of the above, and a legal start partition for each.
void require_same_tile(const Machine& machine, std::string_view instruction,
                       std::string_view role_a, const Tensor& a, std::string_view role_b,
                       const Tensor& b);

// `two-psum-operands`: one instruction reads at most one tensor from PSUM (hw.md §1.5).
void require_not_both_psum(std::string_view instruction, std::string_view role_a, const Tensor& a,
                           std::string_view role_b, const Tensor& b);

// `dtype-refused`: the engine has no datapath for this type.
void require_dtype(std::string_view instruction, std::string_view role, const Tensor& tensor,
                   std::initializer_list<DType> allowed);
// `dtype-refused`: bitvec operators act on the raw bits of integers (hw.md §3.3).
void require_integer(std::string_view instruction, std::string_view role, const Tensor& tensor);
// `dtype-refused`: one datapath, no cast.
void require_same_dtype(std::string_view instruction, std::string_view role_a, const Tensor& a,
                        std::string_view role_b, const Tensor& b);
// The names of a set, for messages.
std::vector<std::string_view> names(const DTypeSet& dtypes);
// Refuses the host-only 64-bit types and the packed x4 types.
void require_compute_dtype(std::string_view instruction, std::string_view role,
                           const Tensor& tensor);

// An operand or result of a streaming instruction: on the chip, of a type that the machine knows
// and engines compute on, at a legal start partition.
void require_tile(const Machine& machine, std::string_view instruction, std::string_view role,
                  const Tensor& tensor);

// dst = f(a), element by element: two tiles, as many partitions and elements.
void require_elementwise(const Machine& machine, std::string_view instruction, const Tensor& dst,
                         std::string_view role_a, const Tensor& a);
// dst = f(a, b), of which at most one is in PSUM.
void require_elementwise(const Machine& machine, std::string_view instruction, const Tensor& dst,
                         std::string_view role_a, const Tensor& a, std::string_view role_b,
                         const Tensor& b);

// `lane-operand`: a per-partition operand is a number or one value per partition of `data`; float32
// where `exact`.
void require_lane_operand(std::string_view instruction, std::string_view role,
                          const Operand& operand, const Tensor& data, bool require_float32);
// Its value in one partition.
float lane_value(const Operand& operand, std::int64_t partition);

}  // namespace trena
