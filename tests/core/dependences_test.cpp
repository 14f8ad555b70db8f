// The order relation against a brute-force oracle over single bytes.
#include "trena/core/dependences.h"

#include <set>

#include "core_rig.h"

namespace trena::core_test {
namespace {

constexpr std::size_t kItems = 160;
using Set = std::bitset<kItems>;

// One access of one item, and its bytes one by one.
struct Seen {
  std::uint32_t item;
  Dependences::Key key;
  AccessKind kind;
  Tensor tensor;
  std::vector<bool> bytes;
};

std::string describe(const Seen& seen) {
  const Tensor& t = seen.tensor;
  return fmt::format("item {} kind {} tensor {}: offset {}, {} x {}, {} x {}", seen.item,
                     static_cast<int>(seen.kind), seen.key, t.offset_bytes(), t.size(0),
                     t.dim(0).stride_bytes, t.size(1), t.dim(1).stride_bytes);
}

bool share(const std::vector<bool>& a, const std::vector<bool>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] && b[i]) {
      return true;
    }
  }
  return false;
}

// A rectangle of a two-dimensional tensor; `strided`: now and then of every second or third column
// or row.
Tensor random_tile(const Tensor& tensor, bool strided, Random& random) {
  const auto extent = [&](std::int64_t size) {
    const std::int64_t first = random(0, size - 1);
    const std::int64_t step = strided && random(0, 3) == 0 ? random(2, 3) : 1;
    return std::tuple{first, random(1, (size - 1 - first) / step + 1), step};
  };
  const auto [row, rows, row_step] = extent(tensor.size(0));
  const auto [column, columns, column_step] = extent(tensor.size(1));
  const std::vector<Dim> dims = {{rows, row_step * tensor.dim(0).stride_bytes},
                                 {columns, column_step * tensor.dim(1).stride_bytes}};
  return tensor.with(tensor.dtype(),
                     row * tensor.dim(0).stride_bytes + column * tensor.dim(1).stride_bytes, dims);
}

struct Trial {
  std::vector<std::vector<Wait>> waits;
  std::vector<Seen> seen;
};

Trial random_trial(std::uint32_t seed, bool strided) {
  Random random(seed);
  Rig rig;
  const std::vector<Tensor> tensors = {rig.sbuf({4, 6}, DType::kFloat16), rig.psum({4, 6}),
                                       rig.hbm({300, 3}, DType::kUint8),
                                       rig.hbm({5, 7}, DType::kInt16)};
  constexpr AccessKind kKinds[] = {
      AccessKind::kRead,   AccessKind::kRead,      AccessKind::kReadCarry, AccessKind::kWrite,
      AccessKind::kUpdate, AccessKind::kWriteSome, AccessKind::kAccumulate};
  Dependences order;
  Edges edges;
  Trial trial;
  for (std::uint32_t item = 0; item < kItems; ++item) {
    bool uses_psum = false;  // a product reads SBUF only: its other operands are no PSUM
    for (std::int64_t count = random(1, 3); count > 0; --count) {
      const auto key = static_cast<Dependences::Key>(random(0, 3));
      if (key == 1 && std::exchange(uses_psum, true)) {
        continue;
      }
      const Tensor tile = random_tile(tensors[key], strided, random);
      const AccessKind kind = kKinds[random(0, key == 1 ? 6 : 5)];
      order.visit(key, item, tile, kind);
      trial.seen.push_back({item, key, kind, tile, bytes_of(tile)});
    }
    order.finish(edges);
    trial.waits.emplace_back(edges.of(item).begin(), edges.of(item).end());
  }
  return trial;
}

// Views of different strides are compared on the safe side (memory/region.h); rectangles exactly.
class DependencesProperty : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Views, DependencesProperty, testing::Bool(),
                         [](const auto& info) { return info.param ? "Strided" : "Rectangles"; });

TEST_P(DependencesProperty, EveryConflictOfBytesIsOrderedAndNoOther) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const Trial trial = random_trial(seed, GetParam());
    Closure<kItems> closure;
    for (const std::vector<Wait>& waits : trial.waits) {
      closure.add(waits);
    }
    std::vector<Set> conflicts(kItems);
    for (const Seen& later : trial.seen) {
      for (const Seen& earlier : trial.seen) {
        const bool both_read = reads_only(later.kind) && reads_only(earlier.kind);
        if (earlier.item >= later.item || earlier.key != later.key || both_read ||
            !share(earlier.bytes, later.bytes)) {
          continue;
        }
        conflicts[later.item].set(earlier.item);
        const bool chain =
            earlier.kind == AccessKind::kAccumulate && later.kind == AccessKind::kAccumulate;
        const bool ordered = closure.ended[later.item][earlier.item] ||
                             (chain && closure.chained[later.item][earlier.item]);
        ASSERT_TRUE(ordered) << "seed " << seed << ": " << describe(later) << " does not wait for "
                             << describe(earlier);
      }
    }
    for (std::uint32_t item = 0; item < kItems && !GetParam(); ++item) {
      for (const Wait wait : trial.waits[item]) {
        ASSERT_TRUE(conflicts[item][wait.item()])
            << "seed " << seed << ": item " << item << " waits for " << wait.item()
            << " without a shared byte";
      }
    }
  }
}

