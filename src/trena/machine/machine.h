// One chip as data: what hardware/*.toml says, in plain structs.
//
// A dotted key of the file is the path of the member: `core.tensor.clock_ghz` in TOML, in
// `--set core.tensor.clock_ghz=2.8` and in C++ are the same thing. schema.cpp describes every
// member once (unit, range, meaning); load.h reads, overrides and describes machines.
//
// Units are in the names. Costs are cycles of the engine that spends them, so a changed clock
// changes time; what no engine clocks (DMA, semaphores, launch) is in nanoseconds. 1 GB/s = 1 byte
// per ns. Where a figure comes from, and how sure it is, stands beside it in the file: see
// Machine::sources. Figures of features a generation lacks are absent from its file and NaN (or 0
// for integers) here: ask Legality before using them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trena/machine/engine.h"
#include "trena/machine/ticks.h"
#include "trena/number/dtype.h"

namespace trena {

// How sure a figure is, from best to worst. The order is used: the worst of several counts.
enum class Evidence : std::uint8_t {
  kDocumented,    // stated by the vendor
  kMeasured,      // measured on the device by someone who published it
  kEstimate,      // inferred from other figures, or an assumption
  kExtrapolated,  // measured or documented for another generation and carried over
  kGiven,         // set by the user of this run (--set)
};
std::string_view to_string(Evidence evidence);

struct FigureSource {
  Evidence evidence = Evidence::kEstimate;
  std::string source;  // where the figure comes from, for people
};

inline constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

// The time of one streaming instruction: its result is committed after
//     offset_cycles + cycles_per_element x N      (N = elements per partition, see each law)
// cycles of its engine; StreamEngine says when the next independent one may start
// (hw.md §2.1, §2.4).
struct StreamLaw {
  double offset_cycles = kAbsent;
  double cycles_per_element = kAbsent;
  Evidence evidence = Evidence::kEstimate;

  double work_cycles(double elements) const { return cycles_per_element * elements; }
  double completion_cycles(double elements) const { return offset_cycles + work_cycles(elements); }
};

// What vector, scalar and GpSimd engines have in common.
struct StreamEngine {
  double clock_ghz = kAbsent;
  std::int64_t lanes = 0;
  double min_issue_cycles = kAbsent;       // the documents' MIN_II
  double issue_overhead_cycles = kAbsent;  // set-up that the next instruction cannot hide

  // Until the next independent instruction may start.
  double issue_cycles(double work_cycles) const {
    return std::max(min_issue_cycles, work_cycles + issue_overhead_cycles);
  }
};

// hw.md §1.1
struct Chip {
  std::string name;                  // "trn2": what users type
  std::string product;               // "Trainium2"
  std::string core;                  // "NeuronCore-v3"
  std::vector<std::string> aliases;  // other names find_machine answers to
  std::int64_t generation = 0;       // 2, 3, 4: NKI's gen2, gen3, gen4
  std::int64_t cores = 0;
  std::int64_t links = 0;                        // NeuronLink ports of the chip
  std::vector<std::int64_t> logical_core_sizes;  // allowed --lnc
  std::int64_t default_logical_core_size = 0;
};

// hw.md §1.1, §1.7, §2.7
struct Hbm {
  std::int64_t stacks = 0;  // per chip
  std::int64_t cores_per_stack = 0;
  double stack_gib = kAbsent;  // capacity of one stack
  double stack_gbs = kAbsent;  // bandwidth of one stack; the profiler's MBU denominator of one core
  double core_gbs = kAbsent;   // what all DMA engines of one core together can draw
};

// hw.md §1.8: current ramp of the PE array, and the slower limit of the power budget.
struct TensorThrottle {
  bool ramp = false;                 // is there a current ramp at all
  double floor = kAbsent;            // rate after idle, as a part of full rate
  double ramp_ns = kAbsent;          // busy time until full rate is allowed
  double window_ns = kAbsent;        // utilisation is judged over this long
  double threshold = kAbsent;        // utilisation below which the cap returns
  bool counts_array_area = false;    // utilisation is duty x rows x columns in use, not duty alone
  double sustained_level = kAbsent;  // average rate allowed under dense work; 1 = no limit
  double sustained_window_ns = kAbsent;   // averaged over this long
  double sustained_restore_ns = kAbsent;  // idle time that restores the full budget
};

// hw.md §1.2, §1.3, §2.2, §2.7. A product is (LDWEIGHTS, MATMUL) once or, for fp32, in passes:
//   LDWEIGHTS = load_fixed + (columns x stationary_cycles_per_column + load_throttled) / limit
//   MATMUL    = matmul_fixed + (service + matmul_throttled) / limit
//   service   = max(min_moving_columns, columns) x moving_cycles_per_column
// where limit is the momentary rate of TensorThrottle. The next weights load behind a MATMUL.
struct TensorEngine {
  double clock_ghz = kAbsent;
  std::int64_t rows = 0;     // contraction, = partitions of the operands
  std::int64_t columns = 0;  // = partitions of the result
  std::int64_t max_stationary_columns = 0;
  std::int64_t max_moving_columns = 0;        // fp32 result
  std::int64_t max_moving_columns_16bit = 0;  // 16-bit result (v4)
  std::int64_t min_moving_columns = 0;        // shorter streams cost this much

