// `address-overlap`: a tensor with a manual address is read after another tensor was written over
// its bytes. The kernel's addresses let the two live at once; the device would read the other
// tensor's values (nki.md §5.1-4).
#include <fmt/format.h>

#include <map>
#include <unordered_set>

#include "trena/check/rule.h"
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

bool writes(AccessKind kind) { return !reads_only(kind); }

class AddressOverlap final : public Rule {
 public:
  explicit AddressOverlap(const Subject& subject) : subject_(subject) {}

  void visit(int core, const Instruction& instruction, const AccessList& accesses) override {
    if (core != core_) {
      start(core);
    }
    for (const Access& access : accesses) {
      const Buffer* buffer = access.tensor->buffer().get();
      // A tensor that never was written itself is a second name for another one's bytes: not a
      // mistake.
      if (!buffer->address || access.kind == AccessKind::kWrite ||
          access.kind == AccessKind::kAccumulate || !written_.contains(buffer)) {
        continue;
      }
      memories_.at(buffer->space)
          .for_each_quadrant(*access.tensor, [&](LastWriters& writers, std::int64_t first,
                                                 std::int64_t past) {
            if (const LastWriters::Writer* foreign = writers.foreign(first, past, *access.tensor)) {
              report(instruction, *access.tensor, *foreign);
            }
          });
    }
    for (const Access& access : accesses) {
      const Buffer* buffer = access.tensor->buffer().get();
      if (buffer->address && writes(access.kind)) {
        written_.insert(buffer);
        memories_.at(buffer->space)
            .for_each_quadrant(*access.tensor,
                               [&](LastWriters& writers, std::int64_t first, std::int64_t past) {
                                 writers.write(first, past, {access.tensor, instruction.position});
                               });
      }
    }
  }

 private:
  void start(int core) {
    core_ = core;
    written_.clear();
    memories_.clear();
    const std::int64_t quadrant = subject_.program.machine().core.sbuf.quadrant_partitions;
    memories_.emplace(Space::kSbuf, Memory(quadrant));
    memories_.emplace(Space::kPsum, Memory(quadrant));
  }

  void report(const Instruction& reader, const Tensor& tensor, const LastWriters::Writer& writer) {
    const Address& address = *tensor.buffer()->address;
    Finding finding;
    finding.severity = Severity::kError;
    finding.id = "address-overlap";
    finding.core = core_;
    finding.text = {
        .rule = "tensors whose addresses overlap are not alive at once",
        .here =
            fmt::format("{} reads {} at partition {}, byte {}; {} was written over it at {}",
                        reader.name(), tensor.describe(), address.partition, address.offset_bytes,
                        quoted(*writer.tensor->buffer()), subject_.findings.place(writer.position)),
        .device = "the reader gets the other tensor's values",
        .fix = "give one of them another address, or finish reading before the other is written"};
    subject_.findings.add(std::move(finding), reader.position, writer.position);
  }

  const Subject subject_;
  int core_ = -1;
  std::map<Space, Memory> memories_;
  std::unordered_set<const Buffer*> written_;
};

}  // namespace

RulePtr make_address_overlap(const Subject& subject) {
  for (const BufferPtr& buffer : subject.program.buffers()) {
    if (buffer->address) {
      return std::make_unique<AddressOverlap>(subject);
    }
  }
  return nullptr;
}

}  // namespace trena
