#include "trena/graph/heap.h"

#include <gtest/gtest.h>

#include "trena/error.h"

namespace trena {
namespace {

TEST(Heap, FindsAnAllocationFromAnyOfItsBytes) {
  Heap heap;
  const Heap::Allocation a = heap.allocate(100);
  const Heap::Allocation b = heap.allocate(0);
  EXPECT_EQ(heap.find(a.data)->id, a.id);
  EXPECT_EQ(heap.find(a.data + 99)->id, a.id);
  EXPECT_FALSE(heap.find(a.data + 100).has_value() && heap.find(a.data + 100)->id == a.id);
  EXPECT_EQ(heap.find(b.data)->id, b.id);
  heap.release(b.data);
  heap.release(a.data);
  EXPECT_FALSE(heap.find(a.data).has_value());
}

TEST(Heap, CountsBytesAndNeverReusesAnIdentity) {
  Heap heap;
  const Heap::Allocation a = heap.allocate(64);
  heap.release(a.data);
  const Heap::Allocation b = heap.allocate(32);
  EXPECT_NE(a.id, b.id);
  EXPECT_EQ(heap.usage().allocated_bytes, 32);
  EXPECT_EQ(heap.usage().peak_bytes, 64);
  heap.reset_peak();
  EXPECT_EQ(heap.usage().peak_bytes, 32);
  heap.release(b.data);
}

TEST(Heap, RefusesMoreThanItsLimit) {
  Heap heap;
  heap.set_limit_bytes(100);
  const Heap::Allocation a = heap.allocate(100);
  try {
    heap.allocate(1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.id(), "hbm-capacity");
  }
  heap.release(a.data);
  heap.release(heap.allocate(1).data);
}

}  // namespace
}  // namespace trena
