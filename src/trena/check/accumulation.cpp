// Accumulation groups in PSUM (nki.md §5.1-2, hw.md §3.2; AWS nki.isa.nc_matmul, "Accumulation
// mode"): the first product to a place overwrites, later ones add to what products wrote there.
//   `accumulation-unwritten`    accumulate=True where nothing was written
//   `accumulation-foreign`      adds to data of another engine, undefined before NeuronCore-v4
//   `accumulation-interleaved`  another tensor at the same address wrote in the middle of a group
//   `accumulation-continued`    without accumulate=, a product goes on with a group that was read
#include <fmt/format.h>

#include <unordered_map>

#include "trena/check/coverage.h"
#include "trena/check/rule.h"

namespace trena {
namespace {

struct Part {
  Region region;
  const Buffer* buffer;
  const Instruction* writer;
  bool product;                         // of the tensor engine
  const Instruction* reader = nullptr;  // the first one behind the writer
};

// Do the parts together hold every byte of `region`?
bool together_hold(const std::vector<Part>& parts, const Region& region) {
  std::vector<const Region*> touching;
  for (const Part& part : parts) {
    if (meet(part.region, region)) {
      touching.push_back(&part.region);
    }
  }
  return together_hold(touching, region);
}

class Accumulation final : public Rule {
 public:
  explicit Accumulation(const Subject& subject) : subject_(subject) {}

  void visit(const Visit& visit) override {
    core_ = visit.core;
    for (Footprint& footprint : visit.footprints) {
      if (footprint.buffer().space != Space::kPsum) {
        continue;
      }
      const Buffer& buffer = footprint.buffer();
      std::vector<Part>& parts = buffer.address ? arrays_[core_] : buffers_[buffer.id];
      const Region& region = footprint.region();
      if (footprint.kind() == AccessKind::kAccumulate) {
        add(parts, visit.instruction, footprint.tensor(), region);
      } else if (!footprint.writes()) {
        for (Part& part : parts) {
          if (part.reader == nullptr && meet(part.region, region)) {
            part.reader = &visit.instruction;
          }
        }
      } else {
        write(parts, {region, &buffer, &visit.instruction, on_tensor_engine(visit.instruction)});
      }
    }
  }

 private:
  bool on_tensor_engine(const Instruction& instruction) const {
    return instruction.engine(subject_.program.machine()) == EngineKind::kTensor;
  }

  static void write(std::vector<Part>& parts, const Part& part) {
    std::erase_if(parts, [&](const Part& old) { return covers(part.region, old.region); });
    parts.push_back(part);
  }

  void add(std::vector<Part>& parts, const Instruction& product, const Tensor& dst,
           const Region& region) {
    const Buffer* buffer = dst.buffer().get();
    const bool always = product.adds_always();
    bool own =
        always || (buffer->address && begun_[buffer].meets(region));  // does it add anywhere?
    bool whole = false;
    for (const Part& part : parts) {
      own = own || (part.product && part.buffer == buffer && meet(part.region, region));
    }
    for (std::size_t i = parts.size(); own && !whole && i-- > 0;) {
      const Part& part = parts[i];
      if (!meet(part.region, region)) {
        continue;
      }
      judge(product, dst, part, always);
      whole = covers(part.region, region);
    }
    if (always && !whole && !together_hold(parts, region)) {
      report(
          product, "accumulation-unwritten", nullptr,
          {.rule = "the first product to a place in PSUM overwrites it",
           .here = fmt::format("{} adds to {}, where nothing was written before", product.name(),
                               dst.describe()),
           .device = "adds to whatever the bank held before",
           .fix = "pass accumulate=False (or accumulate=(k > 0)) for the first product, or leave "
                  "`accumulate` out"});
    }
    write(parts, {region, buffer, &product, true});
    if (buffer->address) {
      begun_[buffer].add(region);
    }
  }

  void judge(const Instruction& product, const Tensor& dst, const Part& part, bool always) {
    const std::string there = subject_.findings.place(part.writer->position);
    if (part.buffer != dst.buffer().get()) {
      report(
          product, "accumulation-interleaved", part.writer,
          {.rule = "a group of products that add up has its place in PSUM to itself",
           .here = fmt::format("{} adds to {}, but {} wrote {} there at {}", product.name(),
                               dst.describe(), part.writer->name(), quoted(*part.buffer), there),
           .device = "adds to the other tensor's values",
           .fix = "give the tensors different banks, or finish one group before the next begins"});
      return;
    }
    if (!part.product) {
      if (!subject_.program.machine().legality.matmul_adds_to_any_data) {
        report(product, "accumulation-foreign", part.writer,
               {.rule = "products add only to what products wrote, before NeuronCore-v4",
                .here = fmt::format("{} adds to {}, which {} wrote at {}", product.name(),
                                    dst.describe(), part.writer->name(), there),
                .device = "undefined: a flag of the place decides, not its data",
                .fix = "let the first product overwrite (accumulate=False), and add the other data "
                       "with tensor_tensor"});
      }
      return;
    }
    if (!always && part.reader != nullptr) {
      report(product, "accumulation-continued", part.reader,
             {.rule = "without accumulate=, products add to what products left in the same tensor",
              .here = fmt::format("{} adds to {}, whose sum {} already read at {}", product.name(),
                                  dst.describe(), part.reader->name(),
                                  subject_.findings.place(part.reader->position)),
              .device = "the same: the old sum is part of the new one",
              .fix = "make the PSUM tensor inside the loop, or say accumulate=(k > 0); "
                     "accumulate=True if the running sum is meant"});
    }
  }

  void report(const Instruction& product, std::string_view id, const Instruction* other,
              ErrorText text) {
    Finding finding;
    finding.id = id;
    finding.severity = other == nullptr && subject_.program.options().values ? Severity::kError
                                                                             : Severity::kWarning;
    finding.core = core_;
    finding.text = std::move(text);
    if (other != nullptr) {
      subject_.findings.add(std::move(finding), product.position, other->position);
    } else {
      subject_.findings.add(std::move(finding), product.position);
    }
  }

  const Subject subject_;
  int core_ = 0;
  std::unordered_map<std::uint32_t, std::vector<Part>> buffers_;
  std::unordered_map<int, std::vector<Part>> arrays_;
  // Where products of a tensor wrote, also if another tensor at the address wrote since.
  std::unordered_map<const Buffer*, Coverage> begun_;
};

}  // namespace

RulePtr make_accumulation(const Subject& subject) {
  for (const BufferPtr& buffer : subject.program.buffers()) {
    if (buffer->space == Space::kPsum) {
      return std::make_unique<Accumulation>(subject);
    }
  }
  return nullptr;
}

}  // namespace trena
