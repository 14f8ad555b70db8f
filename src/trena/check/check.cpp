#include "trena/check/check.h"

#include "trena/check/rule.h"

namespace trena {

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
  AccessList accesses;
  for (int core = 0; core < program.core_count(); ++core) {
    for (const auto& instruction : program.instructions(core)) {
      accesses.clear();
      instruction->access(accesses);
      for (const RulePtr& rule : rules) {
        rule->visit(core, *instruction, accesses);
      }
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
