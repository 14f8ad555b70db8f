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

class TensorTensorScanInstruction final : public InstructionOf<TensorTensorScan> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "tensor_tensor_scan"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    const EngineKind engine = this->engine(machine);
    require_elementwise(machine, name(), args_.dst, "data0", args_.data0, "data1", args_.data1);
    require_lane_operand(name(), "initial", args_.initial, args_.data0, false);
    for (const auto& [role, op] :
         {std::pair{"op0", args_.operators.op0}, {"op1", args_.operators.op1}}) {
      require_arithmetic(name(), role, op);
      require_binary(name(), role, op);
      require_operator(machine, name(), role, op, engine);
    }
  }

  void access(AccessList& list) const override {
    list.read(args_.data0);
    list.read(args_.data1);
    list.read(args_.initial);
    list.write(args_.dst);
  }

  void execute(CoreState&) const override {
    const TileRows out(args_.dst), first(args_.data0), second(args_.data1);
    for_each_block(args_.dst.partitions(), out.row_elements(), 4.0, [&](const Block& block) {
      const std::size_t row = out.row_elements();
      const float* a = first.read(block, 0);
      const float* b = second.read(block, 1);
      float* z = out.target(block, 2, {a, b});
      auto* initial = scratch<float>(3, static_cast<std::size_t>(block.partitions));
      for (std::int64_t p = 0; p < block.partitions; ++p) {
        initial[p] = lane_value(args_.initial, block.first + p);  // before dst, which may hold it
      }
      for (std::int64_t p = 0; p < block.partitions; ++p) {
        const std::size_t at = static_cast<std::size_t>(p) * row;
        scan(args_.operators, a + at, b + at, initial[p], z + at, row);
      }
      out.write(block, z);
    });
  }

  Cost cost(const Machine& machine) const override {
    const VectorEngine& vector = machine.core.vector;
    const double seed =
        std::holds_alternative<Tensor>(args_.initial) ? vector.tensor_seed_cycles : 0.0;
    return stream_cost(machine, EngineKind::kVector, vector.scan, args_.dst.free_size(),
                       {&args_.dst, &args_.data0, &args_.data1}, seed);
  }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(TensorTensorScan args) {
  return std::make_unique<TensorTensorScanInstruction>(std::move(args));
}

}  // namespace trena
