// `unwritten-read` in a run for time alone, which has no bytes and so no written bits: the same
// rule over regions. With values the executor asks byte by byte.
#include <fmt/format.h>

#include <map>
#include <unordered_map>

#include "trena/check/coverage.h"
#include "trena/check/rule.h"

namespace trena {
namespace {

class Unwritten final : public Rule {
 public:
  explicit Unwritten(const Subject& subject) : subject_(subject) {}

  void visit(int core, const Instruction& instruction, const AccessList& accesses) override {
    for (const Access& access : accesses) {
      const bool reads = access.kind == AccessKind::kRead || access.kind == AccessKind::kUpdate;
      if (reads && watched(*access.tensor)) {
        read(core, instruction, *access.tensor);
      }
    }
    for (const Access& access : accesses) {
      if (!only_reads(access.kind) && watched(*access.tensor)) {
        coverage(core, *access.tensor).add(region_in_memory(*access.tensor));
      }
    }
  }

 private:
  // What two cores write is not known core by core; an index may choose any of its rows.
  bool watched(const Tensor& tensor) const {
    const Buffer& buffer = *tensor.buffer();
    const bool given = buffer.role == BufferRole::kInput || buffer.role == BufferRole::kConstant;
    const bool shared = buffer.role == BufferRole::kShared && subject_.program.core_count() > 1;
    const Indirection* indirection = tensor.indirection().get();
    return !given && !shared &&
           (indirection == nullptr || indirection->kind == Indirection::Kind::kScalar);
  }

  Coverage& coverage(int core, const Tensor& tensor) {
    const Buffer& buffer = *tensor.buffer();
    return buffer.address ? arrays_[{core, buffer.space}] : buffers_[buffer.id];
  }

  void read(int core, const Instruction& instruction, const Tensor& tensor) {
    Coverage& written = coverage(core, tensor);
    const Region region = region_in_memory(tensor);
    if (written.holds(region)) {
      return;
    }
    Finding finding;
    finding.kind = ErrorKind::kUnwritten;
    finding.severity = Severity::kWarning;  // the time does not depend on what is read
    finding.id = "unwritten-read";
    finding.core = core;
    finding.text = {
        .rule = "every byte an instruction reads must have been written before",
        .here = fmt::format("{} reads {}, of which a part was never written", instruction.name(),
                            tensor.describe()),
        .device = "whatever the memory held before: garbage that changes from run to run",
        .fix = "write the tensor first (dma_copy, memset), or read only the part that was written"};
    subject_.findings.add(std::move(finding), instruction.position);
    written.add(region);  // once is enough
  }

  const Subject subject_;
  std::unordered_map<std::uint32_t, Coverage> buffers_;
  std::map<std::pair<int, Space>, Coverage> arrays_;
};

}  // namespace

RulePtr make_unwritten(const Subject& subject) {
  const ProgramOptions& options = subject.program.options();
  const bool wanted = !options.values && options.unwritten == UnwrittenPolicy::kRefuse;
  return wanted ? std::make_unique<Unwritten>(subject) : nullptr;
}

}  // namespace trena
