// Tensors that the kernel placed by `address=` read bytes that another one wrote (nki.md §5.1-4):
//   `address-overlap`  written over them after their own: the addresses let the two live at once
//   `address-stale`    left there from before, where the tensor was written only in part
// A tensor that nobody wrote under its own name is a second name for another one's bytes:
// races.cpp.
#include <fmt/format.h>

#include "trena/check/coverage.h"
#include "trena/check/rule.h"

namespace trena {
namespace {

class AddressOverlap final : public Rule {
 public:
  explicit AddressOverlap(const Subject& subject) : subject_(subject) {}

  void visit(const Visit& visit) override {
    for (Footprint& footprint : visit.footprints) {
      const bool reads = !footprint.writes() || footprint.kind() == AccessKind::kUpdate;
      if (reads && footprint.has_address()) {
        if (const auto first = visit.contents.first_write(footprint.buffer())) {
          read(visit, footprint, *first);
        }
      }
    }
  }

 private:
  // From the newest write back, as long as bytes are left that no newer one wrote.
  void read(const Visit& visit, Footprint& footprint, std::int64_t first_write) {
    const Buffer* buffer = &footprint.buffer();
    const Region& region = footprint.region();
    const auto beneath = footprint.beneath();
    if (!beneath.empty() && beneath[0]->buffer == buffer && covers(beneath[0]->region, region)) {
      return;  // as nearly always
    }
    Remainder left(region);
    for (const Contents::Write* write : beneath) {
      if (write->buffer == buffer) {
        left.remove(write->region);
      } else if (left.meets(write->region)) {
        // Whoever wants unwritten bytes to read as the vendor's sentinel moves tiles used in part.
        const bool stale = write->number < first_write;
        if (!stale || subject_.program.options().unwritten == UnwrittenPolicy::kRefuse) {
          report(visit, footprint.tensor(), *write, stale);
        }
        return;
      }
      if (left.empty()) {
        return;
      }
    }
  }

  void report(const Visit& visit, const Tensor& tensor, const Contents::Write& write, bool stale) {
    const Instruction& reader = visit.instruction;
    const Address& address = *tensor.buffer()->address;
    const std::string there = subject_.findings.place(write.instruction->position);
    Finding finding;
    finding.core = visit.core;
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
