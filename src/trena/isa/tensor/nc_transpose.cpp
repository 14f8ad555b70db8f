#include "trena/isa/tensor/nc_transpose.h"

#include <fmt/format.h>

#include <cmath>

#include "trena/isa/core_state.h"
#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"
#include "trena/isa/tensor/product_work.h"
#include "trena/number/convert.h"
#include "trena/number/transpose.h"

namespace trena {

EngineKind NcTranspose::engine(const Machine& machine) const {
  if (engine_) {
    return resolve_engine(machine, name(), engine_);
  }
  const std::int64_t block = machine.core.sbuf.quadrant_partitions;
  const bool vector_block = data_.partitions() <= block && data_.free_size() <= block;
  const bool tensor_places = data_.space() == Space::kSbuf && dst_.space() == Space::kPsum;
  return vector_block || !tensor_places ? EngineKind::kVector : EngineKind::kTensor;
}

void NcTranspose::check(const Machine& machine) const {
  const bool on_tensor = engine(machine) == EngineKind::kTensor;
  if (on_tensor) {
    require_space(name(), "data", data_, {Space::kSbuf});
    require_space(name(), "dst", dst_, {Space::kPsum});
  } else {
    require_space(name(), "data", data_, {Space::kSbuf, Space::kPsum});
    require_space(name(), "dst", dst_, {Space::kSbuf, Space::kPsum});
  }
  const std::int64_t limit =
      on_tensor ? machine.core.tensor.rows : machine.core.sbuf.quadrant_partitions;
  if (data_.partitions() > limit || data_.free_size() > limit) {
    refuse("transpose-size",
           {.rule = fmt::format("nc_transpose on the {} engine has a largest tile",
                                trena::name(engine(machine))),
            .here = data_.describe(),
            .limit = fmt::format("[{}, {}]", limit, limit),
            .fix = "transpose smaller tiles, or use the tensor engine (SBUF to PSUM)"});
  }
  if (dst_.partitions() != data_.free_size() || dst_.free_size() != data_.partitions()) {
    refuse("transpose-shape",
           {.rule = "dst is [free size, partitions] of data",
            .here = fmt::format("data is {}, dst is {}", data_.describe(), dst_.describe()),
            .limit = fmt::format("[{}, {}]", data_.free_size(), data_.partitions())});
  }
  if (dst_.dtype() != data_.dtype()) {
    refuse("transpose-dtype",
           {.rule = "nc_transpose keeps the dtype",
            .here = fmt::format("data is {}, dst is {}", data_.describe(), dst_.describe()),
            .limit = std::string(trena::name(data_.dtype()))});
  }
  require_partition_start(machine, name(), "data", data_);
  require_partition_start(machine, name(), "dst", dst_);
}

void NcTranspose::access(AccessList& list) const {
  list.read(data_);
  list.write(dst_);
}

// 0·Inf and 0·NaN of a product with the identity: a row that holds one becomes NaN as a whole.
void NcTranspose::poison(std::byte* rows, std::size_t count, std::size_t length) const {
  const std::size_t width = size_bytes(data_.dtype());
  for (std::byte* row = rows; row < rows + count * length * width; row += length * width) {
    bool poisoned = false;
    for (std::size_t i = 0; i < length; ++i) {
      poisoned = poisoned || !std::isfinite(to_float(data_.dtype(), row + i * width));
    }
    for (std::size_t i = 0; poisoned && i < length; ++i) {
      from_float(data_.dtype(), std::nanf(""), row + i * width);
    }
  }
}

void NcTranspose::execute(CoreState& core) const {
  const std::size_t width = size_bytes(data_.dtype());
  const auto rows = static_cast<std::size_t>(data_.partitions());
  const auto columns = static_cast<std::size_t>(data_.free_size());
  const TileRows in(data_), out(dst_);
  auto* turned = scratch<std::byte>(1, rows * columns * width);
  transpose_bits(width, in.read_packed({0, data_.partitions()}, 0), columns * width, rows, columns,
                 turned);
  // The tensor engine of NeuronCore-v2 multiplies by the identity.
  if (engine(core.machine()) == EngineKind::kTensor &&
      !core.machine().legality.matmul_transpose_exact && info(data_.dtype()).is_float) {
    poison(turned, columns, rows);
  }
  out.write_packed({0, dst_.partitions()}, turned);
}

Cost NcTranspose::cost(const Machine& machine) const {
  if (engine(machine) == EngineKind::kTensor) {
    // The data is the stationary operand, an identity of as many columns as data has partitions
    // moves through.
    Cost cost = product_cost(
        machine, {.contraction = data_.partitions(),
                  .stationary_columns = data_.free_size(),
                  .moving_columns = data_.partitions(),
                  .dtype = size_bytes(data_.dtype()) == 4 ? DType::kFloat32 : DType::kBfloat16,
                  .transpose = true});
    cost.gap = StartGap::kTranspose;
    return cost;
  }
  const VectorEngine& vector = machine.core.vector;
  Cost cost = stream_cost(machine, EngineKind::kVector, vector.transpose, data_.free_size(), {});
  cost.interval = machine.ticks(EngineKind::kVector, vector.transpose_issue_cycles);
  cost.gap = StartGap::kTranspose;
  const auto quadrant = [&](const Tensor& tensor) {
    return static_cast<std::int32_t>(tensor.start_partition() /
                                     machine.core.sbuf.quadrant_partitions);
  };
  cost.route = quadrant(data_) << 8 | quadrant(dst_);
  cost.reroute = machine.ticks(EngineKind::kVector, vector.transpose_switch_cycles);
  return cost;
}

}  // namespace trena
