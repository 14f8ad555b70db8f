// `data-race`: two tensors share bytes, one of them is written, and no chain of waits leads from
// one access to the other. On the chip that is a tensor read through the address of another one:
// the compiler orders the reuse of an address behind its readers, but a reader waits only for
// writers of its own tensor (nki.md §5.1-4, §5.6). In HBM it is memory of the caller that came in
// twice.
// `register-race`: the same where the reader loads a register, which then steers loops and offsets.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "trena/check/history.h"
#include "trena/check/rule.h"

namespace trena {
namespace {

// An access, or what a write left behind.
struct Party {
  const Instruction& instruction;
  const Buffer& buffer;
  bool writes;
};

Finding race(const Findings& findings, const Party& now, const Party& earlier,
             bool loads_register) {
  const bool hbm = now.buffer.space == Space::kHbm;
  const char* did = earlier.writes ? (now.writes ? "writes over" : "reads") : "writes over";
  const std::string there = findings.place(earlier.instruction.position);
  Finding finding;
  if (loads_register) {
    finding.id = "register-race";
    finding.text = {
        .rule = "a register is loaded behind whoever writes what it is loaded from",
        .here = fmt::format("{} reads {}, whose bytes {} wrote at {} through {}; nothing makes it "
                            "wait",
                            now.instruction.name(), quoted(now.buffer), earlier.instruction.name(),
                            there, quoted(earlier.buffer)),
        .device = "the register holds what was there before: another offset, another trip count",
        .fix = hbm ? "load it from the tensor that was written, or add depends_on"
                   : "load it from the tensor that was written (a view of it), or add depends_on"};
    return finding;
  }
  finding.id = "data-race";
  finding.text = {.rule = "accesses of the same bytes, one of them a write, are ordered by a wait",
                  .here = fmt::format(
                      "{} {} through {} what {} at {} {} through {}; nothing makes it wait",
                      now.instruction.name(), did, quoted(now.buffer), earlier.instruction.name(),
                      there, earlier.writes ? "wrote" : "reads", quoted(earlier.buffer)),
                  .device = "whichever comes first: engines and DMA queues run side by side",
                  .fix = hbm ? "pass the array once and use one tensor for both, or add depends_on"
                             : "use the same tensor (a view of it) for both, or add depends_on"};
  return finding;
}

class Races final : public Rule {
 public:
  explicit Races(const Subject& subject) : subject_(subject) { find_groups(); }

  bool anything() const { return manual_ || !groups_.empty(); }

  void visit(const Visit& visit) override {
    if (visit.core != core_) {
      core_ = visit.core;
      callers_.clear();
    }
    const bool loads_register = visit.accesses.has_state(HiddenState::kRegisters) &&
                                visit.footprints.size() == 1 && !visit.footprints[0].writes();
    for (Footprint& footprint : visit.footprints) {
      if (footprint.has_address()) {
        visit_address(visit, footprint, loads_register);
      } else if (const auto group = groups_.find(&footprint.buffer()); group != groups_.end()) {
        visit_caller(visit, footprint, group->second, loads_register);
      }
    }
  }

 private:
  struct Member {
    std::size_t number;
    std::int64_t offset_bytes;  // from the start of the group's memory
  };

  // Arguments whose memory overlaps form a group.
  void find_groups() {
    std::vector<const Buffer*> arguments;
    for (const BufferPtr& buffer : subject_.program.buffers()) {
      manual_ = manual_ || buffer->address.has_value();
      if (buffer->role == BufferRole::kInput && buffer->has_data()) {
        arguments.push_back(buffer.get());
      }
    }
    std::stable_sort(arguments.begin(), arguments.end(), [](const Buffer* a, const Buffer* b) {
      return a->storage->data() < b->storage->data();
    });
    std::size_t number = 0;
    for (std::size_t i = 0; i < arguments.size(); ++number) {
      const std::byte* start = arguments[i]->storage->data();
      const std::byte* end = start;
      std::size_t past = i;
      for (; past < arguments.size() && (past == i || arguments[past]->storage->data() < end);
           ++past) {
        end = std::max<const std::byte*>(
            end, arguments[past]->storage->data() + arguments[past]->storage->size_bytes());
      }
      for (std::size_t k = i; past - i > 1 && k < past; ++k) {
        groups_.emplace(arguments[k], Member{number, arguments[k]->storage->data() - start});
      }
      i = past;
    }
  }

  static Region in_group(Region region, const Member& member) {
    region.offset_bytes += member.offset_bytes;
    region.row_first = region.row_last = 0;  // tensors of a group may have rows of several lengths
    region.byte_first = region.offset_bytes;
    region.byte_last = region.offset_bytes + region.reach_bytes - 1;
    region.fills_box = region.rank == 0 && region.exact;
    return region;
  }

  void visit_address(const Visit& visit, Footprint& footprint, bool loads_register) {
    // A tensor that was written itself finds its own bytes lost: `address-overlap` says so.
    if (footprint.writes() || visit.contents.first_write(footprint.buffer())) {
      return;
    }
    const Party now{visit.instruction, footprint.buffer(), false};
    for (const Contents::Write* write : footprint.beneath()) {
      if (overlaps(footprint.region(), write->region)) {
        judge(now, {*write->instruction, *write->buffer, true}, loads_register);
      }
    }
  }

  void visit_caller(const Visit& visit, Footprint& footprint, const Member& member,
                    bool loads_register) {
    const Party now{visit.instruction, footprint.buffer(), footprint.writes()};
    callers_[member.number].visit(
        {&visit.instruction, &footprint.buffer(), footprint.writes(),
         in_group(footprint.region(), member)},
        [&](const History::Touch& earlier) {
          judge(now, {*earlier.instruction, *earlier.buffer, earlier.writes}, loads_register);
        });
  }

  void judge(const Party& now, const Party& earlier, bool loads_register) {
    if (&earlier.buffer == &now.buffer || &earlier.instruction == &now.instruction) {
      return;
    }
    const Position here = now.instruction.position;
    const Position there = earlier.instruction.position;
    Order& order = subject_.orders[static_cast<std::size_t>(core_)];
    if (!order.keeps(earlier.instruction, now.instruction) &&
        !subject_.findings.known(loads_register ? "register-race" : "data-race", here, there)) {
      Finding finding = race(subject_.findings, now, earlier, loads_register);
      finding.core = core_;
      subject_.findings.add(std::move(finding), here, there);
    }
  }

  const Subject subject_;
  bool manual_ = false;
  std::unordered_map<const Buffer*, Member> groups_;
  int core_ = -1;
  std::unordered_map<std::size_t, History> callers_;
};

}  // namespace

RulePtr make_races(const Subject& subject) {
  auto rule = std::make_unique<Races>(subject);
  return rule->anything() ? std::move(rule) : nullptr;
}

}  // namespace trena
