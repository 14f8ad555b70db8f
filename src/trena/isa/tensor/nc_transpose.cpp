#include "trena/isa/tensor/nc_transpose.h"

#include <fmt/format.h>

#include <cmath>

#include "trena/isa/core_state.h"
#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"
#include "trena/isa/tensor/product_work.h"
#include "trena/number/convert.h"

namespace trena {
namespace {

class NcTransposeInstruction final : public InstructionOf<NcTranspose> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "nc_transpose"; }

  EngineKind engine(const Machine& machine) const override {
    if (args_.engine) {
      return resolve_engine(machine, name(), args_.engine);
    }
    const std::int64_t block = machine.core.sbuf.quadrant_partitions;
    const bool vector_block = args_.data.partitions() <= block && args_.data.free_size() <= block;
    const bool tensor_places =
        args_.data.space() == Space::kSbuf && args_.dst.space() == Space::kPsum;
    return vector_block || !tensor_places ? EngineKind::kVector : EngineKind::kTensor;
  }

  void check(const Machine& machine) const override {
    const bool on_tensor = engine(machine) == EngineKind::kTensor;
    if (on_tensor) {
      require_space(name(), "data", args_.data, {Space::kSbuf});
      require_space(name(), "dst", args_.dst, {Space::kPsum});
    } else {
      require_space(name(), "data", args_.data, {Space::kSbuf, Space::kPsum});
      require_space(name(), "dst", args_.dst, {Space::kSbuf, Space::kPsum});
    }
    const std::int64_t limit =
        on_tensor ? machine.core.tensor.rows : machine.core.sbuf.quadrant_partitions;
    if (args_.data.partitions() > limit || args_.data.free_size() > limit) {
      refuse("transpose-size",
             {.rule = fmt::format("nc_transpose on the {} engine has a largest tile",
                                  trena::name(engine(machine))),
              .here = args_.data.describe(),
              .limit = fmt::format("[{}, {}]", limit, limit),
              .fix = "transpose smaller tiles, or use the tensor engine (SBUF to PSUM)"});
    }
    if (args_.dst.partitions() != args_.data.free_size() ||
        args_.dst.free_size() != args_.data.partitions()) {
      refuse("transpose-shape",
             {.rule = "dst is [free size, partitions] of data",
              .here =
                  fmt::format("data is {}, dst is {}", args_.data.describe(), args_.dst.describe()),
              .limit = fmt::format("[{}, {}]", args_.data.free_size(), args_.data.partitions())});
    }
    if (args_.dst.dtype() != args_.data.dtype()) {
      refuse("transpose-dtype", {.rule = "nc_transpose keeps the dtype",
                                 .here = fmt::format("data is {}, dst is {}", args_.data.describe(),
                                                     args_.dst.describe()),
                                 .limit = std::string(trena::name(args_.data.dtype()))});
    }
    require_partition_start(machine, name(), "data", args_.data);
    require_partition_start(machine, name(), "dst", args_.dst);
  }

  void access(AccessList& list) const override {
    list.read(args_.data);
    list.write(args_.dst);
  }

  void execute(CoreState& core) const override {
    std::byte* turned = TileRows(args_.data).read_transposed(args_.data.partitions());
    // The tensor engine of NeuronCore-v2 multiplies by the identity.
    if (engine(core.machine()) == EngineKind::kTensor &&
        !core.machine().legality.matmul_transpose_exact && info(args_.data.dtype()).is_float) {
      poison(turned, static_cast<std::size_t>(args_.dst.partitions()),
             static_cast<std::size_t>(args_.dst.free_size()));
    }
    TileRows(args_.dst).write_packed({0, args_.dst.partitions()}, turned);
  }

  Cost cost(const Machine& machine) const override {
    if (engine(machine) == EngineKind::kTensor) {
      // The data is the stationary operand, an identity of as many columns as data has partitions
      // moves through.
      Cost cost = product_cost(
          machine,
          {.contraction = args_.data.partitions(),
           .stationary_columns = args_.data.free_size(),
           .moving_columns = args_.data.partitions(),
           .dtype = size_bytes(args_.data.dtype()) == 4 ? DType::kFloat32 : DType::kBfloat16,
           .transpose = true});
      cost.gap = StartGap::kTranspose;
      return cost;
    }
    const VectorEngine& vector = machine.core.vector;
    Cost cost =
        stream_cost(machine, EngineKind::kVector, vector.transpose, args_.data.free_size(), {});
    cost.interval = machine.ticks(EngineKind::kVector, vector.transpose_issue_cycles);
    cost.gap = StartGap::kTranspose;
    const auto quadrant = [&](const Tensor& tensor) {
      return static_cast<std::int32_t>(tensor.start_partition() /
                                       machine.core.sbuf.quadrant_partitions);
    };
    cost.route = quadrant(args_.data) << 8 | quadrant(args_.dst);
    cost.reroute = machine.ticks(EngineKind::kVector, vector.transpose_switch_cycles);
    return cost;
  }

 private:
  // 0·Inf and 0·NaN of a product with the identity: a row that holds one becomes NaN as a whole.
  void poison(std::byte* rows, std::size_t count, std::size_t length) const {
    const std::size_t width = size_bytes(args_.data.dtype());
    for (std::byte* row = rows; row < rows + count * length * width; row += length * width) {
      bool poisoned = false;
      for (std::size_t i = 0; i < length; ++i) {
        poisoned = poisoned || !std::isfinite(to_float(args_.data.dtype(), row + i * width));
      }
      for (std::size_t i = 0; poisoned && i < length; ++i) {
        from_float(args_.data.dtype(), std::nanf(""), row + i * width);
      }
    }
  }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(NcTranspose args) {
  return std::make_unique<NcTransposeInstruction>(std::move(args));
}

}  // namespace trena
