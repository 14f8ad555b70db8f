#include "trena/core/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "trena/core/tensor_limits.h"
#include "trena/isa/dma/indirect.h"
#include "trena/isa/indirect.h"
#include "trena/memory/rows.h"

namespace trena {
namespace {

std::int64_t product(std::span<const std::int64_t> sizes) {
  std::int64_t result = 1;
  for (const std::int64_t size : sizes) {
    result *= size;
  }
  return result;
}

// Rows and bytes per row: partitions on the chip, rows of the last dimension in HBM.
struct Geometry {
  std::int64_t rows;
  std::int64_t row_bytes;
};

Geometry geometry(Space space, DType dtype, std::span<const std::int64_t> shape) {
  const auto width = static_cast<std::int64_t>(size_bytes(dtype));
  if (space == Space::kHbm) {
    const std::int64_t last = shape.empty() ? 1 : shape.back();
    const std::int64_t outer = shape.empty() ? 1 : product(shape.first(shape.size() - 1));
    return {outer, last * width};
  }
  return {shape[0], product(shape.subspan(1)) * width};
}

// Operands that no instruction takes; what else is wrong with it follows from that. Views that a
// kernel may make and not use, beyond the end of a tensor or of nothing; tensors that Python kept
// from an earlier launch, whose memory belongs to others now.
void refuse_useless_operands(const AccessList& accesses, const std::vector<BufferPtr>& buffers) {
  for (const Access& access : accesses) {
    const BufferPtr& buffer = access.tensor->buffer();
    if (buffer->id >= buffers.size() || buffers[buffer->id] != buffer) {
      throw Error(ErrorKind::kUsage, "foreign-tensor",
                  {.rule = "a tensor lives as long as the launch that made it",
                   .here = access.tensor->describe() + " is of another launch",
                   .fix = "make it inside the kernel; keep nothing in globals or caches"});
    }
    const Indirection* indirection = access.tensor->indirection().get();
    if (indirection != nullptr && indirection->escape_is_static) {
      throw Error(ErrorKind::kBounds, "out-of-bounds", *indirection->escape);
    }
  }
}

// Is the instruction without effect, because a run-time index is outside its tensor and it skips
// that?
bool is_skipped(const Instruction& instruction, const AccessList& accesses) {
  for (const Access& access : accesses) {
    const Indirection* indirection = access.tensor->indirection().get();
    if (indirection == nullptr || !indirection->escape) {
      continue;
    }
    if (instruction.skips_out_of_bounds()) {
      return true;
    }
    ErrorText text = *indirection->escape;
    text.device = "a run-time error with oob_mode.error";
    text.fix = "clamp the index, or pass oob_mode=oob_mode.skip to a DMA";
    throw Error(ErrorKind::kBounds, "out-of-bounds", std::move(text));
  }
  return false;
}

// A refused instruction leaves the program as it was; what Trena does not know, or has wrong, does
// not.
bool may_go_on_after(ErrorKind kind) {
  return kind == ErrorKind::kIllegal || kind == ErrorKind::kBounds ||
         kind == ErrorKind::kUnwritten || kind == ErrorKind::kCapacity;
}

}  // namespace

void check_core_count(const Machine& machine, int core_count) {
  const std::vector<std::int64_t>& sizes = machine.chip.logical_core_sizes;
  if (std::find(sizes.begin(), sizes.end(), core_count) != sizes.end()) {
    return;
  }
  throw Error(
      ErrorKind::kIllegal, "lnc-size",
      {.rule = "a kernel runs on as many physical cores as the chip joins into a logical one",
       .here = fmt::format("kernel[{}] on {}", core_count, machine.chip.name),
       .limit = fmt::format("{}", fmt::join(sizes, " or ")),
       .fix = "launch kernel[1], or choose another target"});
}

Program::Program(Machine machine, int core_count, ProgramOptions options)
    : machine_(std::move(machine)),
      options_(options),
      executor_(std::make_shared<Executor>(
          core_count, [this](Position position) { return source_line(position); },
          [this](const Error& error, const Instruction&, int core) {
            const bool goes_on = options_.go_on && may_go_on_after(error.kind());
            if (goes_on) {
              note(error, core);  // it is recorded, and its results count as written
            }
            return goes_on;
          })),
      bytes_(machine_, core_count, options.unwritten, executor_) {
  for (int core = 0; core < core_count; ++core) {
    cores_.emplace_back().state = std::make_unique<CoreState>(machine_, core);
  }
}

// Tensors may outlive the program, and with them the executor: it must not look back.
Program::~Program() {
  try {
    settle();
  } catch (...) {
    // Whoever wanted the values would have settled before.
  }
}

Tensor Program::make_tensor(int core, const BufferRequest& request) {
  check_shape(request.space, request.shape);
  check_size(machine_, request.space, request.dtype, request.shape);
  const Geometry size = geometry(request.space, request.dtype, request.shape);
  auto buffer = std::make_shared<Buffer>();
  buffer->space = request.space;
  buffer->role = request.role;
  buffer->id = static_cast<std::uint32_t>(buffers_.size());
  buffer->name = request.name;
  buffer->where = source_line(position_);
  buffer->rows = size.rows;
  buffer->row_bytes = size.row_bytes;
  buffer->pitch_bytes = size.row_bytes;
  buffer->address = request.address;
  if (request.space != Space::kHbm) {
    check_capacity(
        machine_, *buffer,
        fmt::format("shape [{}] {}", fmt::join(request.shape, ", "), trena::name(request.dtype)));
    if (request.address) {
      buffer->pitch_bytes = request.space == Space::kPsum ? machine_.core.psum.partition_bytes()
                                                          : machine_.core.sbuf.partition_bytes();
    }
  }
  if (options_.values) {
    bytes_.provide(buffer, request.dtype, core);
  }
  buffers_.push_back(buffer);
  dtypes_.push_back(request.dtype);
  return Tensor(std::move(buffer), request.dtype, request.shape);
}

Tensor Program::make_external(DType dtype, std::span<const std::int64_t> shape,
                              std::string_view name, std::byte* data, std::shared_ptr<void> owner,
                              BufferRole role) {
  const Geometry size = geometry(Space::kHbm, dtype, shape);
  auto buffer = std::make_shared<Buffer>();
  buffer->space = Space::kHbm;
  buffer->role = role;
  buffer->id = static_cast<std::uint32_t>(buffers_.size());
  buffer->name = name;
  buffer->where = source_line(position_);
  buffer->rows = size.rows;
  buffer->row_bytes = size.row_bytes;
  buffer->pitch_bytes = size.row_bytes;
  if (options_.values) {
    bytes_.provide_external(*buffer, data, std::move(owner));
    if (options_.hardware_order) {
      executor_->settle();  // an alias of it may be under way
      arguments_.push_back({buffer, {data, data + buffer->size_bytes()}});
    }
  }
  buffers_.push_back(buffer);
  dtypes_.push_back(dtype);
  return Tensor(std::move(buffer), dtype, shape);
}

void Program::fill_unwritten(Storage& storage, const Buffer* buffer) const {
  if (options_.unwritten == UnwrittenPolicy::kSentinel) {
    fill_sentinel(storage, buffer != nullptr ? dtypes_[buffer->id] : DType::kFloat32);
    return;
  }
  std::memset(storage.data(), 0xff, storage.size_bytes());
  storage.written().mark_all();
}

void Program::append(int core, std::unique_ptr<Instruction> instruction) {
  CoreRecord& stream = cores_[static_cast<std::size_t>(core)];
  instruction->position = position_;
  instruction->order_block = stream.blocks > 0 ? stream.block : 0;
  try {
    scratch_.clear();
    instruction->access(scratch_);
    refuse_useless_operands(scratch_, buffers_);
    instruction->check(machine_);
    check_indirection(machine_, *instruction, scratch_);
    const bool skipped = is_skipped(*instruction, scratch_);
    if (options_.values && !skipped) {
      executor_->execute(*instruction, scratch_, *stream.state);
      note_chosen_rows(*instruction);
    } else if (options_.values) {
      scratch_.unpin();
    }
  } catch (Error& error) {
    if (!error.has_where()) {
      error.set_where(source_line(position_));
    }
    if (!options_.go_on || !may_go_on_after(error.kind())) {
      throw;
    }
    go_on_after(core, *instruction, error);
    stream.left_out = true;
    return;
  }
  stream.left_out = false;
  stream.instructions.push_back(std::move(instruction));
}

// An index keeps its bytes only until somebody writes it again: what it chose is read at once.
void Program::note_chosen_rows(const Instruction& instruction) {
  if (core_count() == 1 || !instruction.is_dma() || !instruction.judges_values()) {
    return;
  }
  scratch_.clear();
  instruction.chosen_by_index(scratch_);
  for (const Access& access : scratch_) {
    const Tensor& view = *access.tensor;
    if (is_vector_indirect(view) && !view.on_chip()) {
      for (const Tensor& rows : trena::chosen_rows(view)) {
        chosen_rows_[&instruction].push_back(
            {view.buffer().get(), !only_reads(access.kind), region_of(rows)});
      }
    }
  }
}

std::span<const Program::ChosenRows> Program::chosen_rows(const Instruction& instruction) const {
  const auto found = chosen_rows_.find(&instruction);
  return found != chosen_rows_.end() ? std::span<const ChosenRows>(found->second)
                                     : std::span<const ChosenRows>();
}

void Program::keep_order(int core, bool on) {
  CoreRecord& stream = cores_[static_cast<std::size_t>(core)];
  stream.block += on && stream.blocks == 0 ? 1 : 0;
  stream.blocks += on ? 1 : -1;
}

void Program::note(const Error& error, int core) {
  Finding finding;
  finding.kind = error.kind();
  finding.severity = Severity::kError;
  finding.id = error.id();
  finding.text = error.text();
  finding.where = error.where();
  finding.core = core;
  for (Finding& known : findings_) {
    if (known.id == finding.id && known.where.line == finding.where.line &&
        known.where.file == finding.where.file) {
      ++known.count;
      return;
    }
  }
  findings_.push_back(std::move(finding));
}

// The instruction is left out; readers of its results are not to be blamed for that.
void Program::go_on_after(int core, const Instruction& instruction, const Error& error) {
  note(error, core);
  scratch_.clear();
  instruction.access(scratch_);
  for (const Access& access : scratch_) {
    const bool direct = access.tensor->indirection() == nullptr;
    if (options_.values && !only_reads(access.kind) && direct &&
        access.tensor->buffer()->has_data()) {
      mark_written(*access.tensor);
    }
  }
  scratch_.unpin();
}

void Program::check_on(const Machine& machine) const {
  check_core_count(machine, core_count());
  SourceLine where;
  try {
    for (const BufferPtr& buffer : buffers_) {
      if (buffer->on_chip()) {
        where = buffer->where;
        const std::string label = buffer->name.empty() ? "a tensor" : buffer->name;
        check_capacity(machine, *buffer, label);
      }
    }
    for (const CoreRecord& stream : cores_) {
      for (const std::unique_ptr<Instruction>& instruction : stream.instructions) {
        where = source_line(instruction->position);
        instruction->check(machine);
      }
    }
  } catch (Error& error) {
    if (!error.has_where()) {
      error.set_where(where);
    }
    throw;
  }
}

std::uint32_t Program::intern_file(std::string_view path) {
  if (position_.file < files_.size() && files_[position_.file] == path) {
    return position_.file;  // one instruction after the other comes from the same file
  }
  const auto [entry, fresh] =
      file_index_.try_emplace(std::string(path), static_cast<std::uint32_t>(files_.size()));
  if (fresh) {
    files_.emplace_back(path);
  }
  return entry->second;
}

SourceLine Program::source_line(Position position) const {
  return {position.file < files_.size() ? files_[position.file] : std::string(), position.line};
}

std::size_t Program::instruction_count() const {
  std::size_t count = 0;
  for (const CoreRecord& stream : cores_) {
    count += stream.instructions.size();
  }
  return count;
}

}  // namespace trena
