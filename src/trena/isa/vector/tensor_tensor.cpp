#include "trena/isa/vector/tensor_tensor.h"

#include "trena/isa/core_state.h"
#include "trena/isa/operators.h"
#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"
#include "trena/isa/vector/copy_law.h"

namespace trena {
namespace {

bool is_int32(const Tensor& tensor) {
  return tensor.dtype() == DType::kInt32 || tensor.dtype() == DType::kUint32;
}

class TensorTensorInstruction final : public InstructionOf<TensorTensor> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "tensor_tensor"; }

  // Unless asked otherwise: GpSimd for power, and for tensors that are all int32 or uint32 and none
  // in PSUM, where it is exact; else the vector engine.
  EngineKind engine(const Machine& machine) const override {
    const bool gpsimd =
        args_.op == AluOp::kPower || (all_int32() && !any_psum() && !is_bitvec(args_.op));
    if (!args_.engine && gpsimd) {
      return resolve_engine(machine, name(), EngineKind::kGpsimd);
    }
    return resolve_engine(machine, name(), args_.engine);
  }

  void check(const Machine& machine) const override {
    require_elementwise(machine, name(), args_.dst, "data1", args_.data1, "data2", args_.data2);
    const EngineKind engine = this->engine(machine);
    require_binary(name(), "op", args_.op);
    require_operator(machine, name(), "op", args_.op, engine);
    require_engine_reaches(machine, name(), engine, {&args_.dst, &args_.data1, &args_.data2});
    if (is_bitvec(args_.op)) {
      require_integer(name(), "dst", args_.dst);
      require_integer(name(), "data1", args_.data1);
      require_integer(name(), "data2", args_.data2);
    }
  }

  void access(AccessList& list) const override {
    list.read(args_.data1);
    list.read(args_.data2);
    list.write(args_.dst);
  }

  void execute(CoreState& core) const override {
    if (is_bitvec(args_.op)) {
      execute_bits();
    } else if (all_int32() && args_.op != AluOp::kPower &&
               engine(core.machine()) == EngineKind::kGpsimd) {
      execute_int32();
    } else {
      execute_float32();
    }
  }

  Cost cost(const Machine& machine) const override {
    const EngineKind engine = this->engine(machine);
    const bool fast =
        args_.op == AluOp::kAdd || args_.op == AluOp::kMultiply || args_.op == AluOp::kSubtract;
    const StreamLaw& law =
        engine == EngineKind::kGpsimd
            ? machine.core.gpsimd.tensor_tensor
            : vector_two_source_law(machine, args_.dst, args_.data1, args_.data2, fast);
    return stream_cost(machine, engine, law, args_.dst.free_size(),
                       {&args_.dst, &args_.data1, &args_.data2});
  }

  IndirectOperands indirect_operands() const override { return {&args_.dst, &args_.data1}; }

 private:
  bool all_int32() const {
    return is_int32(args_.dst) && is_int32(args_.data1) && is_int32(args_.data2);
  }

  bool any_psum() const {
    return args_.dst.space() == Space::kPsum || args_.data1.space() == Space::kPsum ||
           args_.data2.space() == Space::kPsum;
  }

  void execute_float32() const {
    const TileRows out(args_.dst), a(args_.data1), b(args_.data2);
    for_each_block(args_.dst.partitions(), out.row_elements(), 1.0, [&](const Block& block) {
      const float* x = a.read(block, 0);
      const float* y = b.read(block, 1);
      float* z = out.target(block, 2, {x, y});
      binary_row(args_.op, x, 1, y, 1, z, out.elements(block));
      out.write(block, z);
    });
  }

  void execute_bits() const {
    const TileRows out(args_.dst), a(args_.data1), b(args_.data2);
    for_each_block(args_.dst.partitions(), out.row_elements(), 1.0, [&](const Block& block) {
      const std::uint32_t* x = a.read_bits(block, 0);
      const std::uint32_t* y = b.read_bits(block, 1);
      auto* z = scratch<std::uint32_t>(2, out.elements(block));
      binary_row_uint32(args_.op, x, 1, y, 1, z, out.elements(block));
      out.write_bits(block, z);
    });
  }

  // Modulo 2^32 signed and unsigned agree bit by bit, except where the operator compares.
  void execute_int32() const {
    const bool is_signed =
        args_.data1.dtype() == DType::kInt32 && args_.data2.dtype() == DType::kInt32;
    const TileRows out(args_.dst), a(args_.data1), b(args_.data2);
    for_each_block(args_.dst.partitions(), out.row_elements(), 1.0, [&](const Block& block) {
      const std::uint32_t* x = a.read_bits(block, 0);
      const std::uint32_t* y = b.read_bits(block, 1);
      const std::size_t count = out.elements(block);
      auto* z = scratch<std::uint32_t>(2, count);
      if (is_signed) {
        binary_row_int32(args_.op, reinterpret_cast<const std::int32_t*>(x), 1,
                         reinterpret_cast<const std::int32_t*>(y), 1,
                         reinterpret_cast<std::int32_t*>(z), count);
      } else {
        binary_row_uint32(args_.op, x, 1, y, 1, z, count);
      }
      out.write_bits(block, z);
    });
  }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(TensorTensor args) {
  return std::make_unique<TensorTensorInstruction>(std::move(args));
}

}  // namespace trena
