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

  void visit(const Visit& visit) override {
    if (!visit.instruction.is_dma()) {
      return;
    }
    for (Footprint& target : visit.footprints) {
      for (Footprint& source : visit.footprints) {
        if (target.writes() && !source.writes() && &source.buffer() == &target.buffer()) {
          compare(visit, target, source);
        }
      }
    }
  }

 private:
  void compare(const Visit& visit, Footprint& target, Footprint& source) {
    const Tensor& dst = target.tensor();
    const Tensor& src = source.tensor();
    const Region& written = target.region();
    const Region& read = source.region();
    // An index may choose rows that do not meet.
    if (!written.exact || !read.exact || same_view(dst, src) || !meet(written, read)) {
      return;
    }
    Finding finding;
    finding.id = "self-overlap";
    finding.core = visit.core;
    finding.text = {.rule = "a transfer's destination shares no byte with its source",
                    .here = fmt::format("{} from {} to {}, which overlap", visit.instruction.name(),
                                        src.describe(), dst.describe()),
                    .device = "some bytes are overwritten before they are read",
                    .fix = "copy through another tensor"};
    subject_.findings.add(std::move(finding), visit.instruction.position);
  }

  const Subject subject_;
};

}  // namespace

RulePtr make_self_overlap(const Subject& subject) { return std::make_unique<SelfOverlap>(subject); }

}  // namespace trena
