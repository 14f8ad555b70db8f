#include "trena/isa/vector/tensor_copy_predicated.h"

#include <cstring>

#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"
#include "trena/number/convert.h"

namespace trena {

EngineKind TensorCopyPredicated::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

void TensorCopyPredicated::check(const Machine& machine) const {
  engine(machine);
  require_tile(machine, name(), "dst", dst_);
  require_tile(machine, name(), "predicate", predicate_);
  require_dtype(name(), "predicate", predicate_, {DType::kUint8, DType::kUint16, DType::kUint32});
  require_same_partitions(name(), "dst", dst_, "predicate", predicate_);
  require_same_elements(name(), "dst", dst_, "predicate", predicate_);
  if (const Tensor* src = std::get_if<Tensor>(&src_)) {
    require_tile(machine, name(), "src", *src);
    require_same_dtype(name(), "dst", dst_, "src", *src);
    require_same_partitions(name(), "dst", dst_, "src", *src);
    require_same_elements(name(), "dst", dst_, "src", *src);
    require_not_both_psum(name(), "src", *src, "predicate", predicate_);
  }
}

void TensorCopyPredicated::access(AccessList& list) const {
  list.read(predicate_);
  list.read(src_);
  list.add(dst_, AccessKind::kWriteSome);
}

// The bits of a number in dst's type.
std::uint32_t TensorCopyPredicated::number_in_dst() const {
  std::array<std::byte, 4> bytes{};
  from_float(dst_.dtype(), static_cast<float>(std::get<double>(src_)), bytes.data());
  std::uint32_t bits = 0;
  std::memcpy(&bits, bytes.data(), bytes.size());
  return bits;
}

void TensorCopyPredicated::execute(CoreState&) const {
  const Tensor* src = std::get_if<Tensor>(&src_);
  const TileRows out(dst_), predicate(predicate_), in(src != nullptr ? *src : dst_);
  const std::uint32_t number = src != nullptr ? 0 : number_in_dst();
  const bool was_written = is_written(dst_);
  const auto block_of = [&](const Block& block) {
    const std::size_t count = out.elements(block);
    const std::uint32_t* chosen = predicate.read_bits(block, 0);
    const std::uint32_t* x = src != nullptr ? in.read_bits(block, 1) : nullptr;
    const std::uint32_t* old = out.read_bits(block, 2);
    auto* z = scratch<std::uint32_t>(3, count);
    for (std::size_t i = 0; i < count; ++i) {
      const bool copies = (chosen[i] != 0) != reverse_;
      z[i] = copies ? (x != nullptr ? x[i] : number) : old[i];
    }
    out.write_bits(block, z);
    if (!was_written) {
      auto* mask = scratch<std::uint32_t>(4, count);
      for (std::size_t i = 0; i < count; ++i) {
        mask[i] = (chosen[i] != 0) != reverse_ ? 1 : 0;
      }
      out.mark_written(block, mask, *dst_.buffer()->storage);
    }
  };
  // Written bits of neighbours share words: one thread.
  const double cost_per_element = was_written ? 1.5 : 0.0;
  for_each_block(dst_.partitions(), out.row_elements(), cost_per_element, block_of);
}

Cost TensorCopyPredicated::cost(const Machine& machine) const {
  const VectorEngine& vector = machine.core.vector;
  const Tensor* src = std::get_if<Tensor>(&src_);
  const bool both_sbuf =
      src != nullptr && src->space() == Space::kSbuf && predicate_.space() == Space::kSbuf;
  return stream_cost(machine, EngineKind::kVector,
                     both_sbuf ? vector.predicated_sbuf : vector.predicated, dst_.free_size(),
                     {&dst_, &predicate_});
}

}  // namespace trena