  double moving_cycles_per_column = kAbsent;       // one pass of a 16- or 8-bit or tf32 operand
  double moving_cycles_per_column_fp32 = kAbsent;  // one pass of fp32
  double stationary_cycles_per_column = kAbsent;   // "fast weight load"
  double stationary_cycles_per_column_fp32 = kAbsent;
  double stationary_cycles_per_column_fp32_transpose = kAbsent;
  double stationary_cycles_per_column_mx = kAbsent;  // v4
  std::int64_t fp32_passes = 0;
  std::int64_t fp32_passes_onezero = 0;    // one operand holds only 0 and 1
  std::int64_t fp32_passes_transpose = 0;  // transpose mode moves bits

  double matmul_fixed_cycles = kAbsent;
  double matmul_throttled_cycles = kAbsent;
  double load_fixed_cycles = kAbsent;
  double load_throttled_cycles = kAbsent;
  double group_overhead_cycles = kAbsent;  // per product: all its passes together
  double min_issue_cycles = kAbsent;

  std::int64_t double_row_depth = 0;  // values a cell contracts per cycle, fp8 double row; 1 = none
  std::int64_t mx_depth = 0;          // the same for MX; 1 = none
  std::vector<std::int64_t> row_tile_sizes;
  std::vector<std::int64_t> column_tile_sizes;
  TensorThrottle throttle;
};

// hw.md §2.3, §2.4. "16-bit" means every tensor of the instruction is 16-bit (v4: or fp8), in SBUF
// unless said, innermost contiguous: the fast modes of the vector engine.
struct VectorEngine : StreamEngine {
  double operand_cycles = kAbsent;           // completion, per [P,1] operand read
  double tensor_seed_cycles = kAbsent;       // completion of a scan seeded by a tensor
  double accumulator_cycles = kAbsent;       // reading an accumulator out (tensor_scalar_reduce)
  double transpose_issue_cycles = kAbsent;   // one 32x32 block, quadrant pair as the block before
  double transpose_switch_cycles = kAbsent;  // the same after another quadrant pair

  StreamLaw copy;             // tensor_copy, tensor_scalar: SBUF to SBUF, any types
  StreamLaw copy_16bit;       // 16-bit
  StreamLaw copy_16bit_slow;  // 16-bit, not contiguous or one side in PSUM
  StreamLaw copy_widen;       // 16-bit in, 32-bit out
  StreamLaw copy_psum;        // one side or both in PSUM
  StreamLaw tensor_tensor;
  StreamLaw tensor_tensor_16bit;
  StreamLaw tensor_tensor_psum;  // one input in PSUM
  StreamLaw reduce;              // N counts input elements
  StreamLaw reduce_16bit;        // 16-bit in and out, add or max
  StreamLaw reciprocal;
  StreamLaw scan;
  StreamLaw cumulative;
  StreamLaw predicated;  // tensor_copy_predicated and the selects: one operand in PSUM or scalar
  StreamLaw predicated_sbuf;  // both operands in SBUF
  StreamLaw shuffle;
  StreamLaw transpose;  // completion of one 32x32 block: N = 32
  StreamLaw memset;     // N counts output elements
  StreamLaw memset_zero_16bit;
  StreamLaw bn_stats;
  StreamLaw bn_aggregate;
  StreamLaw max8;  // max8, nc_match_replace8
  StreamLaw find_index8;
  StreamLaw dropout;
  StreamLaw range_select;
  StreamLaw random;          // rng: N counts output elements
  StreamLaw random_uniform;  // rand2 (v4)
  StreamLaw exponential;     // v4
  StreamLaw quantize_mx;     // v4
};

// hw.md §2.3, §2.4
struct ScalarEngine : StreamEngine {
  double operand_cycles = kAbsent;  // completion, per [P,1] operand read (bias, scale)
  std::int64_t activation_operands =
      0;                                // operand reads that `activation`'s offset already contains
  double psum_credit_cycles = kAbsent;  // completion is this much earlier when the source is PSUM
  double table_load_cycles = kAbsent;   // another set of activation functions
  double accumulator_issue_cycles = kAbsent;  // reading the reduce registers: issue
  double accumulator_cycles = kAbsent;        //                               completion
  double accumulator_ready_cycles = kAbsent;  // activation offset until its sum may be read out

