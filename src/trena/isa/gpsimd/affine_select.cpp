#include "trena/isa/gpsimd/affine_select.h"

#include <cstring>

#include "trena/isa/operators.h"
#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"
#include "trena/number/convert.h"

namespace trena {

EngineKind AffineSelect::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

void AffineSelect::check(const Machine& machine) const {
  engine(machine);
  require_space(name(), "dst", dst_, {Space::kSbuf});
  require_space(name(), "on_true_tile", on_true_, {Space::kSbuf});
  require_tile(machine, name(), "dst", dst_);
  require_tile(machine, name(), "on_true_tile", on_true_);
  require_same_partitions(name(), "dst", dst_, "on_true_tile", on_true_);
  require_same_elements(name(), "dst", dst_, "on_true_tile", on_true_);
  require_one_of(name(), "cmp_op", compare_,
                 {AluOp::kEqual, AluOp::kNotEqual, AluOp::kGreaterEqual, AluOp::kGreater,
                  AluOp::kLessEqual, AluOp::kLess});
  pattern_.check(name(), dst_);
}

void AffineSelect::access(AccessList& list) const {
  list.read(on_true_);
  list.write(dst_);
}

// Equal types keep their bits; others go through float32.
void AffineSelect::execute(CoreState&) const {
  const TileRows out(dst_), in(on_true_);
  const std::vector<std::int32_t> first = pattern_.first_row();
  const bool exact = dst_.dtype() == on_true_.dtype();
  std::array<std::byte, 4> bytes{};
  from_float(dst_.dtype(), on_false_, bytes.data());
  std::uint32_t false_bits = 0;
  std::memcpy(&false_bits, bytes.data(), bytes.size());
  for_each_block(dst_.partitions(), first.size(), 2.0, [&](const Block& block) {
    const std::size_t count = out.elements(block);
    auto* mask = scratch<std::int32_t>(0, count);
    for (std::int64_t p = 0; p < block.partitions; ++p) {
      // value compare 0 is first_row compare -(channel) only without wrap-around: add, then
      // compare.
      std::int32_t* row = mask + static_cast<std::size_t>(p) * first.size();
      const std::uint32_t add = pattern_.channel(block.first + p);
      for (std::size_t i = 0; i < first.size(); ++i) {
        row[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(first[i]) + add);
      }
    }
    const std::int32_t zero = 0;
    binary_row_int32(compare_, mask, 1, &zero, 0, mask, count);
    if (exact) {
      const std::uint32_t* x = in.read_bits(block, 1);
      auto* z = scratch<std::uint32_t>(2, count);
      for (std::size_t i = 0; i < count; ++i) {
        z[i] = mask[i] != 0 ? x[i] : false_bits;
      }
      out.write_bits(block, z);
    } else {
      const float* x = in.read(block, 1);
      auto* z = scratch<float>(2, count);
      for (std::size_t i = 0; i < count; ++i) {
        z[i] = mask[i] != 0 ? x[i] : on_false_;
      }
      out.write(block, z);
    }
  });
}

Cost AffineSelect::cost(const Machine& machine) const {
  return stream_cost(machine, EngineKind::kGpsimd, machine.core.gpsimd.affine, dst_.free_size(),
                     {&dst_, &on_true_});
}

}  // namespace trena