// What the relation rests on: "apart" and "covers" are promises, "overlaps" may be cautious.
TEST(RegionsProperty, TheyKeepTheirPromises) {
  Random random(1);
  Rig rig;
  const std::vector<Tensor> tensors = {rig.sbuf({4, 6}, DType::kFloat16),
                                       rig.hbm({9, 7}, DType::kInt16)};
  for (int round = 0; round < 20000; ++round) {
    const Tensor& whole = tensors[static_cast<std::size_t>(random(0, 1))];
    const Tensor a = random_tile(whole, true, random);
    const Tensor b = random_tile(whole, true, random);
    const std::vector<bool> bytes_a = bytes_of(a);
    const std::vector<bool> bytes_b = bytes_of(b);
    const auto text = [&] {
      return describe({0, 0, AccessKind::kRead, a, {}}) + "; " +
             describe({1, 0, AccessKind::kRead, b, {}});
    };
    if (!overlaps(region_of(a), region_of(b))) {
      ASSERT_FALSE(share(bytes_a, bytes_b)) << text();
    }
    if (covers(region_of(a), region_of(b))) {
      for (std::size_t i = 0; i < bytes_a.size(); ++i) {
        ASSERT_TRUE(bytes_a[i] || !bytes_b[i]) << text();
      }
    }
  }
}

std::vector<Wait> waits_of(Dependences& order, Edges& edges, std::size_t item) {
  order.finish(edges);
  return {edges.of(item).begin(), edges.of(item).end()};
}

TEST(Dependences, ProductsOfOneBankOnlyFollowTheStart) {
  Rig rig;
  const Tensor bank = rig.psum({128, 512});
  Dependences order;
  Edges edges;
  order.visit(0, 0, bank, AccessKind::kAccumulate);
  EXPECT_TRUE(waits_of(order, edges, 0).empty());
  order.visit(0, 1, bank, AccessKind::kAccumulate);
  EXPECT_EQ(waits_of(order, edges, 1), std::vector{Wait::after_start(0)});
  order.visit(0, 2, bank, AccessKind::kRead);
  EXPECT_EQ(waits_of(order, edges, 2), std::vector{Wait::after_end(1)});
  order.visit(0, 3, bank, AccessKind::kAccumulate);  // behind a reader: the end counts again
  EXPECT_EQ(waits_of(order, edges, 3), (std::vector{Wait::after_start(1), Wait::after_end(2)}));
}

TEST(Dependences, ColumnsAndRowsThatDoNotTouchAreIndependent) {
  Rig rig;
  const Tensor tile = rig.sbuf({128, 512});
  const auto columns = [&](std::int64_t first, std::int64_t count) {
    return tile.with(tile.dtype(), first * 4, std::vector<Dim>{tile.dim(0), {count, 4}});
  };
  Dependences order;
  Edges edges;
  order.visit(0, 0, columns(0, 128), AccessKind::kWrite);
  EXPECT_TRUE(waits_of(order, edges, 0).empty());
  order.visit(0, 1, columns(128, 128), AccessKind::kWrite);
  EXPECT_TRUE(waits_of(order, edges, 1).empty());
  order.visit(0, 2, columns(127, 2), AccessKind::kRead);
  EXPECT_EQ(waits_of(order, edges, 2), (std::vector{Wait::after_end(0), Wait::after_end(1)}));
}

// Windows on one memory: a write waits, perhaps through others, for all that other windows did to
// its bytes; nobody waits for anything else.
TEST(DependencesAtAddresses, AnAddressIsTakenOverFromAllEarlierTenants) {
  constexpr std::int64_t kRows = 4;
  constexpr std::int64_t kWidth = 6000;  // several blocks
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    Rig rig;
    std::vector<Tensor> windows;
    for (int count = 0; count < 6; ++count) {
      const std::int64_t row = random(0, kRows - 1);
      const std::int64_t byte = random(0, kWidth - 1);
      windows.push_back(rig.sbuf_at({static_cast<int>(row), byte},
                                    {random(1, kRows - row), random(1, kWidth - byte)}));
    }
    struct Done {
      std::size_t window;
      bool write;
      Tensor tile;
    };
    std::vector<Done> done;
    Dependences order;
    Edges edges;
    Closure<kItems> closure;
    for (std::uint32_t item = 0; item < kItems; ++item) {
      const auto window = static_cast<std::size_t>(random(0, 5));
      const bool write = random(0, 1) == 0;
      const Tensor tile = random_tile(windows[window], false, random);
      order.visit_address(Space::kSbuf, item, region_in_memory(tile),
                          write ? AccessKind::kWrite : AccessKind::kRead, tile.buffer()->id);
      order.finish(edges);
      const std::span<const Wait> waits = edges.of(item);
      closure.add(waits);
      std::set<std::uint32_t> wanted;
      const auto box = [](const Tensor& tensor) {
        const Address& address = *tensor.buffer()->address;
        const std::int64_t pitch = tensor.buffer()->pitch_bytes;
        const std::int64_t row = address.partition + tensor.offset_bytes() / pitch;
        const std::int64_t byte = address.offset_bytes + tensor.offset_bytes() % pitch;
        return std::array{row, row + tensor.size(0), byte, byte + tensor.size(1)};
      };
      const auto now = box(tile);
      for (std::uint32_t earlier = 0; earlier < item && write; ++earlier) {
        const auto then = box(done[earlier].tile);
        if (done[earlier].window != window && now[0] < then[1] && then[0] < now[1] &&
            now[2] < then[3] && then[2] < now[3]) {
          wanted.insert(earlier);
        }
      }
      for (const Wait wait : waits) {
        ASSERT_TRUE(wanted.contains(wait.item())) << "seed " << seed << ", item " << item;
      }
      // What another write covered since is left to whoever waits for that write.
      for (const std::uint32_t earlier : wanted) {
        bool covered = closure.ended[item][earlier];
        for (std::uint32_t between = earlier + 1; between < item; ++between) {
          const auto over = box(done[between].tile);
          const auto then = box(done[earlier].tile);
          covered = covered || (done[between].write && over[0] <= then[0] && then[1] <= over[1] &&
                                over[2] <= then[2] && then[3] <= over[3]);
        }
        ASSERT_TRUE(covered) << "seed " << seed << ": " << item << " does not wait for " << earlier;
      }
      done.push_back({window, write, tile});
    }
  }
}

