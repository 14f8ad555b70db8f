#include "trena/core/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

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

void check_shape(const BufferRequest& request) {
  const std::size_t least = request.space == Space::kHbm ? 0 : 1;
  bool positive = true;
  for (const std::int64_t size : request.shape) {
    positive = positive && size > 0;
  }
  if (positive && request.shape.size() >= least && request.shape.size() <= Tensor::kMaxRank) {
    return;
  }
  throw Error(ErrorKind::kUsage, "tensor-shape",
              {.rule = fmt::format("a tensor in {} has {} to {} dimensions of at least one element",
                                   name(request.space), least, Tensor::kMaxRank),
               .here = fmt::format("shape [{}]", fmt::join(request.shape, ", "))});
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

namespace {

// NaN, 4 in integers, 0 where the type has neither; as bits of one element.
std::uint64_t sentinel_bits(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 0x7e00;
    case DType::kBfloat16:
      return 0x7fc0;
    case DType::kFloat32:
    case DType::kTfloat32:
      return 0x7fc00000;
    case DType::kFloat64:
      return 0x7ff8000000000000;
    case DType::kFloat8E8m0fnu:
      return 0xff;
    case DType::kBool:
      return 1;
    default:
      return is_packed_x4(dtype) ? 0 : is_float8(dtype) ? 0x7f : 4;
  }
}

void fill_sentinel(Storage& storage, DType dtype) {
  const std::uint64_t bits = sentinel_bits(dtype);
  const std::size_t size = size_bytes(dtype);
  for (std::size_t offset = 0; offset + size <= storage.size_bytes(); offset += size) {
    std::memcpy(storage.data() + offset, &bits, size);
  }
  storage.written().mark_all();
}

// No tensor is larger than all of HBM, so that sizes below fit into 64 bits.
void check_size(const Machine& machine, const BufferRequest& request) {
  double bytes = static_cast<double>(size_bytes(request.dtype));
  for (const std::int64_t size : request.shape) {
    bytes *= static_cast<double>(size);
  }
  if (bytes <= machine.hbm_gib() * 0x1p30) {
    return;
  }
  const bool hbm = request.space == Space::kHbm;
  throw Error(ErrorKind::kCapacity, fmt::format("{}-capacity", name(request.space)),
              {.rule = fmt::format("a tensor fits into {}", name(request.space)),
               .here = fmt::format("shape [{}] {}", fmt::join(request.shape, ", "),
                                   trena::name(request.dtype)),
               .limit = hbm ? fmt::format("{} GiB on {}", machine.hbm_gib(), machine.chip.name)
                            : "less than all of HBM"});
}

// Does a tensor of these rows fit into its memory at all? `what` describes it.
void check_capacity(const Machine& machine, const Buffer& buffer, const std::string& what) {
  const bool psum = buffer.space == Space::kPsum;
  const std::int64_t partition_limit =
      psum ? machine.core.psum.partitions : machine.core.sbuf.partitions;
  if (buffer.rows > partition_limit) {
    throw Error(ErrorKind::kCapacity, "partition-limit",
                {.rule = fmt::format("the first dimension of a tensor in {} is its partitions",
                                     name(buffer.space)),
                 .here = fmt::format("{} asks for {} partitions", what, buffer.rows),
                 .limit = fmt::format("{} partitions", partition_limit),
                 .fix = "split the first dimension into tiles of at most nl.tile_size.pmax"});
  }
  const std::int64_t offset = buffer.address ? buffer.address->offset_bytes : 0;
  const std::int64_t limit =
      psum ? machine.core.psum.partition_bytes() : machine.core.sbuf.usable_bytes();
  if (offset < 0 || offset + buffer.row_bytes > limit) {
    throw Error(
        ErrorKind::kCapacity, psum ? "psum-capacity" : "sbuf-capacity",
        {.rule = fmt::format("a tensor in {} stays inside its partitions", name(buffer.space)),
         .here = fmt::format("{} needs {} bytes per partition from byte {}", what, buffer.row_bytes,
                             offset),
         .limit = fmt::format("{} usable bytes per partition on {}", limit, machine.chip.name),
         .fix = "use a smaller tile"});
  }
  if (buffer.address) {
    const int first = buffer.address->partition;
    if (first < 0 || first + buffer.rows > partition_limit) {
      throw Error(ErrorKind::kCapacity, "address-partition",
                  {.rule = "a tensor with an address stays inside the memory",
                   .here = fmt::format("partitions {} to {}", first, first + buffer.rows - 1),
                   .limit = fmt::format("partitions 0 to {}", partition_limit - 1)});
    }
    if (psum && offset % machine.core.psum.bank_bytes != 0) {
      throw Error(ErrorKind::kIllegal, "psum-bank-start",
                  {.rule = "a PSUM tensor starts at the start of a bank",
                   .here = fmt::format("address offset {} bytes", offset),
                   .limit = fmt::format("multiples of {} bytes", machine.core.psum.bank_bytes)});
    }
  }
}

}  // namespace

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
          })) {
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

std::shared_ptr<Storage>& Program::array(int core, Space space) {
  CoreRecord& stream = cores_[static_cast<std::size_t>(core)];
  std::shared_ptr<Storage>& storage = space == Space::kPsum ? stream.psum : stream.sbuf;
  if (storage == nullptr) {
    const std::int64_t bytes =
        space == Space::kPsum
            ? machine_.core.psum.partitions * machine_.core.psum.partition_bytes()
            : machine_.core.sbuf.partitions * machine_.core.sbuf.partition_bytes();
    storage = Storage::allocate(static_cast<std::size_t>(bytes));
    storage->set_producer(executor_);
    if (options_.unwritten == UnwrittenPolicy::kSentinel) {
      fill_sentinel(*storage, DType::kFloat32);
    }
  }
  return storage;
}

// Bytes of tensors that nobody can name any more are used again before the host is asked for more:
// a kernel that makes a tile per step needs the memory of the tiles it still holds, not of all it
// ever made.
constexpr std::int64_t kCollectEveryBytes = std::int64_t{32} << 20;

std::shared_ptr<Storage> Program::allocate(std::int64_t size_bytes) {
  bytes_since_collect_ += size_bytes;
  if (bytes_since_collect_ > kCollectEveryBytes) {
    collect();
    bytes_since_collect_ = 0;
  }
  std::vector<std::shared_ptr<Storage>>& spare = spare_[static_cast<std::size_t>(size_bytes)];
  if (spare.empty()) {
    auto fresh = Storage::allocate(static_cast<std::size_t>(size_bytes));
    fresh->set_producer(executor_);
    return fresh;
  }
  std::shared_ptr<Storage> storage = std::move(spare.back());
  spare.pop_back();
  storage->written().mark_none();
  return storage;
}

void Program::collect() {
  const auto out_of_reach = [&](const BufferPtr& buffer) {
    if (buffer->storage == nullptr) {
      return true;
    }
    if (buffer->storage.use_count() > 1) {
      return false;
    }
    spare_[buffer->storage->size_bytes()].push_back(std::move(buffer->storage));
    buffer->storage = nullptr;
    buffer->matmul_written.reset();
    return true;
  };
  resident_.erase(std::remove_if(resident_.begin(), resident_.end(), out_of_reach),
                  resident_.end());
}

Tensor Program::make_tensor(int core, const BufferRequest& request) {
  check_shape(request);
  check_size(machine_, request);
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
    if (request.address) {
      buffer->storage = array(core, request.space);
      buffer->origin_bytes =
          request.address->partition * buffer->pitch_bytes + request.address->offset_bytes;
    } else {
      buffer->storage = allocate(buffer->size_bytes());
      if (options_.unwritten == UnwrittenPolicy::kSentinel) {
        fill_sentinel(*buffer->storage, request.dtype);
      }
      resident_.push_back(buffer);
    }
    if (request.space == Space::kPsum) {
      buffer->matmul_written = std::make_unique<WrittenBits>(buffer->storage->size_bytes());
    }
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
    buffer->storage =
        Storage::alias(data, static_cast<std::size_t>(buffer->size_bytes()), std::move(owner));
    buffer->storage->set_producer(executor_);
    find_aliases(*buffer->storage);
    external_.push_back(buffer->storage);
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

// One array of the caller may be two arguments: what writes one then changes the other.
void Program::find_aliases(const Storage& storage) {
  const auto meets = [&](const std::shared_ptr<Storage>& other) {
    return storage.data() < other->data() + other->size_bytes() &&
           other->data() < storage.data() + storage.size_bytes();
  };
  if (std::any_of(external_.begin(), external_.end(), meets)) {
    executor_->stay_in_step();
  }
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
