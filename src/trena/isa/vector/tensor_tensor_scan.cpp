#include "trena/isa/vector/tensor_tensor_scan.h"

#include <optional>

#include "trena/isa/operators.h"
#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"

namespace trena {
namespace {

// The operator with its operands exchanged; empty when there is none.
std::optional<AluOp> mirrored(AluOp op) {
  switch (op) {
    case AluOp::kGreaterEqual:
      return AluOp::kLessEqual;
    case AluOp::kGreater:
      return AluOp::kLess;
    case AluOp::kLessEqual:
      return AluOp::kGreaterEqual;
    case AluOp::kLess:
      return AluOp::kGreater;
    case AluOp::kSubtract:
    case AluOp::kAbsMax:
    case AluOp::kAbsMin:
    case AluOp::kBypass:
      return std::nullopt;
    default:
      return op;
  }
}

// One element at a time: for reversed operators that have no mirror.
void scan_slowly(const ScanOperators& operators, const float* a, const float* b, float state,
                 float* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float x = a[i];
    const float y = b[i];
    float inner = 0.0F;
    binary_row(operators.op0, operators.reverse0 ? &state : &x, 1, operators.reverse0 ? &x : &state,
               1, &inner, 1);
    binary_row(operators.op1, operators.reverse1 ? &y : &inner, 1, operators.reverse1 ? &inner : &y,
               1, &state, 1);
    out[i] = state;
  }
}

void scan(const ScanOperators& operators, const float* a, const float* b, float initial, float* out,
          std::size_t count) {
  const std::optional<AluOp> op0 =
      operators.reverse0 ? mirrored(operators.op0) : std::optional(operators.op0);
  const std::optional<AluOp> op1 =
      operators.reverse1 ? mirrored(operators.op1) : std::optional(operators.op1);
  if (op0 && op1) {
    scan_row(*op0, *op1, a, 1, b, 1, initial, out, count);
  } else {
    scan_slowly(operators, a, b, initial, out, count);
  }
}

}  // namespace

EngineKind TensorTensorScan::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

void TensorTensorScan::check(const Machine& machine) const {
  const EngineKind engine = this->engine(machine);
  require_tile(machine, name(), "dst", dst_);
  require_tile(machine, name(), "data0", data0_);
  require_tile(machine, name(), "data1", data1_);
  require_same_partitions(name(), "data0", data0_, "data1", data1_);
  require_same_elements(name(), "data0", data0_, "data1", data1_);
  require_same_partitions(name(), "dst", dst_, "data0", data0_);
  require_same_elements(name(), "dst", dst_, "data0", data0_);
  require_not_both_psum(name(), "data0", data0_, "data1", data1_);
  require_lane_operand(name(), "initial", initial_, data0_, false);
  for (const auto& [role, op] : {std::pair{"op0", operators_.op0}, {"op1", operators_.op1}}) {
    require_arithmetic(name(), role, op);
    require_binary(name(), role, op);
    require_operator(machine, name(), role, op, engine);
  }
}

void TensorTensorScan::access(AccessList& list) const {
  list.read(data0_);
  list.read(data1_);
  list.read(initial_);
  list.write(dst_);
}

void TensorTensorScan::execute(CoreState&) const {
  const TileRows out(dst_), first(data0_), second(data1_);
  for_each_block(dst_.partitions(), out.row_elements(), 4.0, [&](const Block& block) {
    const std::size_t row = out.row_elements();
    const float* a = first.read(block, 0);
    const float* b = second.read(block, 1);
    float* z = out.target(block, 2, {a, b});
    auto* initial = scratch<float>(3, static_cast<std::size_t>(block.partitions));
    for (std::int64_t p = 0; p < block.partitions; ++p) {
      initial[p] = lane_value(initial_, block.first + p);  // before dst, which may hold it
    }
    for (std::int64_t p = 0; p < block.partitions; ++p) {
      const std::size_t at = static_cast<std::size_t>(p) * row;
      scan(operators_, a + at, b + at, initial[p], z + at, row);
    }
    out.write(block, z);
  });
}

Cost TensorTensorScan::cost(const Machine& machine) const {
  const VectorEngine& vector = machine.core.vector;
  const double seed = std::holds_alternative<Tensor>(initial_) ? vector.tensor_seed_cycles : 0.0;
  return stream_cost(machine, EngineKind::kVector, vector.scan, dst_.free_size(),
                     {&dst_, &data0_, &data1_}, seed);
}

}  // namespace trena