TEST(Dependences, ANewStayWaitsForWhoeverTouchedItsBytes) {
  Rig rig;
  const Tensor first = rig.sbuf({128, 8});
  const Tensor second = rig.sbuf({128, 8});
  const Tensor third = rig.sbuf({128, 8});
  Dependences order;
  Edges edges;
  order.visit(10, 0, first, AccessKind::kWrite);
  order.finish(edges);
  order.visit(10, 1, first, AccessKind::kRead);
  order.finish(edges);
  order.visit(10, 2, first, AccessKind::kRead);
  order.finish(edges);
  order.open(11, region_of(second), {10});
  order.visit(11, 3, second, AccessKind::kWrite);
  const std::vector<Wait> waits = waits_of(order, edges, 3);
  EXPECT_TRUE(std::find(waits.begin(), waits.end(), Wait::after_end(1)) != waits.end());
  EXPECT_TRUE(std::find(waits.begin(), waits.end(), Wait::after_end(2)) != waits.end());
  order.open(12, region_of(third), {11});
  order.visit(12, 4, third, AccessKind::kWrite);
  EXPECT_EQ(waits_of(order, edges, 4), std::vector{Wait::after_end(3)});
}

// Neither part covers the tile, so what it took over stays on its list: it must not go on from stay
// to stay, or a loop over such tiles waits for everything since its beginning.
TEST(Dependences, AStayWrittenInPartsHandsOnItsOwnAccessesOnly) {
  Rig rig;
  const Tensor tile = rig.sbuf({128, 2}, DType::kUint8);
  const auto column = [&](std::int64_t byte) {
    return tile.with(tile.dtype(), byte, std::vector<Dim>{tile.dim(0), {1, 1}});
  };
  Dependences order;
  Edges edges;
  std::uint32_t item = 0;
  for (Dependences::Key stay = 10; stay < 20; ++stay) {
    if (stay > 10) {
      order.open(stay, region_of(tile), {stay - 1});
    }
    for (const std::int64_t byte : {0, 1}) {
      order.visit(stay, item, column(byte), AccessKind::kWrite);
      const std::vector<Wait> waits = waits_of(order, edges, item++);
      std::vector<Wait> expected;  // the two accesses of the stay before
      if (stay > 10) {
        const auto past = static_cast<std::uint32_t>(2 * (stay - 10));
        expected = {Wait::after_end(past - 2), Wait::after_end(past - 1)};
      }
      EXPECT_EQ(waits, expected);
    }
  }
}

TEST(Dependences, AStayThatWasNeverWrittenHandsItsWaitsOn) {
  Rig rig;
  const Tensor tile = rig.sbuf({128, 8});
  Dependences order;
  Edges edges;
  order.visit(10, 0, tile, AccessKind::kWrite);
  order.finish(edges);
  order.open(11, region_of(tile), {10});
  order.open(12, region_of(tile), {11});
  order.visit(12, 1, tile, AccessKind::kWrite);
  EXPECT_EQ(waits_of(order, edges, 1), std::vector{Wait::after_end(0)});
}

TEST(Dependences, HiddenStateIsAChain) {
  Dependences order;
  Edges edges;
  order.visit_state(HiddenState::kRandom, 0);
  EXPECT_TRUE(waits_of(order, edges, 0).empty());
  order.visit_state(HiddenState::kVectorAccumulators, 1);
  EXPECT_TRUE(waits_of(order, edges, 1).empty());
  order.visit_state(HiddenState::kRandom, 2);
  EXPECT_EQ(waits_of(order, edges, 2), std::vector{Wait::after_end(0)});
}

}  // namespace
}  // namespace trena::core_test
