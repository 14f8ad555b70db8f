// `data-race`: two tensors share bytes, one of them is written, and no chain of waits leads from
// one access to the other. On the chip that is a tensor read through the address of another one:
// the compiler orders the reuse of an address behind its readers, but a reader waits only for
// writers of its own tensor (nki.md §5.1-4, §5.6). In HBM it is memory of the caller that came in
// twice.
// `register-race`: the same where the reader loads a register, which then steers loops and offsets.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "trena/check/history.h"
#include "trena/check/rule.h"

namespace trena {
namespace {

Finding race(const Findings& findings, const Instruction& later, const History::Touch& now,
             const History::Touch& earlier) {
  const bool hbm = now.buffer->space == Space::kHbm;
  const char* did = earlier.writes ? (now.writes ? "writes over" : "reads") : "writes over";
  Finding finding;
  if (now.loads_register) {
    finding.id = "register-race";
    finding.text = {
        .rule = "a register is loaded behind whoever writes what it is loaded from",
        .here = fmt::format("{} reads {}, whose bytes {} wrote at {} through {}; nothing makes it "
                            "wait",
                            later.name(), quoted(*now.buffer), earlier.instruction->name(),
                            findings.place(earlier.instruction->position), quoted(*earlier.buffer)),
        .device = "the register holds what was there before: another offset, another trip count",
        .fix = hbm ? "load it from the tensor that was written, or add depends_on"
                   : "load it from the tensor that was written (a view of it), or add depends_on"};
    return finding;
  }
  finding.id = "data-race";
  finding.text = {
      .rule = "accesses of the same bytes, one of them a write, are ordered by a wait",
      .here = fmt::format("{} {} through {} what {} at {} {} through {}; nothing makes it wait",
                          later.name(), did, quoted(*now.buffer), earlier.instruction->name(),
                          findings.place(earlier.instruction->position),
                          earlier.writes ? "wrote" : "reads", quoted(*earlier.buffer)),
      .device = "whichever comes first: engines and DMA queues run side by side",
      .fix = hbm ? "pass the array once and use one tensor for both, or add depends_on"
                 : "use the same tensor (a view of it) for both, or add depends_on"};
  return finding;
}

class Races final : public Rule {
 public:
  explicit Races(const Subject& subject) : subject_(subject) { find_groups(); }

  bool anything() const { return manual_ || !groups_.empty(); }

  void visit(int core, const Instruction& instruction, const AccessList& accesses) override {
    if (core != core_) {
      core_ = core;
      arrays_ = {};
      callers_.clear();
    }
    const bool loads_register = accesses.has_state(HiddenState::kRegisters) &&
                                accesses.size() == 1 && only_reads(accesses.begin()->kind);
    for (const Access& access : accesses) {
      const Buffer& buffer = *access.tensor->buffer();
      if (buffer.address) {
        History& array = arrays_[buffer.space == Space::kPsum ? 1 : 0];
        visit(array, {&instruction, &buffer, !only_reads(access.kind),
                      region_in_memory(*access.tensor), loads_register});
      } else if (const auto group = groups_.find(&buffer); group != groups_.end()) {
        visit(callers_[group->second.number],
              {&instruction, &buffer, !only_reads(access.kind),
               in_group(*access.tensor, group->second), loads_register});
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

  static Region in_group(const Tensor& tensor, const Member& member) {
    Region region = region_of(tensor);
    region.offset_bytes += member.offset_bytes;
    region.row_first = region.row_last = 0;  // tensors of a group may have rows of several lengths
    region.byte_first = region.offset_bytes;
    region.byte_last = region.offset_bytes + region.reach_bytes - 1;
    return region;
  }

  void visit(History& history, const History::Touch& now) {
    const auto judge = [&](const History::Touch& earlier) {
      if (earlier.buffer == now.buffer || earlier.instruction == now.instruction) {
        return;
      }
      const Position here = now.instruction->position;
      const Position there = earlier.instruction->position;
      Order& order = subject_.orders[static_cast<std::size_t>(core_)];
      if (!order.keeps(*earlier.instruction, *now.instruction) &&
          !subject_.findings.known(now.loads_register ? "register-race" : "data-race", here,
                                   there)) {
        Finding finding = race(subject_.findings, *now.instruction, now, earlier);
        finding.core = core_;
        subject_.findings.add(std::move(finding), here, there);
      }
    };
    if (!now.buffer->address) {
      history.visit(now, judge);
      return;
    }
    // A tensor that was written itself finds its own bytes lost: `address-overlap` says so.
    if (now.writes) {
      written_.insert(now.buffer);
    } else if (written_.contains(now.buffer)) {
      return;
    }
    history.visit_writes(now, judge);
  }

  const Subject subject_;
  bool manual_ = false;
  std::unordered_map<const Buffer*, Member> groups_;
  int core_ = -1;
  std::array<History, 2> arrays_;
  std::unordered_map<std::size_t, History> callers_;
  std::unordered_set<const Buffer*> written_;
};

}  // namespace

RulePtr make_races(const Subject& subject) {
  auto rule = std::make_unique<Races>(subject);
  return rule->anything() ? std::move(rule) : nullptr;
}

}  // namespace trena
