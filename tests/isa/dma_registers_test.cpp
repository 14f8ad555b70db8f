#include "dma_support.h"
#include "trena/isa/sync/registers.h"

namespace trena {
namespace {

TEST(Registers, LoadAndStoreIntegersOfOneElement) {
  Bench bench("trn2");
  const auto load = [&](const Tensor& tensor) {
    std::int64_t value = 0;
    bench.program.append(0, make_instruction(RegisterLoad{tensor, &value}));
    return value;
  };
  EXPECT_EQ(load(bench.hbm<std::int32_t>(DType::kInt32, {1}, {-5})), -5);
  EXPECT_EQ(load(bench.hbm<std::uint32_t>(DType::kUint32, {1, 1}, {4000000000u})), 4000000000);
  EXPECT_EQ(load(bench.hbm<std::int8_t>(DType::kInt8, {1}, {-1})), -1);
  const Tensor cell = bench.make(Space::kSbuf, DType::kInt32, {1, 1});
  EXPECT_EQ(error_of([&] { load(cell); }), "unwritten-read");
  bench.program.append(0, make_instruction(RegisterStore{cell, -7}));
  EXPECT_EQ(load(cell), -7);
  EXPECT_EQ(error_of([&] { load(bench.make(Space::kSbuf, DType::kInt32, {1, 2})); }),
            "register-element");
  EXPECT_EQ(error_of([&] { load(bench.make(Space::kSbuf, DType::kFloat32, {1, 1})); }),
            "dtype-refused");
  EXPECT_EQ(
      error_of([&] { bench.program.append(0, make_instruction(RegisterStore{cell, 4294967296})); }),
      "register-range");
}

TEST(Registers, CostWhatTheSequencersShow) {
  // voyager-compiler on Trn2: MOVE 68 ns; TENSOR_LOAD 681 ns (INST-011, the middle of five).
  Bench bench("trn2");
  const Machine& machine = bench.program.machine();
  EXPECT_NEAR(ns_from_ticks(make_instruction(RegisterMove{})->cost(machine).completion), 68, 0.01);
  const Tensor cell = bench.make(Space::kSbuf, DType::kInt32, {1, 1});
  EXPECT_NEAR(
      ns_from_ticks(make_instruction(RegisterLoad{cell, nullptr})->cost(machine).completion), 681,
      0.01);
}

}  // namespace
}  // namespace trena
