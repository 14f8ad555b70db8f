// `unwritten-read` in a run for time alone, which has no bytes and so no written bits: the same
// rule over regions. With values the executor asks byte by byte.
#include <fmt/format.h>

#include <map>

#include "trena/check/coverage.h"
#include "trena/check/rule.h"

namespace trena {
namespace {

class Unwritten final : public Rule {
 public:
  explicit Unwritten(const Subject& subject) : subject_(subject) {}

  void visit(const Visit& visit) override {
    for (Footprint& footprint : visit.footprints) {
      const AccessKind kind = footprint.kind();
      const bool reads = kind == AccessKind::kRead || kind == AccessKind::kUpdate;
      if (reads && is_watched(footprint.tensor()) && !holds(visit.core, footprint)) {
        report(visit, footprint);
      }
    }
    for (Footprint& footprint : visit.footprints) {
      if (footprint.writes() && !footprint.has_address() && is_watched(footprint.tensor())) {
        written(footprint.buffer()).add(footprint.region());
      }
    }
  }

 private:
  // What two cores write is not known core by core; an index may choose any of its rows.
  bool is_watched(const Tensor& tensor) const {
    const Buffer& buffer = *tensor.buffer();
    const bool given = buffer.role == BufferRole::kInput || buffer.role == BufferRole::kConstant;
    const bool shared = buffer.role == BufferRole::kShared && subject_.program.core_count() > 1;
    const Indirection* indirection = tensor.indirection().get();
    return !given && !shared &&
           (indirection == nullptr || indirection->kind == Indirection::Kind::kScalar);
  }

  // Of a tensor without an address.
  Coverage& written(const Buffer& buffer) {
    if (buffer.id >= written_.size()) {
      written_.resize(buffer.id + 1);
    }
    return written_[buffer.id];
  }

  bool holds(int core, Footprint& footprint) {
    const Region& region = footprint.region();
    if (!footprint.has_address()) {
      return written(footprint.buffer()).holds(region);
    }
    std::vector<const Region*> parts;
    for (const Contents::Write* write : footprint.beneath()) {
      if (is_watched(*write->tensor)) {
        if (covers(write->region, region)) {
          return true;
        }
        parts.push_back(&write->region);
      }
    }
    return forgiven_[{core, footprint.buffer().space}].holds(region, std::move(parts));
  }

  void report(const Visit& visit, Footprint& footprint) {
    const Buffer& buffer = footprint.buffer();
    Finding finding;
    finding.kind = ErrorKind::kUnwritten;
    finding.severity = Severity::kWarning;  // the time does not depend on what is read
    finding.id = "unwritten-read";
    finding.core = visit.core;
    finding.text = {
        .rule = "every byte an instruction reads must have been written before",
        .here = fmt::format("{} reads {}, of which a part was never written",
                            visit.instruction.name(), footprint.tensor().describe()),
        .device = "whatever the memory held before: garbage that changes from run to run",
        .fix = "write the tensor first (dma_copy, memset), or read only the part that was written"};
    subject_.findings.add(std::move(finding), visit.instruction.position);
    Coverage& known =
        footprint.has_address() ? forgiven_[{visit.core, buffer.space}] : written(buffer);
    known.add(footprint.region());  // once is enough
  }

  const Subject subject_;
  std::vector<Coverage> written_;                       // by Buffer::id
  std::map<std::pair<int, Space>, Coverage> forgiven_;  // reported reads of addresses
};

}  // namespace

RulePtr make_unwritten(const Subject& subject) {
  const ProgramOptions& options = subject.program.options();
  const bool wanted = !options.values && options.unwritten == UnwrittenPolicy::kRefuse;
  return wanted ? std::make_unique<Unwritten>(subject) : nullptr;
}

}  // namespace trena
