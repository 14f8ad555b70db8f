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

}  // namespace

bool TensorTensor::all_int32() const {
  return is_int32(dst_) && is_int32(data1_) && is_int32(data2_);
}

bool TensorTensor::any_psum() const {
  return dst_.space() == Space::kPsum || data1_.space() == Space::kPsum ||
         data2_.space() == Space::kPsum;
}

EngineKind TensorTensor::engine(const Machine& machine) const {
  const bool gpsimd = op_ == AluOp::kPower || (all_int32() && !any_psum() && !is_bitvec(op_));
  if (!engine_ && gpsimd) {
    return resolve_engine(machine, name(), EngineKind::kGpsimd);
  }
  return resolve_engine(machine, name(), engine_);
}

void TensorTensor::check(const Machine& machine) const {
  require_tile(machine, name(), "dst", dst_);
  require_tile(machine, name(), "data1", data1_);
  require_tile(machine, name(), "data2", data2_);
  require_same_partitions(name(), "data1", data1_, "data2", data2_);
  require_same_elements(name(), "data1", data1_, "data2", data2_);
  require_same_partitions(name(), "dst", dst_, "data1", data1_);
  require_same_elements(name(), "dst", dst_, "data1", data1_);
  require_not_both_psum(name(), "data1", data1_, "data2", data2_);
  const EngineKind engine = this->engine(machine);
  require_binary(name(), "op", op_);
  require_operator(machine, name(), "op", op_, engine);
  require_engine_reaches(machine, name(), engine, {&dst_, &data1_, &data2_});
  if (is_bitvec(op_)) {
    require_integer(name(), "dst", dst_);
    require_integer(name(), "data1", data1_);
    require_integer(name(), "data2", data2_);
  }
}

void TensorTensor::access(AccessList& list) const {
  list.read(data1_);
  list.read(data2_);
  list.write(dst_);
}

void TensorTensor::execute(CoreState& core) const {
  if (is_bitvec(op_)) {
    execute_bits();
  } else if (all_int32() && op_ != AluOp::kPower && engine(core.machine()) == EngineKind::kGpsimd) {
    execute_int32();
  } else {
    execute_float32();
  }
}

void TensorTensor::execute_float32() const {
  const TileRows out(dst_), a(data1_), b(data2_);
  for_each_block(dst_.partitions(), out.row_elements(), 1.0, [&](const Block& block) {
    const float* x = a.read(block, 0);
    const float* y = b.read(block, 1);
    float* z = out.target(block, 2, {x, y});
    binary_row(op_, x, 1, y, 1, z, out.elements(block));
    out.write(block, z);
  });
}

void TensorTensor::execute_bits() const {
  const TileRows out(dst_), a(data1_), b(data2_);
  for_each_block(dst_.partitions(), out.row_elements(), 1.0, [&](const Block& block) {
    const std::uint32_t* x = a.read_bits(block, 0);
    const std::uint32_t* y = b.read_bits(block, 1);
    auto* z = scratch<std::uint32_t>(2, out.elements(block));
    binary_row_uint32(op_, x, 1, y, 1, z, out.elements(block));
    out.write_bits(block, z);
  });
}

// Modulo 2^32 signed and unsigned agree bit by bit, except where the operator compares.
void TensorTensor::execute_int32() const {
  const bool is_signed = data1_.dtype() == DType::kInt32 && data2_.dtype() == DType::kInt32;
  const TileRows out(dst_), a(data1_), b(data2_);
  for_each_block(dst_.partitions(), out.row_elements(), 1.0, [&](const Block& block) {
    const std::uint32_t* x = a.read_bits(block, 0);
    const std::uint32_t* y = b.read_bits(block, 1);
    const std::size_t count = out.elements(block);
    auto* z = scratch<std::uint32_t>(2, count);
    if (is_signed) {
      binary_row_int32(op_, reinterpret_cast<const std::int32_t*>(x), 1,
                       reinterpret_cast<const std::int32_t*>(y), 1,
                       reinterpret_cast<std::int32_t*>(z), count);
    } else {
      binary_row_uint32(op_, x, 1, y, 1, z, count);
    }
    out.write_bits(block, z);
  });
}

Cost TensorTensor::cost(const Machine& machine) const {
  const EngineKind engine = this->engine(machine);
  const bool fast = op_ == AluOp::kAdd || op_ == AluOp::kMultiply || op_ == AluOp::kSubtract;
  const StreamLaw& law = engine == EngineKind::kGpsimd
                             ? machine.core.gpsimd.tensor_tensor
                             : vector_two_source_law(machine, dst_, data1_, data2_, fast);
  return stream_cost(machine, engine, law, dst_.free_size(), {&dst_, &data1_, &data2_});
}

}  // namespace trena
