// What one core does for PyTorch between two synchronisations: a Program over the tensors of the
// Heap, whose values are there as soon as an operator returns, and whose time is known when the
// step ends (design.md §1-3).
//
// Every operator is lowered to the instructions that NKI kernels use; who orders the queues is
// Trena's own schedule, so such times are an "estimate (Trena schedule)" (design.md §6).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trena/core/program.h"
#include "trena/core/run.h"
#include "trena/graph/hbm_view.h"

namespace trena {

// What one core may use of the chip's HBM.
std::int64_t core_hbm_bytes(const Machine& machine);

class Session {
 public:
  explicit Session(Machine machine);

  const Machine& machine() const { return machine_; }
  // The program of the step in progress.
  Program& program();
  // A tensor of PyTorch. `data` points at its first element, into an allocation of the Heap (else
  // `not-on-device`).
  HbmView view(const std::byte* data, DType dtype, std::span<const std::int64_t> sizes,
               std::span<const std::int64_t> strides_elements);

  // Instructions of the step in progress.
  std::size_t instruction_count() const;

  // Ends the step: places and times its program and forgets it. Nothing when there was nothing to
  // do.
  std::optional<Run> finish(const RunOptions& options);
  // Ends the step and hands its program over, to be timed as often as wanted; null when nothing
  // ran.
  std::unique_ptr<Program> take_program();
  // Ends the step without its time.
  void drop();

 private:
  Machine machine_;
  std::unique_ptr<Program> program_;
  std::unordered_map<std::uint64_t, Tensor> storages_;  // by Heap::Allocation::id
};

}  // namespace trena
