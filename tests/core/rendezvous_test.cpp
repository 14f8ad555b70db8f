#include "trena/core/rendezvous.h"

#include <gtest/gtest.h>

#include <thread>

#include "../isa/dma_support.h"
#include "trena/core/pair.h"

namespace trena {
namespace {

Meeting at(std::string kind, int line, std::vector<int> members = {0, 1}) {
  return {std::move(kind), std::move(members), {"kernel.py", line}};
}

// One thread per member, as a launch runs them; what each ended with.
template <typename Body>
std::vector<std::string> run(Baton& baton, Body&& body) {
  std::vector<std::string> ends(static_cast<std::size_t>(baton.count()));
  std::vector<std::thread> threads;
  for (int member = 0; member < baton.count(); ++member) {
    threads.emplace_back([&, member] {
      std::string& end = ends[static_cast<std::size_t>(member)];
      try {
        baton.start(member);
        body(member);
        baton.finish(member);
        end = "finished";
      } catch (const Error& error) {
        end = error.id() + ": " + error.text().here;
        baton.fail(member);
      } catch (const Abandoned&) {
        end = "abandoned";
        baton.fail(member);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return ends;
}

TEST(Baton, ChangesHandsOnlyAtAMeeting) {
  for (int round = 0; round < 200; ++round) {
    Baton baton(2);
    std::string order;  // no lock: one member at a time (checked under TSan)
    run(baton, [&](int member) {
      for (int step = 0; step < 3; ++step) {
        order += static_cast<char>('a' + step);
        order += static_cast<char>('0' + member);
        baton.meet(member, at("core_barrier", step));
      }
    });
    ASSERT_EQ(order, "a0a1b0b1c0c1");
  }
}

TEST(Baton, CarriesOffersAndNumbersMeetings) {
  Baton baton(2);
  std::vector<int> got(4);
  std::vector<std::int64_t> ids;
  const auto ends = run(baton, [&](int member) {
    for (int step = 0; step < 2; ++step) {
      const Met met = baton.meet(member, at("sendrecv pipe 0", step),
                                 std::make_shared<const int>(10 * member + step));
      got[static_cast<std::size_t>(2 * member + step)] =
          *static_cast<const int*>(met.offers[static_cast<std::size_t>(1 - member)].get());
      ids.push_back(met.id);
    }
  });
  EXPECT_EQ(ends, (std::vector<std::string>{"finished", "finished"}));
  EXPECT_EQ(got, (std::vector<int>{10, 11, 0, 1}));
  EXPECT_EQ(ids, (std::vector<std::int64_t>{0, 0, 1, 1}));
}

TEST(Baton, LetsGroupsMeetOnTheirOwn) {
  Baton baton(4, "rank");
  std::string order;
  run(baton, [&](int member) {
    order += static_cast<char>('0' + member);
    const int first = member / 2 * 2;
    baton.meet(member, at("all_reduce", 1, {first, first + 1}));
    order += static_cast<char>('a' + member);
  });
  EXPECT_EQ(order, "01ab23cd");
}

TEST(Baton, ReportsADeadlockWithBothPositions) {
  {
    Baton baton(2);
    const auto ends = run(baton, [&](int member) {
      baton.meet(member, member == 0 ? at("sendrecv pipe 0", 3) : at("sendrecv pipe 1", 9));
    });
    const std::string text =
        "deadlock: core 0 waits at sendrecv pipe 0 (kernel.py:3); "
        "core 1 waits at sendrecv pipe 1 (kernel.py:9)";
    EXPECT_EQ(ends, (std::vector<std::string>{text, text}));
  }
  {
    Baton baton(2);
    const auto ends = run(baton, [&](int member) {
      if (member == 0) {
        baton.meet(member, at("core_barrier", 5));
      }
    });
    EXPECT_EQ(ends[0], "deadlock: core 0 waits at core_barrier (kernel.py:5); core 1 has finished");
    EXPECT_EQ(ends[1], "finished");
  }
  {
    Baton baton(2);
    const auto ends = run(baton, [&](int member) {
      if (member == 1) {
        baton.meet(member, at("core_barrier", 7));
      }
    });
    EXPECT_EQ(ends[1], "deadlock: core 0 has finished; core 1 waits at core_barrier (kernel.py:7)");
  }
}

TEST(Baton, ReleasesTheOthersWhenOneFails) {
  for (const int failing : {0, 1}) {
    Baton baton(2);
    const auto ends = run(baton, [&](int member) {
      if (member == failing) {
        throw Error(ErrorKind::kIllegal, "engine-refused", {.here = "here"});
      }
      baton.meet(member, at("core_barrier", 1));
    });
    EXPECT_EQ(ends[static_cast<std::size_t>(failing)], "engine-refused: here");
    EXPECT_EQ(ends[static_cast<std::size_t>(1 - failing)], "abandoned");
  }
}

TEST(Baton, PollsWhileItWaits) {
  struct Interrupt {};
  Baton baton(2, "core", [] { throw Interrupt(); });
  baton.start(0);
  EXPECT_THROW(baton.start(1), Interrupt);
}

// Both cores of a pair on one program.
struct Pair {
  explicit Pair(std::string_view machine = "trn2") : bench(machine, 2) {}
  std::vector<std::string> run_cores(const std::function<void(const Seat&)>& body) {
    return run(baton, [&](int core) { body({&bench.program, core, &baton, core}); });
  }
  Tensor tile(int core, DType dtype, std::vector<std::int64_t> shape, std::vector<float> values) {
    const Tensor result = bench.make(Space::kSbuf, dtype, std::move(shape), core);
    for (std::size_t i = 0; i < values.size(); ++i) {
      reinterpret_cast<float*>(result.data())[i] = values[i];
    }
    result.buffer()->storage->written().mark_all();
    return result;
  }
  Bench bench;
  Baton baton{2};
};

std::unique_ptr<SendRecv> swap(const Tensor& src, const Tensor& dst, int core,
                               SendRecvPath path = SendRecvPath::kDma) {
  return std::make_unique<SendRecv>(src, dst, 1 - core, 1 - core, path);
}

TEST(Pair, SwapsTilesWhateverEachDoesNext) {
  Pair pair;
  std::vector<std::vector<float>> got(2);
  const auto ends = pair.run_cores([&](const Seat& seat) {
    const float base = 10.0f * static_cast<float>(seat.core);
    const Tensor mine = pair.tile(seat.core, DType::kFloat32, {2, 1}, {base + 1, base + 2});
    const Tensor theirs = pair.tile(seat.core, DType::kFloat32, {2, 1}, {0, 0});
    append_sendrecv(seat, swap(mine, theirs, seat.core), 0);
    reinterpret_cast<float*>(mine.data())[0] = -1;  // must not reach the other core
    got[static_cast<std::size_t>(seat.core)] = values_of<float>(theirs);
  });
  EXPECT_EQ(ends, (std::vector<std::string>{"finished", "finished"}));
  EXPECT_EQ(got[0], (std::vector<float>{11, 12}));
  EXPECT_EQ(got[1], (std::vector<float>{1, 2}));
  const auto& first = pair.bench.program.instructions(0);
  const auto& second = pair.bench.program.instructions(1);
  ASSERT_EQ(first.size(), 1u);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(first[0]->rendezvous(), second[0]->rendezvous());
  EXPECT_GE(first[0]->rendezvous(), 0);
}

TEST(Pair, NamesTilesThatDoNotFit) {
  Pair pair;
  const auto ends = pair.run_cores([&](const Seat& seat) {
    const std::int64_t columns = 1 + seat.core;
    const Tensor mine = pair.tile(seat.core, DType::kFloat32, {2, columns}, {0, 0});
    append_sendrecv(seat, swap(mine, mine, seat.core), 0);
  });
  EXPECT_EQ(ends[0].substr(0, 17), "sendrecv-mismatch");
  EXPECT_EQ(ends[1], "abandoned");
}

TEST(Pair, BarriersOrderSharedMemory) {
  Pair pair;
  const std::vector<std::int64_t> shape{4};
  const Tensor shared = pair.bench.program.make_tensor(0, {.space = Space::kHbm,
                                                           .dtype = DType::kFloat32,
                                                           .shape = shape,
                                                           .name = "s",
                                                           .address = {},
                                                           .role = BufferRole::kShared});
  const auto barrier = [&](std::vector<int> cores = {0, 1}) {
    return std::make_unique<CoreBarrier>(shared, std::move(cores), std::nullopt);
  };
  const auto ends = pair.run_cores([&](const Seat& seat) { append_core_barrier(seat, barrier()); });
  EXPECT_EQ(ends, (std::vector<std::string>{"finished", "finished"}));
  const Instruction& instruction = *pair.bench.program.instructions(0)[0];
  const Machine& machine = pair.bench.program.machine();
  EXPECT_EQ(instruction.engine(machine), EngineKind::kGpsimd);           // the public default
  EXPECT_EQ(instruction.cost(machine).completion, ticks_from_ns(2000));  // about 2 µs (hw.md §5.4)

  Bench single("trn2");
  EXPECT_EQ(error_of([&] { append_core_barrier({&single.program, 0, nullptr, 0}, barrier()); }),
            "pair-single-core");
  EXPECT_EQ(error_of([&] { barrier({0, 2})->check(machine); }), "pair-cores");
  EXPECT_EQ(error_of([&] { barrier()->check(test_machine("trn1")); }), "pair-refused");
}

TEST(Pair, RefusesWhatItCannotSwap) {
  Pair pair;
  const Machine& machine = pair.bench.program.machine();
  const auto id = [&](DType dtype, std::int64_t columns, SendRecvPath path) {
    const Tensor tile = pair.bench.make(Space::kSbuf, dtype, {128, columns});
    return error_of([&] { swap(tile, tile, 0, path)->check(machine); });
  };
  // AWS nki.isa reference: 1024, 512 and 256 bytes per partition for 32-, 16- and 8-bit types.
  EXPECT_EQ(id(DType::kFloat32, 256, SendRecvPath::kGpsimd), "");
  EXPECT_EQ(id(DType::kFloat32, 257, SendRecvPath::kGpsimd), "sendrecv-size");
  EXPECT_EQ(id(DType::kBfloat16, 256, SendRecvPath::kGpsimd), "");
  EXPECT_EQ(id(DType::kBfloat16, 257, SendRecvPath::kGpsimd), "sendrecv-size");
  EXPECT_EQ(id(DType::kUint8, 256, SendRecvPath::kGpsimd), "");
  EXPECT_EQ(id(DType::kUint8, 257, SendRecvPath::kGpsimd), "sendrecv-size");
  EXPECT_EQ(id(DType::kFloat32, 257, SendRecvPath::kDma), "");
  const Tensor hbm = pair.bench.make(Space::kHbm, DType::kFloat32, {2, 2});
  const Tensor tile = pair.bench.make(Space::kSbuf, DType::kFloat32, {2, 2});
  EXPECT_EQ(error_of([&] { swap(hbm, tile, 0)->check(machine); }), "memory-refused");
  EXPECT_EQ(error_of([&] { SendRecv(tile, tile, 2, 1, SendRecvPath::kDma).check(machine); }),
            "pair-cores");
  EXPECT_EQ(swap(tile, tile, 0, SendRecvPath::kGpsimd)->engine(machine), EngineKind::kGpsimd);
}

}  // namespace
}  // namespace trena
