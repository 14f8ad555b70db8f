// The small objects that cross the border in both directions: element types, operators, engine
// choices.
//
// Python holds one instance of each (nl.float32, nl.add, nisa.engine.vector) and registers it here,
// so that `tensor.dtype is nl.float32` holds and costs one table look-up.
#pragma once

#include <optional>
#include <string>

#include "bindings.h"
#include "trena/number/dtype.h"
#include "trena/number/vector_math.h"

namespace trena::bindings {

struct DTypeObject {
  DType value = DType::kFloat32;
};

// nl.add, nl.exp, …: what the vector engines call an ALU operator and the scalar engine a function.
// A name may be both (nl.square) or neither (nl.divide is composite).
struct Operator {
  std::string name;
  std::optional<AluOp> alu;
  std::optional<MathFunction> function;
};

// nisa.engine: the values of the public enum.
enum class EngineChoice : int {
  kUnknown = 0,
  kTensor = 1,
  kScalar = 2,
  kGpsimd = 3,
  kDma = 4,
  kVector = 5,
  kSync = 6,
};
EngineRequest request(EngineChoice choice);

// nisa.NkiInstruction: a recorded instruction of the running kernel, by its place.
struct InstructionHandle {
  const Program* program = nullptr;
  const Instruction* instruction = nullptr;  // null: refused, and left out (trena check)
  int core = 0;
  std::uint32_t index = 0;
  std::uint32_t iteration = 0;  // of the innermost device loop around it, 0: none (loops.cpp)
};

// Appends one instruction of the calling kernel.
InstructionHandle emit(std::unique_ptr<Instruction> instruction,
                       const std::optional<std::string>& name);
template <typename Arguments>
InstructionHandle emit(Arguments args, const std::optional<std::string>& name) {
  return emit(make_instruction(std::move(args)), name);
}

// The instruction appended last.
InstructionHandle last_instruction(const Seat& seat);

// The iteration of a device loop that this thread is in; 0: in none.
std::uint32_t current_iteration();

// A DTypeObject, an NKI name, or a NumPy, ml_dtypes or torch type; else `unknown-dtype`.
DType dtype_from(nb::handle object);
// The registered instance of that type (a plain DTypeObject until Python registers its own).
nb::object dtype_object(DType dtype);

// `operator-refused`: the operator exists, but not in this unit. `role` is the argument's name.
AluOp alu_of(const Operator& op, std::string_view role);
MathFunction function_of(const Operator& op, std::string_view role);

// nl.sbuf, nl.psum, nl.hbm, nl.shared_hbm as registered by Python; a string until then.
nb::object memory_object(const Buffer& buffer);

}  // namespace trena::bindings
