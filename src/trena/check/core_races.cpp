// `core-race`: two cores touch the same bytes of HBM, one of them writes, and no meeting of the
// cores lies between (hw.md §4: all order between cores is explicit; nki.md §5.3-25).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <unordered_map>

#include "trena/check/rule.h"
#include "trena/memory/region.h"

namespace trena {
namespace {

struct Touch {
  const Instruction* instruction;
  bool writes;
  Region region;

  std::int64_t first() const { return region.offset_bytes; }
  std::int64_t past() const { return region.offset_bytes + region.reach_bytes; }
};

// Between the same two meetings: last one before, first one after.
using Phase = std::pair<std::int32_t, std::int32_t>;

// The touches of one core in one phase, by their first byte.
struct Row {
  std::vector<Touch> touches;
  std::vector<std::int64_t> reach;  // the largest end up to here

  void sort() {
    std::stable_sort(touches.begin(), touches.end(),
                     [](const Touch& a, const Touch& b) { return a.first() < b.first(); });
    reach.clear();
    for (const Touch& touch : touches) {
      reach.push_back(std::max(reach.empty() ? touch.past() : reach.back(), touch.past()));
    }
  }
};

struct Shared {
  std::array<std::map<Phase, Row>, 2> cores;
  bool written = false;
};

class CoreRaces final : public Rule {
 public:
  explicit CoreRaces(const Subject& subject) : subject_(subject) {}

  void visit(const Visit& visit) override {
    const Instruction& instruction = visit.instruction;
    if (instruction.rendezvous() >= 0 || visit.core > 1) {
      return;
    }
    for (Footprint& footprint : visit.footprints) {
      if (footprint.tensor().on_chip() || chosen_by_index(footprint, visit.footprints.size())) {
        continue;
      }
      if (footprint.region().exact) {
        touch(visit.core, instruction, &footprint.buffer(), footprint.writes(), footprint.region());
      }
    }
    for (const Program::ChosenRows& rows : subject_.program.chosen_rows(instruction)) {
      touch(visit.core, instruction, rows.buffer, rows.writes, rows.region);
    }
  }

  void finish() override {
    for (const BufferPtr& buffer : subject_.program.buffers()) {
      const auto found = shared_.find(buffer.get());
      if (found != shared_.end() && found->second.written) {
        compare(*buffer, found->second);
      }
    }
  }

 private:
  void touch(int core, const Instruction& instruction, const Buffer* buffer, bool writes,
             const Region& region) {
    Order& order = subject_.orders[static_cast<std::size_t>(core)];
    const Phase phase{order.last_meeting_before(instruction),
                      order.first_meeting_after(instruction)};
    Shared& shared = shared_[buffer];
    shared.written = shared.written || writes;
    shared.cores[static_cast<std::size_t>(core)][phase].touches.push_back(
        {&instruction, writes, region});
  }

  // Gathers and scatters list all rows that they may choose, and their index as a third operand:
  // which rows the cores share is known only from values (Program::chosen_rows).
  static bool chosen_by_index(const Footprint& footprint, std::size_t accesses) {
    return footprint.kind() != AccessKind::kRead && footprint.kind() != AccessKind::kWrite &&
           accesses > 2;
  }

  // One core's phase is over before the other's begins when a meeting lies between.
  static bool apart(const Phase& a, const Phase& b) {
    return a.second <= b.first || b.second <= a.first;
  }

  // A kernel that does not ask for its core does everything twice: one line writes the same bytes
  // on both, with the same values.
  static bool same_work(const Touch& a, const Touch& b) {
    const Position& here = a.instruction->position;
    const Position& there = b.instruction->position;
    return a.writes && b.writes && here.file == there.file && here.line == there.line &&
           covers(a.region, b.region) && covers(b.region, a.region);
  }

  void compare(const Buffer& buffer, Shared& shared) {
    for (std::map<Phase, Row>& rows : shared.cores) {
      for (auto& [phase, row] : rows) {
        row.sort();
      }
    }
    for (const auto& [phase_a, row_a] : shared.cores[0]) {
      for (const auto& [phase_b, row_b] : shared.cores[1]) {
        if (!apart(phase_a, phase_b)) {
          sweep(buffer, row_a, row_b);
        }
      }
    }
  }

  void sweep(const Buffer& buffer, const Row& a, const Row& b) {
    for (const Touch& touch : a.touches) {
      const auto past = std::lower_bound(
          b.touches.begin(), b.touches.end(), touch.past(),
          [](const Touch& other, std::int64_t end) { return other.first() < end; });
      for (auto i = past - b.touches.begin(); i-- > 0;) {
        const auto at = static_cast<std::size_t>(i);
        if (b.reach[at] <= touch.first()) {
          break;
        }
        const Touch& other = b.touches[at];
        if ((touch.writes || other.writes) && overlaps(touch.region, other.region) &&
            !same_work(touch, other)) {
          report(buffer, touch, other);
        }
      }
    }
  }

  // The reader is at fault when only one writes.
  void report(const Buffer& buffer, const Touch& of_core0, const Touch& of_core1) {
    const bool second = of_core0.writes;
    const Touch& here = second ? of_core1 : of_core0;
    const Touch& there = second ? of_core0 : of_core1;
    if (subject_.findings.known("core-race", here.instruction->position,
                                there.instruction->position)) {
      return;
    }
    const int core = second ? 1 : 0;
    Finding finding;
    finding.id = "core-race";
    finding.core = core;
    finding.text = {
        .rule = "cores that touch the same bytes, one of them writing, meet in between",
        .here = fmt::format("core {} {} {} with {}; core {} writes the same bytes at {}, and no "
                            "meeting lies between",
                            core, here.writes ? "writes" : "reads", quoted(buffer),
                            here.instruction->name(), 1 - core,
                            subject_.findings.place(there.instruction->position)),
        .device = "whichever core is faster: the values change from run to run",
        .fix = "put nisa.core_barrier(data=…, cores=(0, 1)) with this tensor between the two"};
    subject_.findings.add(std::move(finding), here.instruction->position,
                          there.instruction->position);
  }

  const Subject subject_;
  std::unordered_map<const Buffer*, Shared> shared_;
};

}  // namespace

RulePtr make_core_races(const Subject& subject) {
  return subject.program.core_count() == 2 ? std::make_unique<CoreRaces>(subject) : nullptr;
}

}  // namespace trena
