#include "trena/isa/vector/tensor_copy.h"

#include <algorithm>

#include "trena/isa/core_state.h"
#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"
#include "trena/isa/vector/copy_law.h"

namespace trena {

EngineKind TensorCopy::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), engine_);
}

void TensorCopy::check(const Machine& machine) const {
  require_space(name(), "dst", dst_, {Space::kSbuf, Space::kPsum});
  require_space(name(), "src", src_, {Space::kSbuf, Space::kPsum});
  require_same_tile(machine, name(), "dst", dst_, "src", src_);
  require_engine_reaches(machine, name(), engine(machine), {&dst_, &src_});
  for (const Tensor* tensor : {&dst_, &src_}) {
    const Indirection* indirection = tensor->indirection().get();
    if (indirection != nullptr && indirection->kind == Indirection::Kind::kColumns &&
        engine(machine) == EngineKind::kGpsimd) {
      refuse("indirect-operand", {.rule = "tensor_copy by an index runs on vector or scalar",
                                  .here = "engine gpsimd",
                                  .fix = "leave `engine` out"});
    }
  }
}

void TensorCopy::access(AccessList& list) const {
  list.read(src_);
  list.write(dst_);
}

void TensorCopy::execute(CoreState& core) const {
  const bool through_float32 =
      dst_.dtype() != src_.dtype() ||
      (engine(core.machine()) == EngineKind::kScalar && !core.machine().legality.scalar_copy_exact);
  // Rows of one memory may overlap; then the source must leave it before dst is written.
  const bool may_overlap = dst_.buffer()->storage == src_.buffer()->storage;
  const TileRows out(dst_), in(src_);
  for_each_block(dst_.partitions(), out.row_elements(), 0.5, [&](const Block& block) {
    if (through_float32) {
      const float* x = in.read(block, 0);
      if (may_overlap) {
        const std::size_t count = in.elements(block);
        x = std::copy_n(x, count, scratch<float>(1, count)) - count;
      }
      out.write(block, x);
    } else {
      const std::byte* bits = in.read_packed(block, 0);
      if (may_overlap) {
        const std::size_t size = in.elements(block) * size_bytes(src_.dtype());
        bits = std::copy_n(bits, size, scratch<std::byte>(1, size)) - size;
      }
      out.write_packed(block, bits);
    }
  });
}

Cost TensorCopy::cost(const Machine& machine) const {
  const EngineKind engine = this->engine(machine);
  const bool scalar = engine == EngineKind::kScalar;
  const StreamLaw& law = scalar                          ? scalar_copy_law(machine, dst_, src_)
                         : engine == EngineKind::kGpsimd ? machine.core.gpsimd.copy
                                                         : vector_copy_law(machine, dst_, src_);
  Cost cost = stream_cost(machine, engine, law, src_.free_size(), {&dst_, &src_},
                          scalar ? -scalar_psum_credit(machine, src_) : 0.0);
  cost.gap = StartGap::kCopy;
  return cost;
}

}  // namespace trena
