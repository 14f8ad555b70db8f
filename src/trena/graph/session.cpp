#include "trena/graph/session.h"

#include <fmt/format.h>

#include "trena/graph/heap.h"

namespace trena {

std::int64_t core_hbm_bytes(const Machine& machine) {
  constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
  return static_cast<std::int64_t>(machine.hbm_gib() * kGib /
                                   static_cast<double>(machine.chip.cores));
}

Session::Session(Machine machine) : machine_(std::move(machine)) {
  Heap::instance().set_limit_bytes(core_hbm_bytes(machine_));
}

Program& Session::program() {
  if (program_ == nullptr) {
    program_ = std::make_unique<Program>(machine_, 1);
  }
  return *program_;
}

HbmView Session::view(const std::byte* data, DType dtype, std::span<const std::int64_t> sizes,
                      std::span<const std::int64_t> strides_elements) {
  const std::optional<Heap::Allocation> allocation = Heap::instance().find(data);
  if (!allocation) {
    throw Error(ErrorKind::kUsage, "not-on-device",
                {.rule = "operators of device neuron take tensors in its memory",
                 .here = "a tensor whose bytes are somebody else's",
                 .fix = "move it there first: tensor.to(\"neuron\")"});
  }
  auto found = storages_.find(allocation->id);
  if (found == storages_.end()) {
    // Not owned: PyTorch keeps the bytes alive while an operator runs, and nothing reads them
    // afterwards.
    const std::int64_t size =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(allocation->size_bytes));
    Tensor storage = program().make_external(DType::kUint8, std::array{size},
                                             fmt::format("storage{}", allocation->id),
                                             allocation->data, nullptr);
    found = storages_.emplace(allocation->id, std::move(storage)).first;
  }
  HbmView view{found->second, dtype, data - allocation->data, {sizes.begin(), sizes.end()}, {}};
  const auto width = static_cast<std::int64_t>(size_bytes(dtype));
  for (const std::int64_t stride : strides_elements) {
    view.strides_bytes.push_back(stride * width);
  }
  return view;
}

std::size_t Session::instruction_count() const {
  return program_ ? program_->instruction_count() : 0;
}

std::optional<Run> Session::finish(const RunOptions& options) {
  if (instruction_count() == 0) {
    drop();
    return std::nullopt;
  }
  Run run = run_program(*program_, options);
  drop();
  return run;
}

std::unique_ptr<Program> Session::take_program() {
  std::unique_ptr<Program> program = instruction_count() == 0 ? nullptr : std::move(program_);
  drop();
  return program;
}

void Session::drop() {
  program_.reset();
  storages_.clear();
}

}  // namespace trena
