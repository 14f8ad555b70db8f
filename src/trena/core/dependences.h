// The order relation: what the compiler guarantees (design.md §6). Two accesses of the same tensor
// that overlap, at least one of them a write, happen in program order; a matmul that accumulates
// behind another one only has to start after it. Overlap of *bytes* between different tensors
// (manual addresses, two views of one HBM range) is a matter for check/, not for the clock.
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

  void visit_state(HiddenState state, std::uint32_t item);

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
    std::uint32_t region;  // index into regions_
    AccessKind kind;
    Box box;
  };
  struct Visit {
    std::uint32_t item;
    AccessKind kind;
    Region region;
    Box box;
  };
  struct Bucket {
    std::vector<Pending> writers;
    std::vector<Pending> readers;
  };
  // By block of rows, so that each access of a large HBM tensor looks at few others; on the chip
  // one block.
  using History = std::vector<Bucket>;

  History& history(Key key);
  static Bucket& block(History& history, std::int64_t number);
  void visit_bucket(Bucket& bucket, const Visit& access);
  void settle(std::vector<Pending>& list, const Visit& access);
  Pending remember(const Visit& access);

  std::vector<History> histories_;                     // by key
  std::unordered_map<Key, History> sparse_histories_;  // from kSparse on
  std::vector<Region> regions_;                        // of what is pending
  std::vector<std::uint32_t> free_regions_;
  std::array<std::int64_t, kHiddenStates> last_of_state_{-1, -1, -1, -1};
  std::vector<Wait> found_;
};

}  // namespace trena
