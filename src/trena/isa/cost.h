// What an instruction costs, in words the scheduler understands without knowing opcodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "trena/machine/machine.h"
#include "trena/machine/ticks.h"
#include "trena/number/dtype.h"

namespace trena {

// One nc_matmul is `passes` × (LoadStationary, MultiplyMoving) on the systolic array (hw.md §2.2,
// §2.7). Services are pure streaming time at full rate; the tensor engine adds its fixed latencies,
// hides LoadStationary behind the previous MultiplyMoving and stretches both under the power limit
// (§1.8).
// The array as 4 × 4 blocks, one bit each, row by row: tiling mode cuts it no finer (hw.md §2.2).
constexpr int kArrayBlocks = 4;  // per side
constexpr std::uint32_t kWholeArray = 0xFFFF;

struct TensorWork {
  int passes = 0;             // 0: not a tensor-engine instruction
  Ticks load_stationary = 0;  // one pass
  Ticks multiply_moving = 0;  // one pass
  double active_area =
      1.0;  // share of the array's rows × columns that is switching (throttle input)
  std::uint32_t blocks = kWholeArray;  // that it occupies; products on other blocks run beside it
};

// nki: unknown, swdge, hwdge, none (values of the public enum).
enum class DgeMode : std::uint8_t { kUnknown = 0, kSoftware = 1, kHardware = 2, kNone = 3 };

// What a DMA asks of the rings after its trigger (hw.md §1.7, §2.5, §2.7).
struct DmaWork {
  std::int64_t descriptors = 0;       // 0: not a DMA. One descriptor moves one contiguous run
  std::int64_t descriptor_bytes = 0;  // of each run
  int engines = 0;  // the busiest `engines` of the core's 16 share the descriptors evenly
  std::int64_t hbm_read_bytes = 0;
  std::int64_t hbm_write_bytes = 0;
  double slowdown = 1.0;  // transposes, accumulation (hw.md §1.7)
  Ticks trigger = 0;      // what the trigger instruction itself takes
  DgeMode dge = DgeMode::kUnknown;
  bool to_hbm = false;             // a store
  bool trigger_requested = false;  // the kernel chose the engine, not the compiler
  int priority = -1;               // service class asked for, 0 first (v4); -1: none
};

// Activity for utilisation and energy: counted, never timed.
struct Activity {
  std::int64_t multiply_accumulates = 0;  // useful ones: M·N·K
  DType matmul_dtype = DType::kFloat32;   // picks the profiler's FLOP multiplier (hw.md §2.6)
  bool transpose = false;     // a PE pass that moves instead of multiplying: HFU apart from MFU
  std::int64_t elements = 0;  // elements streamed by vector, scalar or gpsimd
};

// How long after its operands an instruction starts when another engine made them (Sync; hw.md
// §2.5).
enum class StartGap : std::uint8_t { kCompute, kCopy, kTranspose };

struct Cost {
  // Vector, scalar, gpsimd, sync: at full rate.
  Ticks interval = 0;    // until the same engine may start the next independent instruction
  Ticks completion = 0;  // from start until the result is committed and the semaphore fires
  std::string_view
      activation_table;  // function set that must be resident on the scalar engine; empty: none
  TensorWork tensor;
  StartGap gap = StartGap::kCompute;
  // Block transposes: from which quadrant to which. Another route than the one before starts no
  // sooner than `reroute` after it (hw.md §2.4).
  std::int32_t route = -1;
  Ticks reroute = 0;
  DmaWork dma;  // interval above is then the trigger engine's issue time
  Activity activity;
  // How sure the law behind interval and completion is; empty: as its engine's figures (report/).
  std::optional<Evidence> evidence;
};

}  // namespace trena
