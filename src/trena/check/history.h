// Who touched which bytes of one memory, as far as a later access can still meet it: the overlap
// relation (design: what the bytes say after placement).
#pragma once

#include <cstdint>
#include <vector>

#include "trena/isa/instruction.h"
#include "trena/memory/region.h"

namespace trena {

// A view's bytes counted from the start of the memory that holds its buffer: of the SBUF or PSUM
// array for a manual address, of the buffer itself otherwise.
Region region_in_memory(const Tensor& tensor);

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
    std::size_t kept = touches_.size();
    for (std::size_t i = touches_.size(); i-- > 0;) {
      const Touch& earlier = touches_[i];
      if ((!touch.writes && !earlier.writes) || !meet(touch.region, earlier.region)) {
        continue;
      }
      fn(earlier);
      if (touch.writes && covers(touch.region, earlier.region)) {
        touches_[i].instruction = nullptr;
        kept = i;
      }
    }
    forget(kept);
    touches_.push_back(touch);
  }

 private:
  void forget(std::size_t first);

  std::vector<Touch> touches_;
};

}  // namespace trena
