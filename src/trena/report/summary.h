// The figures of one run in the words of the Neuron profiler, so that a reader can put both side by
// side.
//
// Definitions are those of AWS profile-schema-reference.rst (hw.md §2.6):
//   HFU  hardware_flops / (time x peak), 2 flops per multiply-accumulate of every product,
//   transposes
//        included; peak = 2 x rows x columns x clock of the tensor engine, per core
//   MFU  the same without transposes
//   adjusted  each product weighed by what its dtype costs against bfloat16 (fp32 4 x, ...): 100 %
//        is a tensor engine that does nothing but stream at full rate, whatever the dtype
//   MBU  bytes to and from HBM / (time x bandwidth of the stacks in use); one stack for the two
//        cores that share it
//   active %  of the whole time, launch included; over several cores the mean
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "trena/core/run.h"
#include "trena/machine/machine.h"

namespace trena {

inline constexpr int kEvidenceCount = 5;

// How much of the busy time of some rows rests on figures of each class.
struct EvidenceShare {
  std::array<double, kEvidenceCount> ticks{};

  void add(Evidence evidence, double amount) {
    ticks[static_cast<std::size_t>(evidence)] += amount;
  }
  void add(const EvidenceShare& other);
  double total() const;
  double fraction(Evidence evidence) const;  // of the total; 0 when nothing was busy
  Evidence worst() const;                    // of what was used at all; documented when nothing was
};

struct EngineSummary {
  EngineKind engine = EngineKind::kSync;
  std::int64_t instructions = 0;  // all cores
  Ticks active = 0;               // sum over cores
  double active_fraction = 0;     // of time x cores
  EvidenceShare evidence;
};

struct DmaSummary {
  std::int64_t transfers = 0;
  std::int64_t descriptors = 0;
  Ticks active = 0;
  double active_fraction = 0;
  Ticks packet_time = 0;  // profiler: dma_packet_time, summed over packets and engines
  std::int64_t hbm_read_bytes = 0;
  std::int64_t hbm_write_bytes = 0;
  std::int64_t spilled_bytes = 0;
  double mean_descriptor_bytes = 0;  // HBM bytes per descriptor; 0 without transfers
  double mbu = 0;                    // as a part of 1
  EvidenceShare evidence;
};

struct TensorSummary {
  std::int64_t multiply_accumulates = 0;
  double mfu = 0;
  double hfu = 0;
  double adjusted_mfu = 0;
  double adjusted_hfu = 0;
};

struct MemorySummary {
  std::int64_t sbuf_peak_bytes = 0;  // per partition, of the fullest core
  std::int64_t sbuf_usable_bytes = 0;
  std::int64_t psum_peak_banks = 0;
  std::int64_t psum_banks = 0;
};

// What the time is made of: the busiest row of the machine.
struct Bound {
  std::string what;     // "tensor engine", "HBM bandwidth", "DMA", "launch", "waiting"
  double fraction = 0;  // of the time; of "waiting": of the busiest row
  std::string row;      // the busiest row: an engine's name, "dma" or "launch"
  std::string then;     // the row after it; empty when nothing else did anything
  double then_fraction = 0;
};

// Who waited, where, for whom: one entry per pair of lines. Rows are named as queue_name() does.
struct Stall {
  SourceLine line;
  std::string name;  // mnemonic
  std::string row;   // "tensor", "dma.load", ...
  SourceLine cause_line;
  std::string cause_name;
  std::string cause_row;
  bool cause_spill = false;  // a move that Placement inserted
  Ticks time = 0;
  std::int64_t count = 0;
};

struct Advice {
  std::string id;    // `trena explain ID`
  std::string text;  // one sentence with the run's own figures
};

struct Summary {
  std::string machine;
  int cores = 1;
  RunOptions options;
  Ticks time = 0;
  Ticks launch_time = 0;
  std::int64_t instructions = 0;  // of engines and DMA transfers
  std::int64_t table_loads = 0;
  Ticks table_load_time = 0;  // sum over cores
  std::array<EngineSummary, kEngineCount> engines;
  DmaSummary dma;
  TensorSummary tensor;
  MemorySummary memory;
  Bound bound;
  std::vector<Stall> stalls;  // longest first; equal ones by line
  std::vector<Advice> advice;
  EvidenceShare evidence;  // engines and DMA together
};

std::string_view name(SchedulePolicy policy);  // "program", "list"
std::string_view name(SpillPolicy policy);     // "auto", "error"

// Evidence of a row whose instructions do not say it themselves: the worst of the figures that its
// laws use on every instruction.
Evidence engine_evidence(const Machine& machine, EngineKind engine);
Evidence dma_evidence(const Machine& machine);

std::vector<Stall> aggregate_stalls(const Run& run);

// `machine`: the one that the run was timed on.
Summary summarise(const Run& run, const Machine& machine);

}  // namespace trena
