#include "trena/machine/validate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <set>

#include "trena/error.h"

namespace trena {
namespace {

class Checks {
 public:
  explicit Checks(std::string_view where) : where_(where) {}

  // `rule` must hold; `here` tells the figures that break it.
  void require(bool holds, std::string_view rule, std::string_view here) const {
    if (!holds) {
      throw Error(ErrorKind::kMachine, "machine-invalid",
                  {.rule = "the figures of a machine fit each other",
                   .here = fmt::format("{}: {}", where_, here),
                   .limit = std::string(rule),
                   .device = {},
                   .fix = {}});
    }
  }

  void equal(std::int64_t a, std::string_view a_name, std::int64_t b,
             std::string_view b_name) const {
    require(a == b, fmt::format("{} = {}", a_name, b_name),
            fmt::format("{} = {}, {} = {}", a_name, a, b_name, b));
  }

  void at_most(std::int64_t a, std::string_view a_name, std::int64_t b,
               std::string_view b_name) const {
    require(a <= b, fmt::format("{} <= {}", a_name, b_name),
            fmt::format("{} = {}, {} = {}", a_name, a, b_name, b));
  }

  // `why` needs a figure that this generation's file need not have.
  void present(double figure, std::string_view key, std::string_view why) const {
    require(!std::isnan(figure), fmt::format("{} needs {}", why, key),
            fmt::format("{} is missing", key));
  }

