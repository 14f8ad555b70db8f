// What lies at addresses that the kernel chose, as accesses come by.
#include "trena/check/contents.h"

#include <gtest/gtest.h>

#include "../core/core_rig.h"

namespace trena::core_test {
namespace {

// A tensor of 4 partitions × `bytes` on an array of 64 bytes a partition.
Tensor at(std::uint32_t id, int partition, std::int64_t offset_bytes, std::int64_t bytes) {
  auto buffer = std::make_shared<Buffer>();
  buffer->space = Space::kSbuf;
  buffer->id = id;
  buffer->rows = 4;
  buffer->row_bytes = bytes;
  buffer->pitch_bytes = 64;
  buffer->address = Address{partition, offset_bytes};
  return Tensor(buffer, DType::kUint8, std::array<std::int64_t, 2>{4, bytes});
}

struct Seen {
  Probe probe{EngineKind::kVector, engine_cost(1, 1)};
  Contents contents;

  void write(const Tensor& tensor) { contents.write(probe, tensor, region_in_memory(tensor)); }
  // Ids of the tensors that left something beneath.
  std::vector<std::uint32_t> beneath(const Tensor& tensor) {
    Footprint footprint({&tensor, AccessKind::kRead}, contents);
    std::vector<std::uint32_t> ids;
    for (const Contents::Write* write : footprint.beneath()) {
      ids.push_back(write->buffer->id);
    }
    return ids;
  }
};

using Ids = std::vector<std::uint32_t>;

TEST(Contents, ForgetWhatALaterWriteCovers) {
  Seen seen;
  const Tensor left = at(1, 0, 0, 16), right = at(2, 0, 16, 16), middle = at(3, 0, 8, 16);
  const Tensor both = at(4, 0, 0, 32), below = at(5, 4, 0, 32);
  seen.write(left);
  seen.write(right);
  seen.write(below);
  EXPECT_EQ(seen.beneath(middle), (Ids{2, 1})) << "newest first";
  seen.write(middle);
  EXPECT_EQ(seen.beneath(both), (Ids{3, 2, 1})) << "parts of the older ones are still there";
  seen.write(both);
  EXPECT_EQ(seen.beneath(middle), Ids{4});
  EXPECT_EQ(seen.beneath(below), Ids{5}) << "other partitions";
}

TEST(Contents, KnowWhoWroteThroughItsOwnName) {
  Seen seen;
  const Tensor tile = at(1, 0, 0, 16), same_place = at(2, 0, 0, 16);
  seen.write(tile);
  seen.write(tile);
  EXPECT_EQ(seen.contents.first_write(*tile.buffer()), 0);
  EXPECT_FALSE(seen.contents.first_write(*same_place.buffer()));
  seen.write(same_place);
  EXPECT_EQ(seen.contents.first_write(*same_place.buffer()), 2);
}

TEST(Contents, ShowAFootprintWhatWasThereBeforeIt) {
  Seen seen;
  const Tensor tile = at(1, 0, 0, 16), next = at(2, 0, 16, 16);
  seen.write(tile);
  Footprint footprint({&tile, AccessKind::kUpdate}, seen.contents);
  ASSERT_EQ(footprint.beneath().size(), 1u);
  EXPECT_TRUE(footprint.writes());
  footprint.begin({&next, AccessKind::kRead}, seen.contents);
  EXPECT_TRUE(footprint.beneath().empty()) << "nothing of the access before";
  EXPECT_EQ(footprint.region().byte_first, 16);
}

}  // namespace
}  // namespace trena::core_test
