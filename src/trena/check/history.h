// Who touched which bytes of one memory, as far as a later access can still meet it: the overlap
// relation (design: what the bytes say after placement).
#pragma once

#include "trena/check/boxed.h"
#include "trena/isa/instruction.h"
#include "trena/memory/region.h"

namespace trena {

// Do two regions of one memory share a byte? The boxes rule most pairs out.
bool meet(const Region& a, const Region& b);

class History {
 public:
  struct Touch {
    const Instruction* instruction = nullptr;
    const Buffer* buffer = nullptr;
    bool writes = false;
    Region region;
  };

  // Calls fn(earlier touch) for every touch that shares a byte with `touch`, at least one of the
  // two a write, newest first; then remembers it. What a write covers is forgotten.
  template <typename Fn>
  void visit(const Touch& touch, Fn&& fn) {
    bool covered = false;
    touches_.search(touch.region, [&](const Touch& earlier) {
      if ((touch.writes || earlier.writes) && overlaps(touch.region, earlier.region)) {
        fn(earlier);
        covered = covered || touch.writes;
      }
      return true;
    });
    if (covered) {
      touches_.erase(touch.region,
                     [&](const Touch& earlier) { return covers(touch.region, earlier.region); });
    }
    touches_.add(touch.region, touch);
  }

 private:
  Boxed<Touch> touches_;
};

}  // namespace trena
