// The Program: the one description of the work. The same object is executed for its values
// (Executor, while the front end appends), placed (Placement), timed (Timeline) and inspected
// (check/). design.md §1-3.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trena/core/executor.h"
#include "trena/core/finding.h"
#include "trena/core/tensor_bytes.h"
#include "trena/isa/core_state.h"
#include "trena/isa/instruction.h"
#include "trena/memory/region.h"

namespace trena {

struct ProgramOptions {
  bool values = true;  // false: time only; tensors have no bytes
  UnwrittenPolicy unwritten = UnwrittenPolicy::kRefuse;
  // Note an instruction that is refused, take what it would have written as written, and go on.
  bool go_on = false;
  // Keep what a second pass over the values begins with (hardware_order.h).
  bool hardware_order = false;
};

struct BufferRequest {
  Space space = Space::kHbm;
  DType dtype = DType::kFloat32;
  std::span<const std::int64_t> shape;
  std::string_view name;
  std::optional<Address> address;  // on the chip: the kernel's own choice
  BufferRole role = BufferRole::kLocal;
};

// `lnc-size`: a kernel runs on as many physical cores as the chip joins into a logical one (hw.md
// §1.1, LNC).
void check_core_count(const Machine& machine, int core_count);

class Program {
 public:
  Program(Machine machine, int core_count, ProgramOptions options = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const Machine& machine() const { return machine_; }
  const ProgramOptions& options() const { return options_; }
  int core_count() const { return static_cast<int>(cores_.size()); }

  // A new tensor; on the chip it belongs to `core`. Throws for a partition dimension over the
  // limit, a PSUM tensor over its banks, an address outside the memory (docs/errors.md: capacity,
  // address).
  Tensor make_tensor(int core, const BufferRequest& request);

  // A tensor over bytes of the caller (kernel arguments): C-contiguous, written.
  Tensor make_external(DType dtype, std::span<const std::int64_t> shape, std::string_view name,
                       std::byte* data, std::shared_ptr<void> owner,
                       BufferRole role = BufferRole::kInput);

  // Checks, executes and records one instruction; the position set last is its provenance. If
  // anything is wrong the instruction is not recorded and trena::Error carries the position.
  void append(int core, std::unique_ptr<Instruction> instruction);

  // Until called with false, what is appended to `core` starts in program order, whoever runs it.
  // Calls nest.
  void keep_order(int core, bool on);
  bool keeps_order(int core) const { return cores_[static_cast<std::size_t>(core)].blocks > 0; }

  // Would another machine run this program? Throws what appending it there would have thrown, at
  // the line of the instruction or tensor. For what-if: kernels may read limits of the machine
  // while they are traced, and those readings stay as they were.
  void check_on(const Machine& machine) const;

  // Values may be computed behind the caller: after this they are there.
  void settle() { executor_->settle(); }

  // Where in the user's program the next tensors and instructions come from.
  std::uint32_t intern_file(std::string_view path);
  void set_position(Position position) { position_ = position; }
  Position position() const { return position_; }
  const std::vector<std::string>& files() const { return files_; }
  SourceLine source_line(Position position) const;

  const std::vector<std::unique_ptr<Instruction>>& instructions(int core) const {
    return cores_[static_cast<std::size_t>(core)].instructions;
  }
  std::size_t instruction_count() const;
  // Was the instruction that was appended last refused, and left out, while going on?
  bool left_out(int core) const { return cores_[static_cast<std::size_t>(core)].left_out; }
  // Bytes of HBM that an index vector chose, of programs with values on two cores.
  struct ChosenRows {
    const Buffer* buffer;
    bool writes;
    Region region;
  };
  // By instruction; none where values are not known.
  std::span<const ChosenRows> chosen_rows(const Instruction& instruction) const;
  // Noted while going on, in order.
  const std::vector<Finding>& findings() const { return findings_; }
  const std::vector<BufferPtr>& buffers() const { return buffers_; }

  // The caller's bytes as they came, in a program for hardware_order.
  struct Argument {
    BufferPtr buffer;
    std::vector<std::byte> bytes;
  };
  const std::vector<Argument>& arguments() const { return arguments_; }
  // Makes bytes look as before the kernel and counts them as written: the sentinel of their type if
  // that was asked for, else all bits set, which is NaN in every float type. `buffer`: whose they
  // are; null: of a whole SBUF or PSUM array.
  void fill_unwritten(Storage& storage, const Buffer* buffer) const;

  CoreState& state(int core) {
    settle();
    return *cores_[static_cast<std::size_t>(core)].state;
  }

 private:
  struct CoreRecord {
    std::vector<std::unique_ptr<Instruction>> instructions;
    std::unique_ptr<CoreState> state;
    bool left_out = false;
    int blocks = 0;           // of nl.no_reorder around the next instruction
    std::uint32_t block = 0;  // number of the outermost
  };

  void note_chosen_rows(const Instruction& instruction);
  void note(const Error& error, int core);
  void go_on_after(int core, const Instruction& instruction, const Error& error);

  Machine machine_;
  ProgramOptions options_;
  std::shared_ptr<Executor> executor_;
  std::vector<CoreRecord> cores_;
  TensorBytes bytes_;
  std::vector<BufferPtr> buffers_;
  std::vector<DType> dtypes_;  // by buffer id, as it was made
  std::vector<Argument> arguments_;
  std::vector<std::string> files_;
  std::unordered_map<std::string, std::uint32_t> file_index_;
  Position position_;
  AccessList scratch_;
  std::vector<Finding> findings_;
  std::unordered_map<const Instruction*, std::vector<ChosenRows>> chosen_rows_;
};

}  // namespace trena
