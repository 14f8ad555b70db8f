// `self-overlap`: a transfer whose destination shares bytes with its source. Descriptors run on
// many DMA engines in no order, so a byte may be overwritten before it is read.
#include <fmt/format.h>

#include "trena/check/coverage.h"
#include "trena/check/rule.h"

namespace trena {
namespace {

// The same elements at the same places: each byte is written where it was read.
bool same_view(const Tensor& a, const Tensor& b) {
  if (a.offset_bytes() != b.offset_bytes() || a.dtype() != b.dtype() || a.rank() != b.rank()) {
    return false;
  }
  for (int axis = 0; axis < a.rank(); ++axis) {
    if (!(a.dim(axis) == b.dim(axis))) {
      return false;
    }
  }
  return a.indirection() == b.indirection();
}

class SelfOverlap final : public Rule {
 public:
  explicit SelfOverlap(const Subject& subject) : subject_(subject) {}

  void visit(int core, const Instruction& instruction, const AccessList& accesses) override {
    if (!instruction.is_dma()) {
      return;
    }
    for (const Access& target : accesses) {
      if (only_reads(target.kind)) {
        continue;
      }
      for (const Access& source : accesses) {
        if (only_reads(source.kind) && source.tensor->buffer() == target.tensor->buffer()) {
          compare(core, instruction, *target.tensor, *source.tensor);
        }
      }
    }
  }

 private:
  void compare(int core, const Instruction& instruction, const Tensor& dst, const Tensor& src) {
    const Region written = region_of(dst);
    const Region read = region_of(src);
    // An index may choose rows that do not meet.
    if (!written.exact || !read.exact || same_view(dst, src) || !meet(written, read)) {
      return;
    }
    Finding finding;
    finding.id = "self-overlap";
    finding.core = core;
    finding.text = {.rule = "a transfer's destination shares no byte with its source",
                    .here = fmt::format("{} from {} to {}, which overlap", instruction.name(),
                                        src.describe(), dst.describe()),
                    .device = "some bytes are overwritten before they are read",
                    .fix = "copy through another tensor"};
    subject_.findings.add(std::move(finding), instruction.position);
  }

  const Subject subject_;
};

}  // namespace

RulePtr make_self_overlap(const Subject& subject) { return std::make_unique<SelfOverlap>(subject); }

}  // namespace trena
