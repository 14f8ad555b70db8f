#include "trena/isa/gpsimd/iota.h"

#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"

namespace trena {

EngineKind Iota::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

void Iota::check(const Machine& machine) const {
  engine(machine);
  require_space(name(), "dst", dst_, {Space::kSbuf});
  require_tile(machine, name(), "dst", dst_);
  pattern_.check(name(), dst_);
}

void Iota::access(AccessList& list) const { list.write(dst_); }

void Iota::execute(CoreState&) const {
  const TileRows out(dst_);
  const std::vector<std::int32_t> first = pattern_.first_row();
  for_each_block(dst_.partitions(), first.size(), 1.0, [&](const Block& block) {
    auto* values = scratch<std::int32_t>(0, out.elements(block));
    std::int32_t* next = values;
    for (std::int64_t p = block.first; p < block.first + block.partitions; ++p) {
      const std::uint32_t add = pattern_.channel(p);
      for (const std::int32_t value : first) {
        *next++ = static_cast<std::int32_t>(static_cast<std::uint32_t>(value) + add);
      }
    }
    out.write_int32(block, values);
  });
}

Cost Iota::cost(const Machine& machine) const {
  return stream_cost(machine, EngineKind::kGpsimd, machine.core.gpsimd.affine, dst_.free_size(),
                     {&dst_});
}

}  // namespace trena