  StreamLaw copy;              // tensor_copy (v3+)
  StreamLaw copy_16bit;        // every tensor 16-bit (v4: or fp8)
  StreamLaw activation;        // add operand_cycles per [P,1] operand
  StreamLaw activation_16bit;  // every tensor 16-bit (v4: or fp8)
  StreamLaw silu;

  // Functions that are resident together: set -> functions. A function belongs to one set.
  std::map<std::string, std::vector<std::string>> tables;
};

// hw.md §1.6, §2.3, §2.4. Offsets include start-up and drain.
struct GpsimdEngine : StreamEngine {
  std::int64_t cores = 0;
  std::int64_t partitions_per_core = 0;
  double gather_index_cycles = kAbsent;
  std::int64_t gather_group_elements = 0;

  StreamLaw affine;  // iota, affine_select
  StreamLaw copy;    // tensor_copy, memset
  StreamLaw tensor_tensor;
  StreamLaw tensor_scalar;
  StreamLaw rsqrt;
  StreamLaw partition_reduce;
  StreamLaw gather;  // local_gather before its factor C, nc_n_gather
  StreamLaw topk;    // N = 4 n + k
  StreamLaw search;  // sequence_bounds, nonzero_with_count
  StreamLaw random;
};

// hw.md §4
struct Sequencer {
  double clock_ghz = kAbsent;  // also the clock of the profiler's cycle counter
  std::int64_t registers = 0;
  double register_move_cycles = kAbsent;
  double register_load_cycles = kAbsent;  // from memory
  double register_store_cycles = kAbsent;
  double branch_cycles = kAbsent;
};

// hw.md §1.5: what an innermost stride costs at a memory port.
//   by sector (v3+): an access takes `slow_factor` times longer per sector it touches than per
//                    element, and at least the time of its elements: half a sector is free; strides
//                    over `wide_from_bytes` ramp that factor to `wide_factor` at `wide_to_bytes`
//   otherwise (v2):  strides over `sector_bytes` take `slow_factor` times longer
struct StrideRule {
  bool by_sector = false;
  std::int64_t sector_bytes = 0;
  double slow_factor = kAbsent;
  std::int64_t wide_from_bytes = 0;
  std::int64_t wide_to_bytes = 0;
  double wide_factor = kAbsent;
};

// hw.md §1.4, §1.5
struct Sbuf {
  std::int64_t partitions = 0;
  double partition_kib = kAbsent;           // capacity of one partition
  std::int64_t reserved_bytes = 0;          // of it, what the runtime keeps
  std::int64_t alignment_bytes = 0;         // of an address within the partition
  std::int64_t partition_stride_bytes = 0;  // in device addresses
  std::int64_t quadrant_partitions = 0;     // legal start partitions are multiples of it
  bool vector_gpsimd_exclusive = false;     // the two never access SBUF at once
  StrideRule stride;

  std::int64_t partition_bytes() const { return static_cast<std::int64_t>(partition_kib * 1024); }
  std::int64_t usable_bytes() const { return partition_bytes() - reserved_bytes; }  // per partition
};

// hw.md §1.4, §1.5
struct Psum {
  std::int64_t partitions = 0;
  std::int64_t banks = 0;
  std::int64_t bank_bytes = 0;  // per partition
  std::int64_t alignment_bytes = 0;
  std::int64_t banks_per_result = 0;     // banks one matmul result may span
  bool vector_scalar_exclusive = false;  // the two never access PSUM at once
  bool same_bank_exclusive = false;      // engines on the same bank take turns

