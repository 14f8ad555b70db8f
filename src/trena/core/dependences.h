// The order relation: what the compiler guarantees (design.md §6). Two accesses of the same tensor
// that overlap, at least one of them a write, happen in program order; a matmul that accumulates
// behind another one only has to start after it. Where the kernel chose addresses, a write also
// waits for what other tensors did to its bytes, because whoever takes over an address waits for
// its earlier tenants; a reader waits for writers of its own tensor only (nki.md §5.1-4). Any other
// overlap of *bytes* (two names of one place, two views of one HBM range) is a matter for check/,
// not for the clock.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "trena/core/stream.h"
#include "trena/memory/region.h"

namespace trena {

// Fed with the items of one core in stream order; answers with the earlier items each must wait
// for. Tensors are known by a key: the buffer's id, or the number of one stay in SBUF or PSUM
// (Placement).
class Dependences {
 public:
  using Key = std::uint64_t;
  static constexpr Key kSparse = Key{1} << 40;  // keys from here on are few and far between

  // A new stay takes the bytes of earlier ones: its writers wait for whatever still touches them.
  void open(Key stay, const Region& whole, const std::vector<Key>& former);

  void visit(Key key, std::uint32_t item, const Tensor& tensor, AccessKind kind);

  // The same access once more, for a tensor whose address the kernel chose: `region` counts from
  // the start of the memory, `buffer` is the tensor's id.
  void visit_address(Space space, std::uint32_t item, const Region& region, AccessKind kind,
                     std::uint32_t buffer);

  void visit_state(HiddenState state, std::uint32_t item);

  // The item now visited takes an address from a register: it waits until the sequencer has it.
  void wait_for_registers();

  // Closes `item`: its waits, sorted and without repetition, go to `waits`.
  void finish(Edges& waits);
  void add_wait(Wait wait) { found_.push_back(wait); }

 private:
  // An access that later ones may still have to wait for. Lists of them are scanned, so they are
  // small: the box rules most of them out, the region behind it is looked at for the rest.
  struct Box {
    std::int64_t row_first;
    std::int64_t row_last;
    std::int64_t byte_first;
    std::int64_t byte_last;

    explicit Box(const Region& region)
        : row_first(region.row_first),
          row_last(region.row_last),
          byte_first(region.byte_first),
          byte_last(region.byte_last) {}
    bool apart(const Box& other) const {
      return byte_last < other.byte_first || other.byte_last < byte_first ||
             row_last < other.row_first || other.row_last < row_first;
    }
  };
  struct Pending {
    std::uint32_t item;
    std::int32_t next;  // in its list, kNone at the end
    AccessKind kind;
    std::uint32_t buffer;  // in the history of one tensor kAnyBuffer, or kInherited by its stay
    Box box;
  };
  static constexpr std::int32_t kNone = -1;
  static constexpr std::uint32_t kAnyBuffer = ~0u;
  static constexpr std::uint32_t kInherited = ~0u - 1;
  struct Visit {
    std::uint32_t item;
    AccessKind kind;
    Region region;
    Box box;
    std::uint32_t buffer = kAnyBuffer;
  };
  // Heads of lists through pending_.
  struct Bucket {
    std::int32_t writers = kNone;
    std::int32_t readers = kNone;
  };
  // By block, so that each access looks at few others: of rows of a large HBM tensor, of bytes of a
  // memory on the chip. A tensor there has one block.
  struct History {
    Bucket first;
    std::vector<Bucket> others;
  };

  History& history(Key key);
  static Bucket& block(History& history, std::int64_t number);
  void visit_bucket(Bucket& bucket, const Visit& access);
  void settle(std::int32_t& list, const Visit& access);
  void remember(std::int32_t& list, const Visit& access);

  std::vector<History> histories_;                     // by key
  std::unordered_map<Key, History> sparse_histories_;  // from kSparse on
  std::array<History, 3> memories_;                    // by Space, of addresses the kernel chose
  std::vector<Pending> pending_;                       // of all lists
  std::vector<Region> regions_;                        // beside it
  std::int32_t unused_ = kNone;                        // list of free places in both
  std::array<std::int64_t, kHiddenStates> last_of_state_{-1, -1, -1, -1};
  std::vector<Wait> found_;
};

}  // namespace trena
