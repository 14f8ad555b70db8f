// A run small enough to follow by hand: one load, one product that waits for it, one copy that
// waits for the product, one store that waits for the copy.
#pragma once

#include <string>

#include "trena/core/run.h"
#include "trena/machine/load.h"

namespace trena {

inline Machine trainium2() {
  return load_machine(find_machine("trn2", TRENA_SOURCE_DIR "/hardware"));
}

inline RunEvent event(std::string_view name, EngineKind engine, std::int32_t line, double start_ns,
                      double busy_ns, double end_ns) {
  RunEvent event;
  event.name = name;
  event.engine = engine;
  event.queue = static_cast<std::int16_t>(engine);
  event.position = {0, line};
  event.issue = ticks_from_ns(start_ns);
  event.start = ticks_from_ns(start_ns);
  event.busy_until = ticks_from_ns(busy_ns);
  event.end = ticks_from_ns(end_ns);
  return event;
}

inline constexpr int kLoads = kEngineCount;  // queue_name(): "dma.load"
inline constexpr int kStores = kEngineCount + 1;

inline RunEvent transfer(int queue, std::int32_t line, double issue_ns, double start_ns,
                         double landed_ns, std::int64_t bytes) {
  RunEvent result =
      event("dma_copy", EngineKind::kSync, line, start_ns, landed_ns, landed_ns + 300);
  result.queue = static_cast<std::int16_t>(queue);
  result.issue = ticks_from_ns(issue_ns);
  result.dma = true;
  result.bytes = bytes;
  return result;
}

inline RunEvent waiting(RunEvent event, std::int64_t cause, double stall_ns) {
  event.cause = cause;
  event.stall = ticks_from_ns(stall_ns);
  return event;
}

// 10 µs in all, of which 2 are launch.
inline Run hand_made_run() {
  Run run;
  run.machine = "trn2";
  run.time = 10 * kTicksPerUs;
  run.launch_time = 2 * kTicksPerUs;
  run.files = {"kernel.py"};
  run.events = {
      transfer(kLoads, 7, 0, 750, 2750, 65536),
      waiting(event("nc_matmul", EngineKind::kTensor, 9, 3050, 6050, 6250), 0, 3050),
      waiting(event("tensor_copy", EngineKind::kVector, 10, 6300, 6800, 6950), 1, 6300),
      waiting(transfer(kStores, 11, 6980, 7500, 8000, 32768), 2, 6910),
  };
  run.events[2].evidence = Evidence::kExtrapolated;
  run.operands = {{{0, 9}, "nc_matmul", "acc[128,512] float32 psum <- w[128,128] bfloat16 sbuf"}};

  CoreRun core;
  core.engines[static_cast<std::size_t>(EngineKind::kTensor)] = {1, ticks_from_ns(3000)};
  core.engines[static_cast<std::size_t>(EngineKind::kVector)] = {1, ticks_from_ns(500)};
  core.dma_active = ticks_from_ns(2500);
  core.dma_transfers = 2;
  core.descriptors = 48;
  core.packet_time = ticks_from_ns(20000);
  core.hbm_read_bytes = 65536;
  core.hbm_write_bytes = 32768;
  core.multiply_accumulates = 128 * 128 * 512;
  core.transpose_multiply_accumulates = 128 * 128 * 128;
  core.model_flops = 2.0 * 4 * 128 * 128 * 512;
  core.hardware_flops = 2.0 * 4 * 128 * 128 * 640;
  core.sbuf_peak_bytes = 148 * 1024;
  core.psum_peak_banks = 7;
  run.per_core = {core};
  return run;
}

}  // namespace trena
