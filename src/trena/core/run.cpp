#include "trena/core/run.h"

#include "trena/core/operands.h"
#include "trena/core/placement/placement.h"
#include "trena/core/timeline/timeline.h"

namespace trena {

std::string queue_name(int queue) {
  static constexpr std::array<std::string_view, 3> kDma = {"dma.load", "dma.store", "dma.spill"};
  if (queue < kEngineCount) {
    return std::string(name(static_cast<EngineKind>(queue)));
  }
  const int dma = queue - kEngineCount;
  return dma < 3 ? std::string(kDma[static_cast<std::size_t>(dma)])
                 : "dma." + std::string(name(static_cast<EngineKind>(dma - 3)));
}

Run run_program(const Program& program, const RunOptions& options) {
  return run_program(program, program.machine(), options);
}

Run run_program(const Program& program, const Machine& machine, const RunOptions& options) {
  return time_program(program, machine, place_program(program, machine, options.spill), options);
}

std::vector<Stream> place_program(const Program& program, const Machine& machine,
                                  SpillPolicy spill) {
  std::vector<Stream> streams;
  for (int core = 0; core < program.core_count(); ++core) {
    streams.push_back(place(program, core, machine, spill));
  }
  return streams;
}

Run time_program(const Program& program, const Machine& machine, const std::vector<Stream>& streams,
                 const RunOptions& options) {
  Run run;
  run.machine = machine.chip.name;
  run.cores = program.core_count();
  run.options = options;
  run.files = program.files();
  run.per_core.resize(static_cast<std::size_t>(program.core_count()));
  run.operands = describe_operands(program);
  simulate(program, machine, streams, run);
  return run;
}

}  // namespace trena
