#include "trena/isa/vector/reciprocal.h"

#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"

namespace trena {

EngineKind Reciprocal::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

void Reciprocal::check(const Machine& machine) const {
  engine(machine);
  require_tile(machine, name(), "dst", dst_);
  require_tile(machine, name(), "data", data_);
  require_same_partitions(name(), "dst", dst_, "data", data_);
  require_same_elements(name(), "dst", dst_, "data", data_);
}

void Reciprocal::access(AccessList& list) const {
  list.read(data_);
  list.write(dst_);
}

void Reciprocal::execute(CoreState&) const {
  const TileRows out(dst_), in(data_);
  for_each_block(dst_.partitions(), out.row_elements(), 1.0, [&](const Block& block) {
    const float* x = in.read(block, 0);
    float* z = out.target(block, 2, {x});
    apply_row(MathFunction::kReciprocal, x, z, out.elements(block));
    out.write(block, z);
  });
}

Cost Reciprocal::cost(const Machine& machine) const {
  return stream_cost(machine, EngineKind::kVector, machine.core.vector.reciprocal,
                     data_.free_size(), {&dst_, &data_});
}

}  // namespace trena