  std::int64_t partition_bytes() const { return banks * bank_bytes; }
};

// One way of producing descriptors (hw.md §1.7, §2.5).
struct DmaMode {
  double issue_ns = kAbsent;     // between two DMA instructions of one queue
  double dispatch_ns = kAbsent;  // trigger to first packet
  double notify_ns = kAbsent;    // end of the last packet to the semaphore's final value
  double issue_row_ns = 0;       // of issue_ns: more for each descriptor past the first 128
  double trigger_ns = kAbsent;   // what the trigger instruction itself takes; absent: as issue_ns
};

// hw.md §1.7, §2.5, §2.7. One packet (descriptor) occupies its engine for packet_time_ns, and an
// engine moves no more than engine_bytes_per_ns; all engines of a core together stay under
// Hbm::core_gbs.
struct Dma {
  std::int64_t engines = 0;  // per core
  std::int64_t rings = 0;    // queues per engine
  std::int64_t partitions_per_engine = 0;
  double packet_ns = kAbsent;            // fixed, per packet
  double packet_bytes_per_ns = kAbsent;  // rate of its bytes after the head
  std::int64_t head_bytes = 0;           // the first bytes of a packet ...
  double head_bytes_per_ns = kAbsent;    // ... move at this rate
  double engine_bytes_per_ns = kAbsent;  // one engine at its best
  std::int64_t packet_bytes = 0;         // longer descriptors of compute rings are cut into these
  std::int64_t in_flight_per_queue = 0;  // DMA instructions
  std::int64_t service_classes = 0;      // priorities; 1 = round robin only

  DmaMode load;      // software descriptors (swdge), HBM to SBUF
  DmaMode store;     // software descriptors, SBUF to HBM
  DmaMode hardware;  // hardware descriptors (hwdge)
  DmaMode prepared;  // descriptors written before the run (dge none)

  // From the last packet of a transfer until its bytes have landed.
  double load_base_ns = kAbsent;
  double store_base_ns = kAbsent;

  double indirect_row_ns = kAbsent;      // swdge: per row gathered or scattered
  double accumulate_rate = kAbsent;      // dma_compute, as a part of the copy rate
  double transpose_rate = kAbsent;       // dma_transpose HBM to SBUF
  double transpose_rate_sbuf = kAbsent;  // dma_transpose SBUF to SBUF
  double gpsimd_gbs = kAbsent;           // DMA engines of GpSimd, one direction (v3+)

  double packet_time_ns(std::int64_t bytes) const {
    const std::int64_t head = std::min(bytes, head_bytes);
    const double head_ns = head > 0 ? static_cast<double>(head) / head_bytes_per_ns : 0.0;
    return packet_ns + head_ns + static_cast<double>(bytes - head) / packet_bytes_per_ns;
  }
};

// From operands ready to the start of the waiting instruction (hw.md §2.5, §7.11).
struct Sync {
  double same_engine_ns = kAbsent;
  double copy_ns = kAbsent;
  double transpose_ns = kAbsent;
  double compute_ns = kAbsent;
  double dma_issue_ns = kAbsent;  // an engine's result to the DMA instruction that needs it
};

struct Core {
  TensorEngine tensor;
  VectorEngine vector;
  ScalarEngine scalar;
  GpsimdEngine gpsimd;
  Sequencer sequencer;
  Sbuf sbuf;
  Psum psum;
  Dma dma;
  Sync sync;
};

// hw.md §5.4: two cores that share an HBM stack (v3+).
struct Pair {
  double sendrecv_ns = kAbsent;
  double barrier_ns = kAbsent;
  std::int64_t gpsimd_partition_bytes = 0;  // limit of sendrecv by GpSimd, 32-bit types
};

// hw.md §2.5, §7.25
struct Launch {
  double kernel_fixed_ns = kAbsent;  // start and stop of one kernel around its data flow
};

class EngineSet {
 public:
  void add(EngineKind engine) { bits_ |= bit(engine); }
  bool contains(EngineKind engine) const { return (bits_ & bit(engine)) != 0; }
  bool empty() const { return bits_ == 0; }

 private:
  static std::uint32_t bit(EngineKind engine) { return 1u << static_cast<unsigned>(engine); }
  std::uint32_t bits_ = 0;
};

class DTypeSet {
 public:
  void add(DType dtype) { bits_ |= bit(dtype); }
  bool contains(DType dtype) const { return (bits_ & bit(dtype)) != 0; }

