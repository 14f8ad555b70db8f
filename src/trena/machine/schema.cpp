#include "trena/machine/schema.h"

namespace trena {
namespace {

constexpr Range kGhz{0.01, 100};
constexpr Range kCycles{0, 1e6};
constexpr Range kCount{0, 1e6};
constexpr Range kPositive{1, 1e6};
constexpr Range kBytes{1, 1e12};
constexpr Range kNs{0, 1e9};
constexpr Range kRate{1e-3, 1e6};
constexpr Range kPart{0, 1};
constexpr Range kAny{0, 0};  // for what holds no number

// The key is the text of the member's path, so the two cannot drift apart.
#define TRENA_ROW(path, unit, range, since, is_name, meaning) \
  {#path, +[](R& root) -> auto& { return root.path; }, unit, range, since, is_name, meaning}
#define NAME(path, meaning) TRENA_ROW(path, "", kPositive, 0, true, meaning)
#define FIGURE(path, unit, range, meaning) TRENA_ROW(path, unit, range, 0, false, meaning)
#define SINCE(generation, path, unit, range, meaning) \
  TRENA_ROW(path, unit, range, generation, false, meaning)
#define FLAG(path, meaning) TRENA_ROW(path, "", kAny, 0, false, meaning)
#define LIST(path, meaning) TRENA_ROW(path, "", kPositive, 0, false, meaning)
#define LAW(path, meaning) TRENA_ROW(path, "cycles", kCycles, 0, false, meaning)
#define LAW_SINCE(generation, path, meaning) \
  TRENA_ROW(path, "cycles", kCycles, generation, false, meaning)

std::vector<Field<Machine>> machine_rows() {
  using R = Machine;
  return {
      NAME(chip.name, "What users type"),
      NAME(chip.product, "The vendor's name of the chip"),
      NAME(chip.core, "The vendor's name of its cores"),
      NAME(chip.generation, "NKI's generation number: 2, 3 or 4"),
      NAME(chip.aliases, "Other names it is found by"),
      FIGURE(chip.cores, "", kPositive, "Physical cores of a chip"),
      FIGURE(chip.links, "", kCount, "Chip-to-chip ports"),
      LIST(chip.logical_core_sizes, "Physical cores that may form one logical core"),
      FIGURE(chip.default_logical_core_size, "", kPositive, "The usual size of a logical core"),

      FIGURE(hbm.stacks, "", kPositive, "HBM stacks of a chip"),
      FIGURE(hbm.cores_per_stack, "", kPositive, "Cores that share one stack"),
      FIGURE(hbm.stack_gib, "GiB", kRate, "Capacity of one stack"),
      FIGURE(hbm.stack_gbs, "GB/s", kRate, "Bandwidth of one stack"),
      FIGURE(hbm.core_gbs, "GB/s", kRate, "What the DMA engines of one core can draw together"),

      FIGURE(core.tensor.clock_ghz, "GHz", kGhz, "Clock of the PE array"),
      FIGURE(core.tensor.rows, "", kPositive, "Rows of the array: the contraction"),
      FIGURE(core.tensor.columns, "", kPositive, "Columns of the array: partitions of the result"),
      FIGURE(core.tensor.max_stationary_columns, "", kPositive, "Free size of the stationary tile"),
      FIGURE(core.tensor.max_moving_columns, "", kPositive,
             "Free size of the moving tile, fp32 result"),
      FIGURE(core.tensor.max_moving_columns_16bit, "", kPositive,
             "Free size of the moving tile, 16-bit result"),
      FIGURE(core.tensor.min_moving_columns, "", kCount, "A shorter moving tile costs this much"),
      FIGURE(core.tensor.moving_cycles_per_column, "cycles", kCycles,
             "One pass of a moving column, operands up to 16 bit and tf32"),
      FIGURE(core.tensor.moving_cycles_per_column_fp32, "cycles", kCycles,
             "One pass of an fp32 moving column"),
      FIGURE(core.tensor.stationary_cycles_per_column, "cycles", kCycles,
             "Loading a stationary column, operands up to 16 bit and tf32"),
      FIGURE(core.tensor.stationary_cycles_per_column_fp32, "cycles", kCycles,
             "Loading an fp32 stationary column, one pass"),
      FIGURE(core.tensor.stationary_cycles_per_column_fp32_transpose, "cycles", kCycles,
             "Loading an fp32 stationary column for a transpose"),
      SINCE(4, core.tensor.stationary_cycles_per_column_mx, "cycles", kCycles,
            "Loading an MX stationary column"),
      FIGURE(core.tensor.fp32_passes, "", kPositive, "Passes of an fp32 product"),
      FIGURE(core.tensor.fp32_passes_onezero, "", kPositive,
             "Passes when one fp32 operand holds only 0 and 1"),
      FIGURE(core.tensor.fp32_passes_transpose, "", kPositive, "Passes of an fp32 transpose"),
      FIGURE(core.tensor.matmul_fixed_cycles, "cycles", kCycles,
             "Latency of MATMUL that the throttle leaves alone"),
      FIGURE(core.tensor.matmul_throttled_cycles, "cycles", kCycles,
             "Latency of MATMUL that the throttle stretches"),
      FIGURE(core.tensor.load_fixed_cycles, "cycles", kCycles,
             "Latency of LDWEIGHTS that the throttle leaves alone"),
      FIGURE(core.tensor.load_throttled_cycles, "cycles", kCycles,
             "Latency of LDWEIGHTS that the throttle stretches"),
      FIGURE(core.tensor.group_overhead_cycles, "cycles", kCycles, "Per product, all its passes"),
      FIGURE(core.tensor.min_issue_cycles, "cycles", kCycles, "Between two instructions"),
      FIGURE(core.tensor.double_row_depth, "", kPositive,
             "Values a cell contracts per cycle in fp8 double-row mode; 1 = no such mode"),
      FIGURE(core.tensor.mx_depth, "", kPositive,
             "Values a cell contracts per cycle with MX operands; 1 = no MX"),
      LIST(core.tensor.row_tile_sizes, "Row counts of independent sub-arrays"),
      LIST(core.tensor.column_tile_sizes, "Column counts of independent sub-arrays"),

      FLAG(core.tensor.throttle.ramp, "After idle the array works slower for a while"),
      SINCE(3, core.tensor.throttle.floor, "of full rate", kPart, "Rate after idle"),
      SINCE(3, core.tensor.throttle.ramp_ns, "ns", kNs, "Busy time until full rate"),
      SINCE(3, core.tensor.throttle.window_ns, "ns", kNs, "Utilisation is judged over this long"),
      SINCE(3, core.tensor.throttle.threshold, "", kPart,
            "Utilisation under which the cap returns"),
      FLAG(core.tensor.throttle.counts_array_area,
           "Utilisation counts rows x columns in use, not only time"),
      FIGURE(core.tensor.throttle.sustained_level, "of full rate", kPart,
             "Average rate allowed under dense work; 1 = no limit"),
      SINCE(kOptional, core.tensor.throttle.sustained_window_ns, "ns", kNs,
            "The sustained limit averages over this long"),
      SINCE(kOptional, core.tensor.throttle.sustained_restore_ns, "ns", kNs,
            "Idle time that restores the full budget"),

      FIGURE(core.vector.clock_ghz, "GHz", kGhz, "Clock"),
      FIGURE(core.vector.lanes, "", kPositive, "Partitions worked on at once"),
      FIGURE(core.vector.min_issue_cycles, "cycles", kCycles, "Least time between instructions"),
      FIGURE(core.vector.issue_overhead_cycles, "cycles", kCycles,
             "Set-up that the next instruction cannot hide"),
      FIGURE(core.vector.operand_cycles, "cycles", kCycles, "Completion, per [P,1] operand"),
      FIGURE(core.vector.tensor_seed_cycles, "cycles", kCycles,
             "Completion of a scan whose initial value is a tensor"),
      FIGURE(core.vector.accumulator_cycles, "cycles", kCycles, "Reading an accumulator out"),
      FIGURE(core.vector.transpose_issue_cycles, "cycles", kCycles,
             "Between two 32x32 blocks of one quadrant pair"),
      FIGURE(core.vector.transpose_switch_cycles, "cycles", kCycles,
             "Between two 32x32 blocks of different quadrant pairs"),
      LAW(core.vector.copy, "tensor_copy, tensor_scalar from SBUF to SBUF"),
      LAW(core.vector.copy_16bit, "The same, 16-bit and contiguous"),
      LAW(core.vector.copy_16bit_slow, "The same, 16-bit, strided or one side in PSUM"),
      LAW(core.vector.copy_widen, "The same, 16-bit to 32-bit"),
      LAW(core.vector.copy_psum, "The same, a side in PSUM"),
      LAW(core.vector.tensor_tensor, "Two tensors, both in SBUF"),
      LAW(core.vector.tensor_tensor_16bit, "Two tensors, both in SBUF, 16-bit"),
      LAW(core.vector.tensor_tensor_psum, "Two tensors, one in PSUM"),
      LAW(core.vector.reduce, "tensor_reduce, per input element"),
      LAW(core.vector.reduce_16bit, "tensor_reduce, 16-bit in and out, add or max"),
      LAW(core.vector.reciprocal, "reciprocal"),
      LAW(core.vector.scan, "tensor_tensor_scan"),
      LAW(core.vector.cumulative, "tensor_scalar_cumulative"),
      LAW(core.vector.predicated, "Predicated copy and selects, an operand in PSUM or scalar"),
      LAW(core.vector.predicated_sbuf, "Predicated copy and selects, operands in SBUF"),
      LAW(core.vector.shuffle, "nc_stream_shuffle"),
      LAW(core.vector.transpose, "One 32x32 block, N = 32"),
      LAW(core.vector.memset, "memset, per output element"),
      LAW(core.vector.memset_zero_16bit, "memset to zero, 16-bit"),
      LAW(core.vector.bn_stats, "bn_stats"),
      LAW(core.vector.bn_aggregate, "bn_aggr"),
      LAW(core.vector.max8, "max8, nc_match_replace8"),
      LAW(core.vector.find_index8, "nc_find_index8"),
      LAW(core.vector.dropout, "dropout"),
      LAW(core.vector.range_select, "range_select"),
      LAW(core.vector.random, "rng, per output element"),
      LAW_SINCE(4, core.vector.random_uniform, "rand2, per output element"),
      LAW_SINCE(4, core.vector.exponential, "exponential"),
      LAW_SINCE(4, core.vector.quantize_mx, "quantize_mx"),

      FIGURE(core.scalar.clock_ghz, "GHz", kGhz, "Clock"),
      FIGURE(core.scalar.lanes, "", kPositive, "Partitions worked on at once"),
      FIGURE(core.scalar.min_issue_cycles, "cycles", kCycles, "Least time between instructions"),
      FIGURE(core.scalar.issue_overhead_cycles, "cycles", kCycles,
             "Set-up that the next instruction cannot hide"),
      FIGURE(core.scalar.operand_cycles, "cycles", kCycles, "Completion, per [P,1] operand"),
      FIGURE(core.scalar.activation_operands, "", kCount,
             "[P,1] operand reads that the offset of activation already contains"),
      FIGURE(core.scalar.psum_credit_cycles, "cycles", kCycles,
             "Completion is this much earlier when the source is PSUM"),
      FIGURE(core.scalar.table_load_cycles, "cycles", kCycles,
             "Switching the set of activation functions"),
      FIGURE(core.scalar.accumulator_issue_cycles, "cycles", kCycles,
             "Reading the reduce registers: until the next instruction"),
      FIGURE(core.scalar.accumulator_cycles, "cycles", kCycles,
             "Reading the reduce registers: completion"),
      FIGURE(core.scalar.accumulator_ready_cycles, "cycles", kCycles,
             "Offset of an activation until its sum may be read out"),
      LAW_SINCE(3, core.scalar.copy, "tensor_copy"),
      LAW_SINCE(3, core.scalar.copy_16bit, "tensor_copy, 16-bit"),
      LAW(core.scalar.activation, "activation without [P,1] operands"),
      LAW(core.scalar.activation_16bit, "activation without [P,1] operands, 16-bit"),
      LAW(core.scalar.silu, "activation with silu"),
      LIST(core.scalar.tables, "Activation functions that are resident together"),

      FIGURE(core.gpsimd.clock_ghz, "GHz", kGhz, "Clock"),
      FIGURE(core.gpsimd.lanes, "", kPositive, "32-bit lanes"),
      FIGURE(core.gpsimd.cores, "", kPositive, "Vector processors of the engine"),
      FIGURE(core.gpsimd.partitions_per_core, "", kPositive, "Partitions one of them sees"),
      FIGURE(core.gpsimd.gather_index_cycles, "cycles", kCycles,
             "local_gather: per index, besides one per element"),
      FIGURE(core.gpsimd.gather_group_elements, "", kPositive,
             "nc_n_gather: elements of one group of instructions"),
      FIGURE(core.gpsimd.min_issue_cycles, "cycles", kCycles, "Least time between instructions"),
      FIGURE(core.gpsimd.issue_overhead_cycles, "cycles", kCycles,
             "Set-up that the next instruction cannot hide"),
      LAW(core.gpsimd.affine, "iota, affine_select"),
      LAW(core.gpsimd.copy, "tensor_copy, memset"),
      LAW(core.gpsimd.tensor_tensor, "tensor_tensor"),
      LAW(core.gpsimd.tensor_scalar, "tensor_scalar"),
      LAW(core.gpsimd.rsqrt, "rsqrt by tensor_scalar"),
      LAW(core.gpsimd.partition_reduce, "tensor_partition_reduce"),
      LAW(core.gpsimd.gather, "local_gather before its size factor, nc_n_gather"),
      LAW(core.gpsimd.topk, "topk, N = 4 n + k"),
      LAW(core.gpsimd.search, "sequence_bounds, nonzero_with_count"),
      LAW(core.gpsimd.random, "rng and its state"),

      FIGURE(core.sequencer.clock_ghz, "GHz", kGhz, "Clock, and the profiler's cycle"),
      FIGURE(core.sequencer.registers, "", kPositive, "Registers of each engine's sequencer"),
      FIGURE(core.sequencer.register_move_cycles, "cycles", kCycles, "Setting a register"),
      FIGURE(core.sequencer.register_load_cycles, "cycles", kCycles, "Loading one from memory"),
      FIGURE(core.sequencer.register_store_cycles, "cycles", kCycles, "Storing one to memory"),
      FIGURE(core.sequencer.branch_cycles, "cycles", kCycles, "Compare and branch"),

      FIGURE(core.sbuf.partitions, "", kPositive, "Partitions"),
      FIGURE(core.sbuf.partition_kib, "KiB", kRate, "Capacity of one partition"),
      FIGURE(core.sbuf.reserved_bytes, "B", kCount, "Of it, what kernels cannot use"),
      FIGURE(core.sbuf.alignment_bytes, "B", kPositive, "Alignment within a partition"),
      FIGURE(core.sbuf.partition_stride_bytes, "B", kBytes, "Distance of partitions, in addresses"),
      FIGURE(core.sbuf.quadrant_partitions, "", kPositive, "Start partitions are multiples of it"),
      FLAG(core.sbuf.vector_gpsimd_exclusive, "Vector and GpSimd never access SBUF at once"),
      FLAG(core.sbuf.stride.by_sector, "A strided access costs by the sectors it touches"),
      FIGURE(core.sbuf.stride.sector_bytes, "B", kPositive, "Sector, and the longest free stride"),
      FIGURE(core.sbuf.stride.slow_factor, "", kRate, "Longer strides take this many times longer"),
      SINCE(3, core.sbuf.stride.wide_from_bytes, "B", kPositive, "Still longer strides cost more"),
      SINCE(3, core.sbuf.stride.wide_to_bytes, "B", kPositive, "... growing until here"),
      SINCE(3, core.sbuf.stride.wide_factor, "", kRate, "... to this factor"),

      FIGURE(core.psum.partitions, "", kPositive, "Partitions"),
      FIGURE(core.psum.banks, "", kPositive, "Banks of a partition"),
      FIGURE(core.psum.bank_bytes, "B", kPositive, "Capacity of a bank"),
      FIGURE(core.psum.alignment_bytes, "B", kPositive, "Alignment within a partition"),
      FIGURE(core.psum.banks_per_result, "", kPositive, "Banks one matmul result may span"),
      FLAG(core.psum.vector_scalar_exclusive, "Vector and scalar never access PSUM at once"),
      FLAG(core.psum.same_bank_exclusive, "Engines on one bank take turns"),

      FIGURE(core.dma.engines, "", kPositive, "DMA engines of a core"),
      FIGURE(core.dma.rings, "", kPositive, "Queues of an engine"),
      FIGURE(core.dma.partitions_per_engine, "", kPositive, "Partitions an engine serves"),
      FIGURE(core.dma.packet_ns, "ns", kNs, "Fixed time of a packet on its engine"),
      FIGURE(core.dma.packet_bytes_per_ns, "B/ns", kRate, "Rate of a packet after its head"),
      FIGURE(core.dma.head_bytes, "B", kCount, "Head of a packet; 0 = none"),
      SINCE(kOptional, core.dma.head_bytes_per_ns, "B/ns", kRate, "Rate of the head"),
      FIGURE(core.dma.engine_bytes_per_ns, "B/ns", kRate, "One engine at its best"),
      FIGURE(core.dma.packet_bytes, "B", kPositive, "Longest packet of compute rings"),
      FIGURE(core.dma.in_flight_per_queue, "", kPositive, "Transfers a queue holds at once"),
      FIGURE(core.dma.service_classes, "", kPositive, "Priorities; 1 = round robin only"),
      FIGURE(core.dma.load.issue_ns, "ns", kNs, "swdge load: between two DMA instructions"),
      FIGURE(core.dma.load.dispatch_ns, "ns", kNs, "swdge load: trigger to first packet"),
      FIGURE(core.dma.load.notify_ns, "ns", kNs, "swdge load: last packet to semaphore"),
      SINCE(kOptional, core.dma.load.trigger_ns, "ns", kNs, "swdge load: the trigger instruction"),
      SINCE(kOptional, core.dma.store.trigger_ns, "ns", kNs,
            "swdge store: the trigger instruction"),
      SINCE(kOptional, core.dma.hardware.issue_row_ns, "ns", kNs,
            "hwdge: of issue_ns, per descriptor past 128"),
      FIGURE(core.dma.store.issue_ns, "ns", kNs, "swdge store: between two DMA instructions"),
      FIGURE(core.dma.store.dispatch_ns, "ns", kNs, "swdge store: trigger to first packet"),
      FIGURE(core.dma.store.notify_ns, "ns", kNs, "swdge store: last packet to semaphore"),
      SINCE(3, core.dma.hardware.issue_ns, "ns", kNs, "hwdge: between two DMA instructions"),
      SINCE(3, core.dma.hardware.dispatch_ns, "ns", kNs, "hwdge: trigger to first packet"),
      SINCE(3, core.dma.hardware.notify_ns, "ns", kNs, "hwdge: last packet to semaphore"),
      FIGURE(core.dma.prepared.issue_ns, "ns", kNs, "Prepared descriptors: trigger instruction"),
      FIGURE(core.dma.prepared.dispatch_ns, "ns", kNs, "Prepared descriptors: to first packet"),
      FIGURE(core.dma.prepared.notify_ns, "ns", kNs, "Prepared descriptors: to semaphore"),
      FIGURE(core.dma.load_base_ns, "ns", kNs, "Load: last packet to bytes in place"),
      FIGURE(core.dma.store_base_ns, "ns", kNs, "Store: last packet to bytes in place"),
      FIGURE(core.dma.indirect_row_ns, "ns", kNs, "swdge: per row gathered or scattered"),
      FIGURE(core.dma.accumulate_rate, "of copy rate", kPart, "dma_compute"),
      FIGURE(core.dma.transpose_rate, "of copy rate", kPart, "dma_transpose from HBM"),
      FIGURE(core.dma.transpose_rate_sbuf, "of copy rate", kPart, "dma_transpose from SBUF"),
      SINCE(3, core.dma.gpsimd_gbs, "GB/s", kRate, "GpSimd's own DMA engines, one direction"),

      FIGURE(core.sync.same_engine_ns, "ns", kNs, "Operands ready to start, same engine"),
      FIGURE(core.sync.copy_ns, "ns", kNs, "Operands ready to start of a copy"),
      FIGURE(core.sync.transpose_ns, "ns", kNs, "Operands ready to start of a transpose"),
      FIGURE(core.sync.compute_ns, "ns", kNs, "Operands ready to start of other instructions"),
      FIGURE(core.sync.dma_issue_ns, "ns", kNs, "Operands ready to start of a DMA instruction"),

      SINCE(3, pair.sendrecv_ns, "ns", kNs, "sendrecv of two cores"),
      SINCE(3, pair.barrier_ns, "ns", kNs, "core_barrier of two cores"),
      SINCE(3, pair.gpsimd_partition_bytes, "B", kPositive,
            "Most bytes per partition of a 32-bit sendrecv by GpSimd"),

      FIGURE(launch.kernel_fixed_ns, "ns", kNs, "Start and stop around a kernel's data flow"),

      LIST(legality.engines, "Instructions of this machine and who runs them"),
      LIST(legality.dtypes, "Element types"),
      LIST(legality.matmul_dtypes, "Operand types of nc_matmul"),
      LIST(legality.scalar_operators, "tensor_scalar operators of the scalar engine"),
      LIST(legality.gpsimd_operators, "tensor_scalar operators GpSimd may be asked for"),
      LIST(legality.hwdge_engines, "Engines that trigger hardware descriptor generation"),
      FLAG(legality.gpsimd_psum, "GpSimd reaches PSUM"),
      FLAG(legality.scalar_copy_exact, "The scalar engine copies equal types bit by bit"),
      FLAG(legality.activation_bias_constant, "activation takes a constant bias"),
      FLAG(legality.activation_reciprocal_bias, "activation with reciprocal takes a bias"),
      FLAG(legality.dma_indirect, "DMA gathers and scatters by index vector"),
      FLAG(legality.dma_priority, "DMA has service classes"),
      FLAG(legality.dma_accumulate_sbuf, "DMA adds into SBUF"),
      FLAG(legality.matmul_double_row, "fp8 double-row mode"),
      FLAG(legality.matmul_transpose_exact, "Transpose mode moves bits"),
      FLAG(legality.matmul_result_16bit, "bf16 results in PSUM"),
      FLAG(legality.matmul_adds_to_any_data, "Products add to data of other engines in PSUM"),
      FLAG(legality.mx, "MX operands"),
      FLAG(legality.indirection, "Compute operands through an offset tensor"),
      FLAG(legality.extended_operators, "square, relu, abs_max, abs_min as ALU operators"),
      FLAG(legality.pair, "Two cores of one stack can meet"),
  };
}

std::vector<Field<Fabric>> fabric_rows() {
  using R = Fabric;
  return {
      NAME(name, "Name of the fabric"),
      NAME(topology, "torus, ring, chain or switch"),
      LIST(dimensions, "Chips along each axis"),
      FIGURE(link_gbs, "GB/s", kRate, "One link, one direction, raw"),
      FIGURE(usable, "", kPart, "Part of a link that carries payload"),
      FIGURE(step_ns, "ns", kNs, "One step of a collective between neighbours"),
      FIGURE(transit_ns, "ns", kNs, "Each further chip a routed message crosses"),
  };
}

std::vector<Field<Server>> server_rows() {
  using R = Server;
  return {
      NAME(name, "What users type"),
      NAME(aliases, "Other names it is found by"),
      NAME(machine, "Its chip"),
      NAME(fabric, "What joins its chips"),
      FIGURE(chips, "", kPositive, "Chips"),
      FIGURE(network_gbs, "GB/s", kRate, "All network cards together, one direction"),
      FIGURE(network_step_ns, "ns", kNs, "One step of a collective between servers"),
      FIGURE(host_vcpus, "", kPositive, "Virtual processors of the host"),
      FIGURE(host_memory_gib, "GiB", kRate, "Memory of the host"),
      FIGURE(host_link_gbs, "GB/s", kRate, "Host memory to one chip"),
  };
}

}  // namespace

template <>
const std::vector<Field<Machine>>& schema<Machine>() {
  static const std::vector<Field<Machine>> rows = machine_rows();
  return rows;
}

template <>
const std::vector<Field<Server>>& schema<Server>() {
  static const std::vector<Field<Server>> rows = server_rows();
  return rows;
}

template <>
const std::vector<Field<Fabric>>& schema<Fabric>() {
  static const std::vector<Field<Fabric>> rows = fabric_rows();
  return rows;
}

}  // namespace trena
