#include "trena/isa/vector/tensor_copy.h"

#include "trena/isa/core_state.h"
#include "trena/isa/stream.h"
#include "trena/isa/vector/copy_law.h"
#include "trena/memory/rows.h"
#include "trena/number/threads.h"

namespace trena {

EngineKind TensorCopy::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), engine_);
}

void TensorCopy::check(const Machine& machine) const {
  require_space(name(), "dst", dst_, {Space::kSbuf, Space::kPsum});
  require_space(name(), "src", src_, {Space::kSbuf, Space::kPsum});
  require_same_tile(machine, name(), "dst", dst_, "src", src_);
  require_engine_reaches(machine, name(), engine(machine), {&dst_, &src_});
}

void TensorCopy::access(AccessList& list) const {
  list.read(src_);
  list.write(dst_);
}

void TensorCopy::execute(CoreState& core) const {
  const bool through_float32 =
      dst_.dtype() != src_.dtype() ||
      (engine(core.machine()) == EngineKind::kScalar && !core.machine().legality.scalar_copy_exact);
  parallel_for_partitions(
      static_cast<std::size_t>(dst_.partitions()), static_cast<std::size_t>(src_.free_bytes()),
      [&](std::size_t begin, std::size_t end) {
        std::vector<float> scratch;
        std::vector<std::byte> bits(
            static_cast<std::size_t>(through_float32 ? 0 : src_.free_bytes()));
        for (auto p = static_cast<std::int64_t>(begin); p < static_cast<std::int64_t>(end); ++p) {
          if (through_float32) {
            write_row(dst_, p, row(src_, p, scratch));
          } else {
            read_row_bits(src_, p, bits.data());
            write_row_bits(dst_, p, bits.data());
          }
        }
      });
}

Cost TensorCopy::cost(const Machine& machine) const {
  const EngineKind engine = this->engine(machine);
  const std::int64_t elements = src_.free_size();
  switch (engine) {
    case EngineKind::kScalar:
      return stream_cost(machine, engine, scalar_copy_law(machine, dst_, src_), elements,
                         {&dst_, &src_}, -scalar_psum_credit(machine, src_));
    case EngineKind::kGpsimd:
      return stream_cost(machine, engine, machine.core.gpsimd.copy, elements, {&dst_, &src_});
    default:
      return stream_cost(machine, engine, vector_copy_law(machine, dst_, src_), elements,
                         {&dst_, &src_});
  }
}

}  // namespace trena
