#include "trena/core/executor.h"

#include <fmt/format.h>

#include "trena/isa/core_state.h"
#include "trena/memory/rows.h"

namespace trena {
namespace {

[[noreturn]] void throw_unwritten(const Instruction& instruction, const Tensor& tensor) {
  const WrittenBits& written = tensor.buffer()->storage->written();
  std::size_t first_unwritten = 0;
  bool found = false;
  for_each_run(tensor, [&](std::size_t offset, std::size_t length) {
    for (std::size_t i = 0; i < length && !found; ++i) {
      if (!written.test(offset + i)) {
        first_unwritten = offset + i - static_cast<std::size_t>(tensor.buffer()->origin_bytes);
        found = true;
      }
    }
  });
  const auto pitch = static_cast<std::size_t>(tensor.buffer()->pitch_bytes);
  throw Error(
      ErrorKind::kUnwritten, "unwritten-read",
      {.rule = "every byte an instruction reads must have been written before",
       .here = fmt::format("{} reads {}; row {}, byte {} was never written", instruction.name(),
                           tensor.describe(), first_unwritten / pitch, first_unwritten % pitch),
       .device = "whatever the memory held before: garbage that changes from run to run",
       .fix = "write the tensor first (dma_copy, memset), or read only the part that was written"});
}

}  // namespace

void execute(const Instruction& instruction, const AccessList& accesses, CoreState& core) {
  for (const Access& access : accesses) {
    const bool reads = access.kind == AccessKind::kRead || access.kind == AccessKind::kUpdate;
    if (reads && !is_written(*access.tensor)) {
      throw_unwritten(instruction, *access.tensor);
    }
  }
  instruction.execute(core);
  for (const Access& access : accesses) {
    if (access.kind == AccessKind::kWrite || access.kind == AccessKind::kAccumulate) {
      mark_written(*access.tensor);
    }
  }
}

}  // namespace trena
