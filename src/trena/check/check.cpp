#include "trena/check/check.h"

#include "trena/check/rule.h"

namespace trena {

namespace {

// Shows each instruction of one core to the rules.
class Walk {
 public:
  Walk(int core, std::span<const RulePtr> rules) : core_(core), rules_(rules) {}

  void visit(const Instruction& instruction) {
    accesses_.clear();
    instruction.access(accesses_);
    const std::span<Footprint> footprints = take_footprints();
    const Visit visit{core_, instruction, accesses_, footprints, contents_};
    for (const RulePtr& rule : rules_) {
      rule->visit(visit);
    }
    for (Footprint& footprint : footprints) {
      if (footprint.has_address() && footprint.writes()) {
        contents_.write(instruction, footprint.tensor(), footprint.region());
      }
    }
  }

 private:
  std::span<Footprint> take_footprints() {
    std::size_t count = 0;
    for (const Access& access : accesses_) {
      if (count == footprints_.size()) {
        footprints_.emplace_back(access, contents_);
      } else {
        footprints_[count].begin(access, contents_);
      }
      ++count;
    }
    return std::span(footprints_).first(count);
  }

  const int core_;
  const std::span<const RulePtr> rules_;
  AccessList accesses_;
  Contents contents_;
  std::vector<Footprint> footprints_;
};

}  // namespace

std::vector<Finding> check_program(const Program& program, std::span<const Stream> streams) {
  std::vector<Order> orders(streams.begin(), streams.end());
  Findings findings(program);
  const Subject subject{program, orders, findings};
  std::vector<RulePtr> rules;
  for (const auto make : {make_address_overlap, make_races, make_core_races, make_accumulation,
                          make_unwritten, make_self_overlap}) {
    if (RulePtr rule = make(subject)) {
      rules.push_back(std::move(rule));
    }
  }
  for (int core = 0; core < program.core_count(); ++core) {
    Walk walk(core, rules);
    for (const auto& instruction : program.instructions(core)) {
      walk.visit(*instruction);
    }
  }
  for (const RulePtr& rule : rules) {
    rule->finish();
  }
  return findings.take();
}

void throw_first_error(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::kError) {
      Error error(finding.kind, finding.id, finding.text);
      error.set_where(finding.where);
      throw error;
    }
  }
}

}  // namespace trena