 private:
  std::string where_;
};

void check_counts(const Machine& machine, const Checks& checks) {
  const Core& core = machine.core;
  checks.equal(machine.hbm.stacks * machine.hbm.cores_per_stack, "hbm.stacks x cores_per_stack",
               machine.chip.cores, "chip.cores");
  checks.equal(core.sbuf.partitions, "core.sbuf.partitions", core.tensor.rows, "core.tensor.rows");
  checks.equal(core.psum.partitions, "core.psum.partitions", core.tensor.columns,
               "core.tensor.columns");
  checks.equal(core.dma.engines * core.dma.partitions_per_engine,
               "core.dma.engines x partitions_per_engine", core.sbuf.partitions,
               "core.sbuf.partitions");
  checks.equal(core.gpsimd.cores * core.gpsimd.partitions_per_core,
               "core.gpsimd.cores x partitions_per_core", core.sbuf.partitions,
               "core.sbuf.partitions");
  bool has_default = false;
  for (const std::int64_t size : machine.chip.logical_core_sizes) {
    checks.at_most(size, "chip.logical_core_sizes", machine.hbm.cores_per_stack,
                   "hbm.cores_per_stack");
    has_default = has_default || size == machine.chip.default_logical_core_size;
  }
  checks.require(has_default, "chip.default_logical_core_size is one of chip.logical_core_sizes",
                 fmt::format("{} is not in [{}]", machine.chip.default_logical_core_size,
                             fmt::join(machine.chip.logical_core_sizes, ", ")));
}

void check_memories(const Machine& machine, const Checks& checks) {
  const Core& core = machine.core;
  const TensorEngine& tensor = core.tensor;
  const Psum& psum = core.psum;
  checks.at_most(core.sbuf.reserved_bytes, "core.sbuf.reserved_bytes", core.sbuf.partition_bytes(),
                 "core.sbuf.partition_kib x 1024");
  checks.at_most(core.sbuf.partition_bytes(), "core.sbuf.partition_kib x 1024",
                 core.sbuf.partition_stride_bytes, "core.sbuf.partition_stride_bytes");
  checks.at_most(psum.banks_per_result, "core.psum.banks_per_result", psum.banks,
                 "core.psum.banks");
  const std::int64_t result_bytes = psum.banks_per_result * psum.bank_bytes;
  checks.at_most(tensor.max_moving_columns * 4, "4 B x core.tensor.max_moving_columns",
                 result_bytes, "core.psum.banks_per_result x bank_bytes");
  checks.at_most(tensor.max_moving_columns_16bit * 2, "2 B x core.tensor.max_moving_columns_16bit",
                 result_bytes, "core.psum.banks_per_result x bank_bytes");
  checks.at_most(tensor.max_stationary_columns, "core.tensor.max_stationary_columns",
                 tensor.columns, "core.tensor.columns");
}

void check_tiles(std::int64_t whole, const std::vector<std::int64_t>& sizes, std::string_view key,
                 const Checks& checks) {
  for (const std::int64_t size : sizes) {
    checks.require(whole % size == 0, fmt::format("{} divide the array", key),
                   fmt::format("{} does not divide {}", size, whole));
  }
}

void check_throttle(const TensorThrottle& throttle, const Checks& checks) {
  if (throttle.ramp) {
    checks.present(throttle.floor, "core.tensor.throttle.floor", "a ramp");
    checks.present(throttle.ramp_ns, "core.tensor.throttle.ramp_ns", "a ramp");
    checks.present(throttle.window_ns, "core.tensor.throttle.window_ns", "a ramp");
    checks.present(throttle.threshold, "core.tensor.throttle.threshold", "a ramp");
    checks.require(throttle.floor > 0, "core.tensor.throttle.floor > 0", "the floor is 0");
  }
  checks.require(throttle.sustained_level > 0, "core.tensor.throttle.sustained_level > 0",
                 "the sustained level is 0");
  if (throttle.sustained_level < 1) {
    checks.present(throttle.sustained_window_ns, "core.tensor.throttle.sustained_window_ns",
                   "a sustained limit");
    checks.present(throttle.sustained_restore_ns, "core.tensor.throttle.sustained_restore_ns",
                   "a sustained limit");
  }
}

void check_tables(const ScalarEngine& scalar, const Checks& checks) {
  std::set<std::string> seen;
  for (const auto& [set, functions] : scalar.tables) {
    for (const std::string& function : functions) {
      checks.require(seen.insert(function).second, "a function is in one set of core.scalar.tables",
                     fmt::format("{} is in a second one, {}", function, set));
    }
  }
}

// Instructions whose time rests on figures that older generations lack.
void check_instructions(const Machine& machine, const Checks& checks) {
  const Core& core = machine.core;
  const Legality& legality = machine.legality;
  const auto needs = [&](bool there, double figure, std::string_view key, std::string_view why) {
    if (there) {
      checks.present(figure, key, why);
    }
  };
  needs(legality.has("exponential"), core.vector.exponential.offset_cycles,
        "core.vector.exponential", "exponential");
  needs(legality.has("quantize_mx"), core.vector.quantize_mx.offset_cycles,
        "core.vector.quantize_mx", "quantize_mx");
  needs(legality.has("rand2"), core.vector.random_uniform.offset_cycles,
        "core.vector.random_uniform", "rand2");
  needs(legality.has("nc_matmul_mx"), core.tensor.stationary_cycles_per_column_mx,
        "core.tensor.stationary_cycles_per_column_mx", "nc_matmul_mx");
  needs(legality.allows("tensor_copy", EngineKind::kScalar), core.scalar.copy.offset_cycles,
        "core.scalar.copy", "tensor_copy on the scalar engine");
  needs(legality.has("sendrecv"), machine.pair.sendrecv_ns, "pair.sendrecv_ns", "sendrecv");
  needs(legality.has("core_barrier"), machine.pair.barrier_ns, "pair.barrier_ns", "core_barrier");
  needs(!legality.hwdge_engines.empty(), core.dma.hardware.issue_ns, "core.dma.hardware.issue_ns",
        "hardware descriptor generation");
  needs(core.dma.head_bytes > 0, core.dma.head_bytes_per_ns, "core.dma.head_bytes_per_ns",
        "core.dma.head_bytes");
  needs(core.sbuf.stride.by_sector, core.sbuf.stride.wide_factor, "core.sbuf.stride.wide_factor",
        "a stride rule by sector");
}

}  // namespace

void validate(const Machine& machine, std::string_view where) {
  const Checks checks(where);
  check_counts(machine, checks);
  check_memories(machine, checks);
  check_tiles(machine.core.tensor.rows, machine.core.tensor.row_tile_sizes,
              "core.tensor.row_tile_sizes", checks);
  check_tiles(machine.core.tensor.columns, machine.core.tensor.column_tile_sizes,
              "core.tensor.column_tile_sizes", checks);
  check_throttle(machine.core.tensor.throttle, checks);
  check_tables(machine.core.scalar, checks);
  check_instructions(machine, checks);
}

void validate(const Server& server, std::string_view where) {
  Checks(where).require(!server.machine.empty() && !server.fabric.empty(),
                        "a server names its machine and its fabric", "one of them is empty");
}

void validate(const Fabric& fabric, std::string_view where) {
  const Checks checks(where);
  const std::set<std::string> topologies = {"torus", "ring", "chain", "switch"};
  checks.require(topologies.count(fabric.topology) == 1, "topology is torus, ring, chain or switch",
                 fmt::format("topology = \"{}\"", fabric.topology));
  checks.require(!fabric.dimensions.empty(), "dimensions has a number per axis",
                 "dimensions is empty");
}

}  // namespace trena
