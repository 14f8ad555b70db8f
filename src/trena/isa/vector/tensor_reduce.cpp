#include "trena/isa/vector/tensor_reduce.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "trena/isa/operators.h"
#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"
#include "trena/isa/vector/copy_law.h"

namespace trena {

EngineKind TensorReduce::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

// Elements of one result.
std::int64_t TensorReduce::window() const {
  std::int64_t count = 1;
  for (const std::int64_t axis : axes_) {
    count *= data_.size(static_cast<int>(axis < 0 ? axis + data_.rank() : axis));
  }
  return count;
}

void TensorReduce::check_axes() const {
  std::vector<std::int64_t> axes = axes_;
  for (std::int64_t& axis : axes) {
    axis += axis < 0 ? data_.rank() : 0;
  }
  std::sort(axes.begin(), axes.end());
  const auto first = data_.rank() - static_cast<std::int64_t>(axes.size());
  bool trailing = !axes.empty() && first >= 1;
  for (std::size_t i = 0; i < axes.size() && trailing; ++i) {
    trailing = axes[i] == first + static_cast<std::int64_t>(i);
  }
  if (!trailing) {
    refuse("reduce-axes",
           {.rule =
                "the axes are the last dimensions of `data`, up to its final one; dimension 0, the "
                "partitions, is never among them",
            .here = fmt::format("axis [{}] of {}", fmt::join(axes_, ", "), data_.describe()),
            .limit = fmt::format("the last 1 to {} of its {} dimensions", data_.rank() - 1,
                                 data_.rank()),
            .fix = "permute the free dimensions, or view them in another order with .ap()"});
  }
}

void TensorReduce::check(const Machine& machine) const {
  require_tile(machine, name(), "dst", dst_);
  require_tile(machine, name(), "data", data_);
  require_same_partitions(name(), "dst", dst_, "data", data_);
  require_operator(machine, name(), "op", op_, engine(machine));
  require_reduction(name(), "op", op_);
  check_axes();
  const std::int64_t results = data_.free_size() / window();
  if (dst_.free_size() != results) {
    refuse("element-mismatch",
           {.rule = "dst has one element for every window of `data` that is reduced",
            .here = fmt::format("`dst` is {}, `data` is {}, axis [{}]", dst_.describe(),
                                data_.describe(), fmt::join(axes_, ", ")),
            .limit = fmt::format("{} elements per partition", results)});
  }
  if (is_bitvec(op_)) {
    require_integer(name(), "dst", dst_);
    require_integer(name(), "data", data_);
    if (negate_) {
      refuse("reduce-negate", {.rule = "negate multiplies by -1: bitvec operators have no sign",
                               .here = fmt::format("op=nl.{}, negate=True", trena::name(op_)),
                               .limit = "negate=False"});
    }
  }
}

void TensorReduce::access(AccessList& list) const {
  list.read(data_);
  list.write(dst_);
}

void TensorReduce::execute(CoreState&) const {
  const TileRows out(dst_), in(data_);
  const auto window = static_cast<std::size_t>(this->window());
  for_each_block(dst_.partitions(), in.row_elements(), 1.0, [&](const Block& block) {
    const std::size_t results = out.elements(block);
    if (is_bitvec(op_)) {
      const std::uint32_t* x = in.read_bits(block, 0);
      auto* z = scratch<std::uint32_t>(1, results);
      for (std::size_t i = 0; i < results; ++i) {
        z[i] = reduce_row_uint32(op_, x + i * window, window);
      }
      out.write_bits(block, z);
      return;
    }
    const float* x = in.read(block, 0);
    auto* z = scratch<float>(1, results);
    const float sign = negate_ ? -1.0F : 1.0F;
    for (std::size_t i = 0; i < results; ++i) {
      z[i] = sign * reduce_row(op_, x + i * window, window);
    }
    out.write(block, z);
  });
}

Cost TensorReduce::cost(const Machine& machine) const {
  const VectorEngine& vector = machine.core.vector;
  const bool fast =
      streams_fast(machine, {&dst_, &data_}) && (op_ == AluOp::kAdd || op_ == AluOp::kMaximum);
  return stream_cost(machine, EngineKind::kVector, fast ? vector.reduce_16bit : vector.reduce,
                     data_.free_size(), {&data_});
}

}  // namespace trena
