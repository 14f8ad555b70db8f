#include "trena/fabric/collective.h"

#include <gtest/gtest.h>

#include <thread>

#include "../isa/dma_support.h"

namespace trena {
namespace {

const std::string kHardware = TRENA_SOURCE_DIR "/hardware";

Network one_rank_per_chip() {
  const Server server = load_server(find_server("trn2.48xlarge", kHardware));
  return Network(test_machine("trn2"), server, load_fabric(find_fabric(server.fabric, kHardware)),
                 1);
}

// Ranks on threads; returns what each ended with, and fills `results`.
std::vector<std::string> run_ranks(int world, AluOp op, const std::vector<std::vector<int>>& groups,
                                   const std::function<std::vector<float>(int)>& input,
                                   std::vector<std::vector<float>>& results,
                                   std::vector<Ticks>* times = nullptr) {
  const Network network = one_rank_per_chip();
  Baton baton(world, "rank");
  results.resize(static_cast<std::size_t>(world));
  std::vector<std::string> ends(static_cast<std::size_t>(world));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      const auto at = static_cast<std::size_t>(rank);
      try {
        baton.start(rank);
        Bench bench("trn2");
        std::vector<float> values = input(rank);
        const auto count = static_cast<std::int64_t>(values.size());
        const Tensor src = bench.hbm<float>(DType::kFloat32, {count}, values);
        const Tensor dst = bench.make(Space::kHbm, DType::kFloat32, {count});
        append_all_reduce({&bench.program, 0, &baton, rank}, {rank, world, &network},
                          std::make_unique<AllReduce>(std::vector<Tensor>{src},
                                                      std::vector<Tensor>{dst}, std::nullopt),
                          groups, op);
        results[at] = values_of<float>(dst);
        if (times != nullptr) {
          (*times)[at] = bench.program.instructions(0)[0]->cost(bench.program.machine()).completion;
        }
        baton.finish(rank);
      } catch (const Error& error) {
        ends[at] = error.id();
        baton.fail(rank);
      } catch (const Abandoned&) {
        ends[at] = "abandoned";
        baton.fail(rank);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return ends;
}

TEST(Collective, ReducesOverEachGroup) {
  std::vector<std::vector<float>> results;
  std::vector<Ticks> times(4);
  const auto input = [](int rank) {
    return std::vector<float>{static_cast<float>(rank), 10.0f - static_cast<float>(rank)};
  };
  run_ranks(4, AluOp::kAdd, {{0, 2}, {3, 1}}, input, results, &times);
  EXPECT_EQ(results[0], (std::vector<float>{2, 18}));
  EXPECT_EQ(results[2], (std::vector<float>{2, 18}));
  EXPECT_EQ(results[1], (std::vector<float>{4, 16}));
  EXPECT_EQ(results[3], (std::vector<float>{4, 16}));
  // Two steps of 1.5 µs and a transit of 0.45 µs each, 4 bytes at 128 x 0.92 B/ns
  // (hardware/fabrics).
  EXPECT_NEAR(ns_from_ticks(times[0]), 2 * (1500 + 450 + 4 / 117.76), 0.01);
  run_ranks(4, AluOp::kMaximum, {{0, 1, 2, 3}}, input, results);
  EXPECT_EQ(results[3], (std::vector<float>{3, 10}));
  run_ranks(4, AluOp::kMinimum, {{0, 1, 2, 3}}, input, results);
  EXPECT_EQ(results[1], (std::vector<float>{0, 7}));
}

TEST(Collective, AddsInOrderOfRank) {
  // 2^24 + 1 is lost, 1 + 1 is not: (2^24 + 1) + 1 = 2^24, whoever is first to arrive.
  std::vector<std::vector<float>> results;
  run_ranks(
      3, AluOp::kAdd, {{2, 1, 0}},
      [](int rank) { return std::vector<float>{rank == 0 ? 16777216.0f : 1.0f}; }, results);
  for (const auto& result : results) {
    EXPECT_EQ(result[0], 16777216.0f);
  }
}

TEST(Collective, RoundsAtEveryHop) {
  // bfloat16 256 + 1 + 1: each addition is a tie that rounds back to 256.
  const auto bits = [](std::uint16_t value) {
    return std::make_shared<const std::vector<std::byte>>(std::vector<std::byte>{
        static_cast<std::byte>(value & 0xff), static_cast<std::byte>(value >> 8)});
  };
  const AllReduce::Bytes sum =
      reduce(DType::kBfloat16, {bits(0x4380), bits(0x3f80), bits(0x3f80)}, AluOp::kAdd);
  EXPECT_EQ(*sum, *bits(0x4380));
}

TEST(Collective, RefusesWhatDoesNotFit) {
  std::vector<std::vector<float>> results;
  const auto input = [](int rank) { return std::vector<float>(rank == 1 ? 2 : 1, 0.0f); };
  EXPECT_EQ(run_ranks(2, AluOp::kAdd, {{0, 1}}, input, results)[0], "collective-mismatch");
  EXPECT_EQ(run_ranks(1, AluOp::kAdd, {{0, 1}}, input, results)[0], "collective-group");
  EXPECT_EQ(run_ranks(1, AluOp::kAdd, {{0, 0}}, input, results)[0], "collective-group");
  EXPECT_EQ(run_ranks(1, AluOp::kMultiply, {{0}}, input, results)[0], "operator-refused");
  EXPECT_EQ(run_ranks(2, AluOp::kAdd, {{0, 1, 2}, {2}}, input, results)[0], "collective-group");
}

}  // namespace
}  // namespace trena