 private:
  static std::uint32_t bit(DType dtype) { return 1u << static_cast<unsigned>(dtype); }
  std::uint32_t bits_ = 0;
};

// hw.md §1.5, §1.7, §2.3, §3: what this generation can do at all.
struct Legality {
  // Instruction of the current API -> who can run it, the usual choice first. For a DMA: who can
  // trigger it. An instruction that is not here does not exist on this machine.
  std::map<std::string, std::vector<EngineKind>, std::less<>> engines;
  DTypeSet dtypes;                            // element types that memory, engines and DMA know
  DTypeSet matmul_dtypes;                     // operands of nc_matmul
  std::vector<std::string> scalar_operators;  // of tensor_scalar on the scalar engine
  std::vector<std::string> gpsimd_operators;  // of tensor_scalar when GpSimd is asked for
  EngineSet hwdge_engines;                    // who triggers hardware descriptor generation
  bool gpsimd_psum = false;                   // GpSimd reaches PSUM
  bool scalar_copy_exact = false;             // ScalarE copies equal types bit by bit
  bool activation_bias_constant = false;      // else only a [P,1] tensor
  bool activation_reciprocal_bias = false;
  bool dma_indirect = false;         // gather and scatter by index vector
  bool dma_priority = false;         // service classes
  bool dma_accumulate_sbuf = false;  // read-add-write into SBUF
  bool matmul_double_row = false;
  bool matmul_transpose_exact = false;   // transpose mode moves bits
  bool matmul_result_16bit = false;      // bf16 accumulation in PSUM
  bool matmul_adds_to_any_data = false;  // else only to what products wrote in PSUM
  bool mx = false;
  bool indirection = false;         // compute operands through an offset tensor
  bool extended_operators = false;  // square, relu, abs_max, abs_min as ALU operators
  bool pair = false;                // two cores of one stack can meet

  bool has(std::string_view instruction) const;
  // Empty when the machine lacks the instruction.
  const std::vector<EngineKind>& engines_for(std::string_view instruction) const;
  bool allows(std::string_view instruction, EngineKind engine) const;
};

struct Machine {
  Chip chip;
  Hbm hbm;
  Core core;  // all cores of a chip are equal
  Pair pair;
  Launch launch;
  Legality legality;

  std::string origin;                                        // file it was read from
  std::map<std::string, FigureSource, std::less<>> sources;  // dotted key -> where it comes from
  std::vector<std::string> overrides;  // "core.sbuf.partition_kib=256", in order

  bool is_generation(std::int64_t at_least) const { return chip.generation >= at_least; }
  // Throws for an unknown key.
  const FigureSource& source_of(std::string_view key) const;

  double clock_ghz(EngineKind kind) const;  // sync: the sequencer's
  Ticks ticks(EngineKind kind, double cycles) const {
    return trena::ticks(cycles, clock_ghz(kind));
  }
  // Of one core with 16-bit operands, in flop per ns (= GFLOP/s): the denominator of MFU and HFU
  // (hw.md §2.6).
  double peak_flops_per_ns() const {
    return 2.0 * static_cast<double>(core.tensor.rows * core.tensor.columns) *
           core.tensor.clock_ghz;
  }
  double hbm_gib() const { return static_cast<double>(hbm.stacks) * hbm.stack_gib; }
};

// fleet.md §1, §2: how the chips of one server are joined.
struct Fabric {
  std::string name;
  std::string topology;                  // "torus", "ring", "chain", "switch"
  std::vector<std::int64_t> dimensions;  // chips along each axis
  double link_gbs = kAbsent;             // one link, one direction, raw
  double usable = kAbsent;               // part of it that carries payload
  double step_ns = kAbsent;              // one step of a collective between neighbours
  double transit_ns = kAbsent;           // each further chip that a routed message crosses
  std::string origin;
  std::map<std::string, FigureSource, std::less<>> sources;
};

struct Server {
  std::string name;
  std::string machine;  // name of the chip, see find_machine
  std::string fabric;   // name of the file in hardware/fabrics
  std::vector<std::string> aliases;
  std::int64_t chips = 0;
  double network_gbs = kAbsent;      // all network cards, one direction
  double network_step_ns = kAbsent;  // one step of a collective between servers
  double host_vcpus = kAbsent;
  double host_memory_gib = kAbsent;
  double host_link_gbs = kAbsent;  // host memory to one chip
  std::string origin;
  std::map<std::string, FigureSource, std::less<>> sources;
};

}  // namespace trena
