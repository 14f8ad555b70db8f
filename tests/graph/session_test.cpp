// One step of a session: values, and time from the same instructions.
#include "trena/graph/session.h"

#include <gtest/gtest.h>

#include <array>

#include "trena/graph/heap.h"
#include "trena/graph/lower/copy.h"
#include "trena/graph/lower/matmul.h"
#include "trena/machine/load.h"

namespace trena {
namespace {

Machine trn2() { return load_machine(find_machine("trn2", TRENA_SOURCE_DIR "/hardware")); }

// A float32 tensor of the heap, row-major.
class DeviceTensor {
 public:
  DeviceTensor(std::int64_t rows, std::int64_t columns)
      : rows_(rows),
        columns_(columns),
        memory_(Heap::instance().allocate(static_cast<std::size_t>(4 * rows * columns))) {}
  ~DeviceTensor() { Heap::instance().release(memory_.data); }
  DeviceTensor(const DeviceTensor&) = delete;
  DeviceTensor& operator=(const DeviceTensor&) = delete;

  float& at(std::int64_t row, std::int64_t column) {
    return reinterpret_cast<float*>(memory_.data)[row * columns_ + column];
  }
  HbmView view(Session& session) const {
    return session.view(memory_.data, DType::kFloat32, std::array{rows_, columns_},
                        std::array<std::int64_t, 2>{columns_, 1});
  }
  const std::byte* data() const { return memory_.data; }

 private:
  std::int64_t rows_;
  std::int64_t columns_;
  Heap::Allocation memory_;
};

TEST(Session, CountsEveryMultiplicationOfAProductOnce) {
  constexpr std::int64_t kM = 130, kK = 200, kN = 600;
  Session session(trn2());
  DeviceTensor a(kM, kK), b(kK, kN), out(kM, kN);
  for (std::int64_t m = 0; m < kM; ++m) {
    for (std::int64_t k = 0; k < kK; ++k) {
      a.at(m, k) = static_cast<float>((m + 2 * k) % 7 - 3);
    }
  }
  for (std::int64_t k = 0; k < kK; ++k) {
    for (std::int64_t n = 0; n < kN; ++n) {
      b.at(k, n) = static_cast<float>((3 * k + n) % 5 - 2);
    }
  }
  {
    Lowering lowering(session.program(), "mm");
    lower_matmul(lowering, out.view(session), a.view(session), b.view(session), std::nullopt, {});
  }
  // Small integers: exact in any order.
  for (const auto& [m, n] :
       {std::pair<std::int64_t, std::int64_t>{0, 0}, {129, 599}, {128, 512}, {7, 511}}) {
    float expected = 0.0F;
    for (std::int64_t k = 0; k < kK; ++k) {
      expected += a.at(m, k) * b.at(k, n);
    }
    EXPECT_EQ(out.at(m, n), expected) << m << ", " << n;
  }
  const auto run = session.finish({});
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->per_core[0].multiply_accumulates, kM * kN * kK);
  EXPECT_GE(run->per_core[0].hbm_read_bytes, 4 * (kM * kK + kK * kN));
  EXPECT_EQ(run->per_core[0].hbm_write_bytes, 4 * kM * kN);
  EXPECT_GT(run->time, 0);
}

TEST(Session, ForgetsAStepWhenItEnds) {
  Session session(trn2());
  EXPECT_FALSE(session.finish({}).has_value());
  DeviceTensor out(3, 4);
  {
    Lowering lowering(session.program(), "fill");
    lower_fill(lowering, out.view(session), 2.5);
  }
  EXPECT_EQ(out.at(2, 3), 2.5F);
  EXPECT_GT(session.instruction_count(), 0U);
  session.drop();
  EXPECT_EQ(session.instruction_count(), 0U);
}

TEST(Session, ViewsOfOneAllocationShareABuffer) {
  Session session(trn2());
  DeviceTensor x(4, 4);
  const HbmView whole = x.view(session);
  const HbmView part = session.view(x.data() + 16, DType::kFloat32, std::array<std::int64_t, 1>{4},
                                    std::array<std::int64_t, 1>{1});
  EXPECT_EQ(whole.storage.buffer(), part.storage.buffer());
  EXPECT_EQ(part.offset_bytes, 16);
}

TEST(Session, RefusesMemoryOfSomebodyElse) {
  Session session(trn2());
  float here = 0.0F;
  try {
    session.view(reinterpret_cast<const std::byte*>(&here), DType::kFloat32, {}, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.id(), "not-on-device");
  }
}

}  // namespace
}  // namespace trena
