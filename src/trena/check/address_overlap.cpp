#include <fmt/format.h>

#include <array>
#include <map>
#include <unordered_set>

#include "trena/check/check.h"
#include "trena/memory/region.h"

namespace trena {
namespace {

// Who wrote the bytes of one quadrant of partitions last. Quadrants are how tiles share a range of
// bytes (hw.md §1.5: start partitions are multiples of 32).
class LastWriters {
 public:
  struct Writer {
    const Tensor* tensor;  // the operand of an instruction of the program
    Position position;
  };

  void write(std::int64_t first, std::int64_t past, Writer writer) {
    cut(first);
    cut(past);
    writers_.erase(writers_.lower_bound(first), writers_.lower_bound(past));
    writers_.emplace(first, Entry{past, writer});
  }

  // A writer of some byte that `reader` reads in [first, past), through another tensor.
  const Writer* foreign(std::int64_t first, std::int64_t past, const Tensor& reader) const {
    auto entry = writers_.upper_bound(first);
    if (entry != writers_.begin()) {
      --entry;
    }
    for (; entry != writers_.end() && entry->first < past; ++entry) {
      const Writer& writer = entry->second.writer;
      if (entry->second.past > first && writer.tensor->buffer() != reader.buffer() &&
          share_bytes(reader, *writer.tensor)) {
        return &writer;
      }
    }
    return nullptr;
  }

 private:
  struct Entry {
    std::int64_t past;
    Writer writer;
  };

  // Makes `at` a border between entries.
  void cut(std::int64_t at) {
    auto entry = writers_.lower_bound(at);
    if (entry == writers_.begin()) {
      return;
    }
    --entry;
    if (entry->first < at && entry->second.past > at) {
      writers_.emplace(at, entry->second);
      entry->second.past = at;
    }
  }

  std::map<std::int64_t, Entry> writers_;
};

class Memory {
 public:
  explicit Memory(std::int64_t quadrant_partitions) : quadrant_partitions_(quadrant_partitions) {}

  template <typename Fn>
  void for_each_quadrant(const Tensor& tensor, Fn&& fn) {
    const Buffer& buffer = *tensor.buffer();
    const Region region = region_of(tensor);
    const std::int64_t base = buffer.address->offset_bytes;
    const std::int64_t first =
        (buffer.address->partition + region.row_first) / quadrant_partitions_;
    const std::int64_t last = (buffer.address->partition + region.row_last) / quadrant_partitions_;
    for (std::int64_t quadrant = first; quadrant <= last; ++quadrant) {
      fn(quadrants_[static_cast<std::size_t>(quadrant)], base + region.byte_first,
         base + region.byte_last + 1);
    }
  }

 private:
  std::int64_t quadrant_partitions_;
  std::map<std::size_t, LastWriters> quadrants_;
};

[[noreturn]] void report(const Program& program, const Instruction& reader, const Tensor& tensor,
                         const LastWriters::Writer& writer) {
  const SourceLine other = program.source_line(writer.position);
  const std::string& name = writer.tensor->buffer()->name;
  Error error(
      ErrorKind::kHazard, "address-overlap",
      {.rule = "tensors whose addresses overlap are not alive at once",
       .here = fmt::format("{} reads {} at partition {}, byte {}; {} was written over it at {}:{}",
                           reader.name(), tensor.describe(), tensor.buffer()->address->partition,
                           tensor.buffer()->address->offset_bytes,
                           name.empty() ? "another tensor" : fmt::format("`{}`", name),
                           other.file.substr(other.file.rfind('/') + 1), other.line),
       .device = "the reader gets the other tensor's values",
       .fix = "give one of them another address, or finish reading before the other is written"});
  error.set_where(program.source_line(reader.position));
  throw error;
}

bool writes(AccessKind kind) { return kind != AccessKind::kRead && kind != AccessKind::kReadCarry; }

void check_core(const Program& program, int core) {
  std::map<Space, Memory> memories;
  const std::int64_t quadrant = program.machine().core.sbuf.quadrant_partitions;
  memories.emplace(Space::kSbuf, Memory(quadrant));
  memories.emplace(Space::kPsum, Memory(quadrant));
  std::unordered_set<const Buffer*> written;
  AccessList list;
  for (const auto& instruction : program.instructions(core)) {
    list.clear();
    instruction->access(list);
    for (const Access& access : list) {
      const Buffer* buffer = access.tensor->buffer().get();
      // A tensor that never was written itself is a second name for another one's bytes: not a
      // mistake.
      if (!buffer->address || access.kind == AccessKind::kWrite ||
          access.kind == AccessKind::kAccumulate || !written.contains(buffer)) {
        continue;
      }
      memories.at(buffer->space)
          .for_each_quadrant(*access.tensor, [&](LastWriters& writers, std::int64_t first,
                                                 std::int64_t past) {
            if (const LastWriters::Writer* foreign = writers.foreign(first, past, *access.tensor)) {
              report(program, *instruction, *access.tensor, *foreign);
            }
          });
    }
    for (const Access& access : list) {
      const Buffer* buffer = access.tensor->buffer().get();
      if (buffer->address && writes(access.kind)) {
        written.insert(buffer);
        memories.at(buffer->space)
            .for_each_quadrant(*access.tensor,
                               [&](LastWriters& writers, std::int64_t first, std::int64_t past) {
                                 writers.write(first, past, {access.tensor, instruction->position});
                               });
      }
    }
  }
}

}  // namespace

void check_address_overlap(const Program& program) {
  bool manual = false;
  for (const BufferPtr& buffer : program.buffers()) {
    manual = manual || buffer->address.has_value();
  }
  for (int core = 0; manual && core < program.core_count(); ++core) {
    check_core(program, core);
  }
}

}  // namespace trena
