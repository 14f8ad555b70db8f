// One rule about the whole program. All of them see one walk over it.
#pragma once

#include <memory>
#include <span>

#include "trena/check/contents.h"
#include "trena/check/findings.h"
#include "trena/check/order.h"
#include "trena/core/stream.h"

namespace trena {

// One instruction, as the walk comes by: what it touches, beside what was there before it.
struct Visit {
  int core;
  const Instruction& instruction;
  const AccessList& accesses;
  std::span<Footprint> footprints;  // one per access, in its order
  const Contents& contents;
};

class Rule {
 public:
  virtual ~Rule() = default;
  // The instructions of one core in program order, core after core.
  virtual void visit(const Visit& visit) = 0;
  virtual void finish() {}
};

// What a rule may ask. `orders` has one entry per core.
struct Subject {
  const Program& program;
  std::span<Order> orders;
  Findings& findings;
};

using RulePtr = std::unique_ptr<Rule>;

// Null when the program has nothing that the rule is about.
RulePtr make_address_overlap(const Subject& subject);
RulePtr make_races(const Subject& subject);
RulePtr make_core_races(const Subject& subject);
RulePtr make_accumulation(const Subject& subject);
RulePtr make_unwritten(const Subject& subject);
RulePtr make_self_overlap(const Subject& subject);

}  // namespace trena
