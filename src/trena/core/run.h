// What one launch produced: when everything happened, what it waited for, and how busy the machine
// was.
//
// Made by run_program() from a finished Program; owns what the reports read, so the Program may go
// away.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trena/core/finding.h"
#include "trena/core/program.h"
#include "trena/isa/cost.h"
#include "trena/machine/machine.h"

namespace trena {

enum class SpillPolicy : std::uint8_t { kAuto, kError };
enum class SchedulePolicy : std::uint8_t { kProgram, kList };

struct RunOptions {
  SchedulePolicy schedule = SchedulePolicy::kList;
  SpillPolicy spill = SpillPolicy::kAuto;
};

// Rows of a timeline, per core: five engines, then DMA queues for loads, stores and spill moves,
// then one per engine that the kernel asked to trigger DMAs.
constexpr int kQueuesPerCore = 2 * kEngineCount + 3;
std::string queue_name(
    int queue);  // "tensor" …, "dma.load", "dma.store", "dma.spill", "dma.sync" …
constexpr int kNoCause = -1;

// One instruction in time. Times are ticks from the start of the data flow.
struct RunEvent {
  std::string_view name;  // mnemonic; points at static text
  std::int16_t core = 0;
  EngineKind engine = EngineKind::kSync;  // who ran it, or triggered it
  std::int16_t queue = 0;                 // row of its core, see kQueuesPerCore
  bool dma = false;                       // start/end below are then first packet and last byte
  bool spill = false;                     // inserted by Placement
  std::optional<Evidence> evidence;       // of Cost::evidence
  Position position;
  Ticks issue = 0;       // left the queue (for a DMA: the trigger)
  Ticks start = 0;       // began to work
  Ticks busy_until = 0;  // its engine could start the next one
  Ticks end = 0;         // result visible
  std::int64_t cause =
      kNoCause;            // event whose end it waited for last; kNoCause: only its own queue
  Ticks stall = 0;         // how long its engine stood idle for that
  std::int64_t bytes = 0;  // DMA payload
  // What a profiler shows apart: LDWEIGHTS and MATMUL (of one pass) of a product; the trigger
  // instruction of a DMA and the time of its packets on all engines.
  Ticks load_weights = 0;
  Ticks multiply = 0;
  Ticks trigger = 0;
  Ticks packets = 0;
  std::int64_t packet_count = 0;
  std::string label;
};

struct EngineUse {
  std::int64_t instructions = 0;
  Ticks active = 0;  // union of its instructions' activity
};

struct CoreRun {
  std::array<EngineUse, kEngineCount> engines{};
  Ticks dma_active = 0;  // union over transfers of [first packet, payload end] (hw.md §2.7)
  std::int64_t dma_transfers = 0;
  std::int64_t descriptors = 0;
  Ticks packet_time = 0;  // Σ over packets and engines
  std::int64_t hbm_read_bytes = 0;
  std::int64_t hbm_write_bytes = 0;
  std::int64_t spilled_bytes = 0;                   // of the above, what Placement added
  std::int64_t multiply_accumulates = 0;            // useful
  std::int64_t transpose_multiply_accumulates = 0;  // PE passes that move instead
  double hardware_flops = 0;  // adjusted by dtype, transposes included (hw.md §2.6)
  double model_flops = 0;     // adjusted by dtype, transposes left out
  std::int64_t table_loads = 0;
  Ticks table_load_time = 0;
  std::int64_t sbuf_peak_bytes = 0;  // per partition, live at once before spilling
  std::int64_t psum_peak_banks = 0;
};

// What the instructions of one source line work on, as the first of them did.
struct OperandText {
  Position position;
  std::string_view name;  // mnemonic
  std::string text;       // "acc[128,512]float32 psum <- w[128,128]bfloat16 sbuf, ..."
};

struct Run {
  std::string machine;
  int cores = 1;
  RunOptions options;
  Ticks time = 0;         // launch included
  Ticks launch_time = 0;  // fixed part of it
  std::vector<CoreRun> per_core;
  std::vector<RunEvent>
      events;  // in order of issue per core and engine; index = id used by `cause`
  std::vector<std::string> files;
  std::vector<OperandText> operands;
  std::vector<Finding> findings;  // of check/, when somebody asked it

  double seconds() const { return static_cast<double>(time) * 1e-15; }
};

// Places, orders and times the program. The program is left as it was: run it again with other
// options, or on another machine (what-if).
Run run_program(const Program& program, const RunOptions& options);
Run run_program(const Program& program, const Machine& machine, const RunOptions& options);

// The two halves of it, for whoever looks at the placed program in between (check/).
struct Stream;
std::vector<Stream> place_program(const Program& program, const Machine& machine,
                                  SpillPolicy spill);
Run time_program(const Program& program, const Machine& machine, const std::vector<Stream>& streams,
                 const RunOptions& options);

}  // namespace trena
