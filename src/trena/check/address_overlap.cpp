// Tensors that the kernel placed by `address=` read bytes that another one wrote (nki.md §5.1-4):
//   `address-overlap`  written over them after their own: the addresses let the two live at once
//   `address-stale`    left there from before, where the tensor was written only in part
// A tensor that nobody wrote under its own name is a second name for another one's bytes:
// races.cpp.
#include <fmt/format.h>

#include <map>
#include <unordered_map>

#include "trena/check/coverage.h"
#include "trena/check/rule.h"

namespace trena {
namespace {

struct Write {
  const Instruction* instruction;
  const Buffer* buffer;
  Region region;
  std::int64_t number;  // in order of writing
};

class AddressOverlap final : public Rule {
 public:
  explicit AddressOverlap(const Subject& subject) : subject_(subject) {}

  void visit(int core, const Instruction& instruction, const AccessList& accesses) override {
    if (core != core_) {
      core_ = core;
      written_.clear();
      arrays_.clear();
    }
    for (const Access& access : accesses) {
      const Buffer* buffer = access.tensor->buffer().get();
      const bool reads = only_reads(access.kind) || access.kind == AccessKind::kUpdate;
      if (buffer->address && reads && written_.contains(buffer)) {
        read(instruction, *access.tensor);
      }
    }
    for (const Access& access : accesses) {
      const Buffer* buffer = access.tensor->buffer().get();
      if (buffer->address && !only_reads(access.kind)) {
        written_.emplace(buffer, next_);
        write({&instruction, buffer, region_in_memory(*access.tensor), next_++});
      }
    }
  }

 private:
  void write(Write write) {
    Boxed<Write>& writes = arrays_[write.buffer->space];
    const Region region = write.region;
    writes.erase(region, [&](const Write& old) { return covers(region, old.region); });
    writes.add(region, std::move(write));
  }

  // From the newest write back, as long as bytes are left that no newer one wrote.
  void read(const Instruction& reader, const Tensor& tensor) {
    const Region region = region_in_memory(tensor);
    const Buffer* buffer = tensor.buffer().get();
    Remainder left(region);
    arrays_[tensor.space()].search(region, [&](const Write& write) {
      if (write.buffer == buffer) {
        left.remove(write.region);
      } else if (left.meets(write.region)) {
        // Whoever wants unwritten bytes to read as the vendor's sentinel moves tiles used in part.
        const bool stale = write.number < written_.at(buffer);
        if (!stale || subject_.program.options().unwritten == UnwrittenPolicy::kRefuse) {
          report(reader, tensor, write, stale);
        }
        return false;
      }
      return !left.empty();
    });
  }

  void report(const Instruction& reader, const Tensor& tensor, const Write& write, bool stale) {
    const Address& address = *tensor.buffer()->address;
    const std::string there = subject_.findings.place(write.instruction->position);
    Finding finding;
    finding.core = core_;
    if (stale) {
      finding.id = "address-stale";
      finding.text = {
          .rule = "a tensor is read where it was written itself",
          .here = fmt::format("{} reads {} at partition {}, byte {}; a part of it still holds {}, "
                              "written at {}",
                              reader.name(), tensor.describe(), address.partition,
                              address.offset_bytes, quoted(*write.buffer), there),
          .device = "the reader gets the other tensor's values",
          .fix = "write all of the tensor first, or read only the part that was written"};
    } else {
      finding.severity = Severity::kError;
      finding.id = "address-overlap";
      finding.text = {
          .rule = "tensors whose addresses overlap are not alive at once",
          .here = fmt::format("{} reads {} at partition {}, byte {}; {} was written over it at {}",
                              reader.name(), tensor.describe(), address.partition,
                              address.offset_bytes, quoted(*write.buffer), there),
          .device = "the reader gets the other tensor's values",
          .fix = "give one of them another address, or finish reading before the other is written"};
    }
    subject_.findings.add(std::move(finding), reader.position, write.instruction->position);
  }

  const Subject subject_;
  int core_ = -1;
  std::map<Space, Boxed<Write>> arrays_;
  std::unordered_map<const Buffer*, std::int64_t> written_;  // number of the first write
  std::int64_t next_ = 0;
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
