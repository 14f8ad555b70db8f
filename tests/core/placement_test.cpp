// Places and spills. The verifier replays a stream on the bytes of SBUF and PSUM: every instruction
// must see what it would have seen in the program as recorded, and whatever touches the same byte
// must be ordered by waits and in time.
#include "trena/core/placement/placement.h"

#include <set>

#include "random_kernel.h"
#include "trena/core/timeline/timeline.h"
#include "trena/isa/dma/dma_copy.h"
#include "trena/number/threads.h"

namespace trena::core_test {
namespace {

using enum EngineKind;

constexpr std::size_t kMostItems = 2048;

using Token = std::uint64_t;
Token mix(Token a, Token b) {
  a ^= b + 0x9E3779B97F4A7C15u + (a << 12) + (a >> 4);
  return a * 0xBF58476D1CE4E5B9u;
}

bool reads_old(AccessKind kind) {
  return reads_only(kind) || kind == AccessKind::kUpdate || kind == AccessKind::kAccumulate;
}

// One access of the program as recorded: its bytes, and which of them had been written before.
struct Recorded {
  const Buffer* buffer;
  AccessKind kind;
  std::vector<std::int64_t> bytes;
  std::vector<bool> known;
};

class Verifier {
 public:
  Verifier(const Program& program, const Machine& machine, const Stream& stream)
      : program_(program), machine_(machine), stream_(stream) {}

  void check() {
    record();
    check_residences();
    for (std::uint32_t item = 0; item < stream_.items.size(); ++item) {
      closure_.add(stream_.waits.of(item));
    }
    time_ = std::make_unique<Run>();
    time_->per_core.resize(1);
    simulate(program_, machine_, {&stream_, 1}, *time_);
    for (std::uint32_t item = 0; item < stream_.items.size() && !testing::Test::HasFatalFailure();
         ++item) {
      replay(item);
    }
    for (const auto& [buffer, tokens] : hbm_) {
      ASSERT_EQ(tokens, recorded_hbm_[buffer]) << "HBM " << buffer->name;
    }
    std::map<const Instruction*, int> times;
    for (const StreamItem& item : stream_.items) {
      times[item.instruction] += item.insertion == Insertion::kRecorded ? 1 : 0;
    }
    for (const auto& instruction : program_.instructions(0)) {
      ASSERT_EQ(times[instruction.get()], 1) << "line " << instruction->position.line;
    }
  }

 private:
  static std::vector<Token>& tokens_of(std::map<const Buffer*, std::vector<Token>>& memory,
                                       const Buffer& buffer) {
    std::vector<Token>& tokens = memory[&buffer];
    for (std::size_t byte = tokens.size(); byte < static_cast<std::size_t>(buffer.size_bytes());
         ++byte) {
      tokens.push_back(mix(buffer.id + 1, byte));
    }
    return tokens;
  }

  // The program in its own order, every tensor with bytes of its own.
  void record() {
    std::map<const Buffer*, std::vector<Token>> memory;
    std::map<const Buffer*, std::vector<bool>> written;
    Token number = 0;
    for (const auto& instruction : program_.instructions(0)) {
      AccessList list;
      instruction->access(list);
      Token seen = ++number;
      std::vector<Recorded>& accesses = accesses_[instruction.get()];
      for (const Access& access : list) {
        const Buffer& buffer = *access.tensor->buffer();
        std::vector<bool>& marks = written[&buffer];
        marks.resize(static_cast<std::size_t>(buffer.size_bytes()), !buffer.on_chip());
        Recorded recorded{&buffer, access.kind, byte_list(*access.tensor), {}};
        for (std::int64_t& byte : recorded.bytes) {  // rows of a window are far apart
          byte = byte / buffer.pitch_bytes * buffer.row_bytes + byte % buffer.pitch_bytes;
        }
        for (const std::int64_t byte : recorded.bytes) {
          const auto at = static_cast<std::size_t>(byte);
          recorded.known.push_back(marks[at]);
          if (reads_old(access.kind) && marks[at]) {
            seen = mix(seen, tokens_of(memory, buffer)[at]);
          }
        }
        accesses.push_back(std::move(recorded));
      }
      seen_[instruction.get()] = seen;
      for (const Recorded& access : accesses) {
        if (!reads_only(access.kind)) {
          for (const std::int64_t byte : access.bytes) {
            tokens_of(memory, *access.buffer)[static_cast<std::size_t>(byte)] =
                mix(seen, static_cast<Token>(byte));
            written[access.buffer][static_cast<std::size_t>(byte)] = true;
          }
        }
      }
    }
    for (auto& [buffer, tokens] : memory) {
      if (!buffer->on_chip()) {
        recorded_hbm_[buffer] = tokens;
      }
    }
  }

  void check_residences() {
    for (const Residence& a : stream_.residences) {
      const std::int64_t limit = a.buffer->space == Space::kPsum
                                     ? machine_.core.psum.partition_bytes()
                                     : machine_.core.sbuf.usable_bytes();
      ASSERT_GE(a.offset_bytes, 0);
      ASSERT_LE(a.offset_bytes + a.bytes, limit);
      ASSERT_GE(a.bytes, a.buffer->row_bytes);
      ASSERT_LE(a.first_item, a.past_item);
      for (const Residence& b : stream_.residences) {
        if (&a == &b || a.buffer->space != b.buffer->space) {
          continue;
        }
        const bool together = a.first_item < b.past_item && b.first_item < a.past_item;
        const bool share =
            a.offset_bytes < b.offset_bytes + b.bytes && b.offset_bytes < a.offset_bytes + a.bytes;
        ASSERT_FALSE(together && share) << a.buffer->name << " and " << b.buffer->name;
      }
    }
  }

  // A byte of the machine: memory, row and address, or a byte of a spill slot or HBM tensor.
  struct Cell {
    Token token = 1;  // garbage
    std::int64_t writer = -1;
    bool accumulated = false;
    std::vector<std::uint32_t> readers;
  };
  Cell& cell(std::uint32_t item, const Buffer& buffer, std::int64_t byte) {
    if (!buffer.on_chip()) {
      Cell& found = hbm_cells_[{&buffer, byte}];
      found.token = tokens_of(hbm_, buffer)[static_cast<std::size_t>(byte)];
      return found;
    }
    if (buffer.address) {
      return chip_cells_[{buffer.space, buffer.address->partition + byte / buffer.row_bytes,
                          buffer.address->offset_bytes + byte % buffer.row_bytes}];
    }
    for (const Residence& residence : stream_.residences) {
      if (residence.buffer == &buffer && residence.first_item <= item &&
          item < residence.past_item) {
        return chip_cells_[{buffer.space, byte / buffer.row_bytes,
                            residence.offset_bytes + byte % buffer.row_bytes}];
      }
    }
    ADD_FAILURE() << buffer.name << " is nowhere at item " << item;
    return chip_cells_[{buffer.space, -1, byte}];
  }

  std::string describe(std::uint32_t item) const {
    const StreamItem& stream_item = stream_.items[item];
    AccessList list;
    stream_item.instruction->access(list);
    std::string text = fmt::format(
        "item {} ({}, insertion {}, line {}:", item, stream_item.instruction->name(),
        static_cast<int>(stream_item.insertion), stream_item.instruction->position.line);
    for (const Access& access : list) {
      text += fmt::format(" {} kind {}", access.tensor->describe(), static_cast<int>(access.kind));
      for (const Residence& residence : stream_.residences) {
        if (residence.buffer == access.tensor->buffer().get() && residence.first_item <= item &&
            item < residence.past_item) {
          text += fmt::format(" at {}", residence.offset_bytes);
        }
      }
    }
    return text + ")";
  }

  void order(std::uint32_t earlier, std::uint32_t later, bool chain) {
    if (earlier == later || testing::Test::HasFatalFailure()) {
      return;
    }
    ASSERT_TRUE(closure_.ended[later][earlier] || (chain && closure_.chained[later][earlier]))
        << describe(later) << " does not wait for " << describe(earlier);
    const RunEvent& first = time_->events[earlier];
    const RunEvent& second = time_->events[later];
    ASSERT_LE(chain ? first.busy_until : first.end, second.issue)
        << "item " << later << " overtakes " << earlier;
  }
  void read(std::uint32_t item, Cell& cell, bool accumulates) {
    if (cell.writer >= 0) {
      order(static_cast<std::uint32_t>(cell.writer), item, accumulates && cell.accumulated);
    }
    if (!accumulates) {
      cell.readers.push_back(item);
    }
  }
  void write(std::uint32_t item, Cell& cell, Token token, bool accumulates) {
    if (cell.writer >= 0) {
      order(static_cast<std::uint32_t>(cell.writer), item, accumulates && cell.accumulated);
    }
    for (const std::uint32_t reader : cell.readers) {
      order(reader, item, false);
    }
    cell.readers.clear();
    cell.writer = item;
    cell.accumulated = accumulates;
    cell.token = token;
  }

  void replay(std::uint32_t item) {
    const StreamItem& stream_item = stream_.items[item];
    if (stream_item.insertion == Insertion::kSpill) {
      move(item, *stream_item.instruction);
      return;
    }
    const std::vector<Recorded>& accesses = accesses_.at(stream_item.instruction);
    Token seen = 0;
    for (const auto& instruction : program_.instructions(0)) {
      ++seen;
      if (instruction.get() == stream_item.instruction) {
        break;
      }
    }
    for (const Recorded& access : accesses) {
      for (std::size_t i = 0; i < access.bytes.size(); ++i) {
        if (reads_old(access.kind)) {
          Cell& at = cell(item, *access.buffer, access.bytes[i]);
          read(item, at, access.kind == AccessKind::kAccumulate);
          seen = access.known[i] ? mix(seen, at.token) : seen;
        }
      }
    }
    ASSERT_EQ(seen, seen_.at(stream_item.instruction))
        << "item " << item << " (line " << stream_item.instruction->position.line
        << ") reads stale bytes";
    for (const Recorded& access : accesses) {
      if (reads_only(access.kind)) {
        continue;
      }
      for (const std::int64_t byte : access.bytes) {
        const Token token = mix(seen, static_cast<Token>(byte));
        replayed_.insert({access.buffer, byte});
        write(item, cell(item, *access.buffer, byte), token,
              access.kind == AccessKind::kAccumulate);
        if (!access.buffer->on_chip()) {
          tokens_of(hbm_, *access.buffer)[static_cast<std::size_t>(byte)] = token;
        }
      }
    }
  }

  void move(std::uint32_t item, const Instruction& instruction) {
    AccessList list;
    instruction.access(list);
    const bool store = list.begin()->kind == AccessKind::kRead;
    const Buffer& buffer = *list.begin()->tensor->buffer();
    for (std::int64_t byte = 0; byte < buffer.size_bytes(); ++byte) {
      if (!replayed_.contains({&buffer, byte})) {
        continue;  // garbage may move in any order
      }
      Cell& slot = slot_cells_[{&buffer, byte}];
      Cell& here = cell(item, buffer, byte);
      Cell& from = store ? here : slot;
      Cell& to = store ? slot : here;
      read(item, from, false);
      write(item, to, from.token, false);
    }
  }

  const Program& program_;
  const Machine& machine_;
  const Stream& stream_;
  Closure<kMostItems> closure_;
  std::unique_ptr<Run> time_;
  std::map<const Instruction*, std::vector<Recorded>> accesses_;
  std::map<const Instruction*, Token> seen_;
  std::map<const Buffer*, std::vector<Token>> hbm_;
  std::map<const Buffer*, std::vector<Token>> recorded_hbm_;
  std::set<std::pair<const Buffer*, std::int64_t>> replayed_;  // bytes that were written so far
  std::map<std::pair<const Buffer*, std::int64_t>, Cell> hbm_cells_;
  std::map<std::pair<const Buffer*, std::int64_t>, Cell> slot_cells_;
  std::map<std::tuple<Space, std::int64_t, std::int64_t>, Cell> chip_cells_;
};

// How often each kind of insertion occurs.
struct Insertions {
  int reloads = 0;
  int stores = 0;
  int fetches = 0;
  bool none() const { return reloads + stores + fetches == 0; }
};
Insertions insertions(const Stream& stream) {
  Insertions count;
  for (const StreamItem& item : stream.items) {
    count.reloads += item.insertion == Insertion::kReload;
    count.stores +=
        item.insertion == Insertion::kSpill && item.instruction->name() == "spill_store";
    count.fetches +=
        item.insertion == Insertion::kSpill && item.instruction->name() == "spill_reload";
  }
  return count;
}

Stream checked(Kernel& kernel) {
  Stream stream = kernel.place();
  Verifier(kernel.program(), kernel.program().machine(), stream).check();
  return stream;
}

TEST(PlacementProperty, SpilledProgramsReadWhatTheyWouldHaveRead) {
  Insertions total;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Kernel kernel(small_machine(256));
    fill_randomly(kernel, seed);
    const Insertions count = insertions(checked(kernel));
    if (testing::Test::HasFatalFailure()) {
      return;
    }
    total.reloads += count.reloads;
    total.stores += count.stores;
    total.fetches += count.fetches;
  }
  EXPECT_GT(total.reloads, 100);
  EXPECT_GT(total.stores, 100);
  EXPECT_GT(total.fetches, 100);
}

TEST(PlacementProperty, FittingProgramsAreLeftAsTheyAre) {
  for (std::uint32_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    Kernel kernel(small_machine(16 * 1024));
    fill_randomly(kernel, seed);
    const Stream stream = checked(kernel);
    if (testing::Test::HasFatalFailure()) {
      return;
    }
    ASSERT_EQ(stream.items.size(), kernel.program().instructions(0).size());
    EXPECT_TRUE(insertions(stream).none());
    for (std::size_t i = 0; i < stream.items.size(); ++i) {
      EXPECT_EQ(stream.items[i].instruction, kernel.program().instructions(0)[i].get());
    }
  }
}

TEST(PlacementProperty, TheSameProgramGivesTheSameStream) {
  for (const std::int64_t usable : {256, 16 * 1024}) {
    Kernel kernel(small_machine(usable));
    fill_randomly(kernel, 3);
    const Stream a = kernel.place();
    const Stream b = kernel.place();
    ASSERT_EQ(a.items.size(), b.items.size());
    for (std::uint32_t i = 0; i < a.items.size(); ++i) {
      EXPECT_EQ(a.items[i].insertion, b.items[i].insertion);
      EXPECT_EQ(a.items[i].instruction->name(), b.items[i].instruction->name());
      const auto waits_a = a.waits.of(i);
      const auto waits_b = b.waits.of(i);
      EXPECT_TRUE(std::equal(waits_a.begin(), waits_a.end(), waits_b.begin(), waits_b.end()));
    }
  }
}

// Everything a run says, as text.
std::string transcript(const Run& run) {
  std::string text = fmt::format("{} {}\n", run.time, run.launch_time);
  for (const RunEvent& event : run.events) {
    text += fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {}\n", event.name, event.core,
                        static_cast<int>(event.engine), event.queue, event.dma, event.spill,
                        event.issue, event.start, event.busy_until, event.end, event.cause,
                        event.stall, event.bytes);
  }
  for (const CoreRun& core : run.per_core) {
    text += fmt::format("{} {} {} {} {} {} {} {}\n", core.dma_active, core.packet_time,
                        core.hbm_read_bytes, core.hbm_write_bytes, core.spilled_bytes,
                        core.multiply_accumulates, core.sbuf_peak_bytes, core.psum_peak_banks);
  }
  return text;
}

TEST(Determinism, RunsRepeatAndDoNotDependOnThreadsOrAddresses) {
  const int before = thread_count();
  for (const std::int64_t usable : {256, 16 * 1024}) {
    std::vector<std::string> transcripts;
    std::vector<std::unique_ptr<char[]>> shift;  // so that the heap looks different each time
    for (const int threads : {1, 2, 8, 1}) {
      set_thread_count(threads);
      shift.push_back(std::make_unique<char[]>(static_cast<std::size_t>(threads) * 1000 + 24));
      Kernel kernel(small_machine(usable));
      fill_randomly(kernel, 5);
      transcripts.push_back(transcript(run_program(kernel.program(), {})));
      EXPECT_EQ(transcript(run_program(kernel.program(), {})), transcripts.back());
    }
    for (const std::string& text : transcripts) {
      EXPECT_EQ(text, transcripts.front());
    }
  }
  set_thread_count(before);
}

TEST(Placement, LifetimesEndAtTheLastAccess) {
  // Three tiles of 100 in 256 bytes: the first is dead when the third comes.
  Kernel kernel(small_machine(256));
  const Tensor first = kernel.load(100);
  const Tensor second = kernel.load(100);
  kernel.use({first});
  const Tensor third = kernel.load(100);
  kernel.use({second, third});
  const Stream stream = checked(kernel);
  EXPECT_TRUE(insertions(stream).none());
  EXPECT_EQ(stream.sbuf_peak_bytes, 204);  // first, second and the result of 4
}

TEST(Placement, CleanTilesAreLoadedAgainAndNeverStored) {
  Kernel kernel(small_machine(256));
  std::vector<Tensor> tiles;
  for (int i = 0; i < 4; ++i) {
    tiles.push_back(kernel.load(100));
  }
  for (int round = 0; round < 2; ++round) {
    for (const Tensor& tile : tiles) {
      kernel.use({tile});
    }
  }
  const Insertions count = insertions(checked(kernel));
  EXPECT_EQ(count.stores, 0);
  EXPECT_EQ(count.fetches, 0);
  EXPECT_GE(count.reloads, 2);  // two of four stay
  EXPECT_LE(count.reloads, 4);
}

TEST(Placement, TilesLoadedInPartsAreCleanToo) {
  // As the fully optimised matrix product fills its operand tiles.
  Kernel kernel(small_machine(256));
  std::vector<Tensor> tiles;
  for (int i = 0; i < 4; ++i) {
    tiles.push_back(kernel.load_in_parts(100));
  }
  for (int round = 0; round < 2; ++round) {
    for (const Tensor& tile : tiles) {
      kernel.use({tile});
    }
  }
  const Stream stream = checked(kernel);
  const Insertions count = insertions(stream);
  EXPECT_EQ(count.stores, 0);
  EXPECT_EQ(count.fetches, 0);
  EXPECT_GE(count.reloads, 4);
  EXPECT_LE(count.reloads, 8);
}

TEST(Placement, AHoleBetweenThePartsMakesATileOrdinary) {
  Kernel kernel(small_machine(256));
  std::vector<Tensor> tiles;
  for (int i = 0; i < 4; ++i) {
    const Tensor tile = kernel.sbuf({kRows, 100}, DType::kUint8);
    const Tensor source = kernel.hbm({kRows, 100}, DType::kUint8);
    kernel.add<DmaCopy>(Kernel::columns(tile, 0, 50), Kernel::columns(source, 0, 50), DmaRequest{});
    kernel.add<DmaCopy>(Kernel::columns(tile, 60, 40), Kernel::columns(source, 60, 40),
                        DmaRequest{});
    tiles.push_back(tile);
  }
  for (int round = 0; round < 2; ++round) {
    for (const Tensor& tile : tiles) {
      kernel.use({Kernel::columns(tile, 0, 50)});
    }
  }
  const Insertions count = insertions(checked(kernel));
  EXPECT_EQ(count.reloads, 0);
  EXPECT_GT(count.stores, 0);
}

TEST(Placement, ComputedTilesAreStoredOnceAndFetched) {
  Kernel kernel(small_machine(256));
  std::vector<Tensor> tiles;
  for (int i = 0; i < 4; ++i) {
    tiles.push_back(kernel.compute({}, 100));
  }
  for (int round = 0; round < 3; ++round) {
    for (const Tensor& tile : tiles) {
      kernel.use({tile});
    }
  }
  const Insertions count = insertions(checked(kernel));
  EXPECT_EQ(count.reloads, 0);
  EXPECT_LE(count.stores, 4);  // what was stored and not written since is clean
  EXPECT_GE(count.stores, 2);
  EXPECT_GE(count.fetches, 4);
}

TEST(Placement, SpillMovesAreTimedAndCounted) {
  Kernel kernel(small_machine(256));
  std::vector<Tensor> tiles;
  for (int i = 0; i < 4; ++i) {
    tiles.push_back(kernel.compute({}, 100));
  }
  for (const Tensor& tile : tiles) {
    kernel.use({tile});
  }
  const Insertions count = insertions(kernel.place());
  const auto run = run_program(kernel.program(), {});
  EXPECT_EQ(run.per_core[0].spilled_bytes, (count.stores + count.fetches) * kRows * 100);
  EXPECT_EQ(run.per_core[0].hbm_write_bytes, count.stores * kRows * 100);
  EXPECT_EQ(run.per_core[0].hbm_read_bytes, count.fetches * kRows * 100);
  EXPECT_EQ(std::count_if(run.events.begin(), run.events.end(),
                          [](const RunEvent& event) { return event.spill; }),
            count.stores + count.fetches);
}

TEST(Placement, ARunOfProductsIsCutWhereItsOperandsDoNotFit) {
  // Six operands of 100 bytes for one bank; two fit at a time.
  Kernel kernel(small_machine(256));
  std::vector<Tensor> tiles;
  for (int i = 0; i < 6; ++i) {
    tiles.push_back(kernel.load(100));
  }
  const Tensor bank = kernel.psum({kRows, 16});
  for (int i = 0; i < 6; ++i) {
    kernel.product_into(bank, tiles[static_cast<std::size_t>(i)],
                        tiles[static_cast<std::size_t>(i)]);
  }
  kernel.store(kernel.compute({bank}, 16));
  EXPECT_TRUE(insertions(checked(kernel)).none());  // each load only moved to its use
}

TEST(Placement, APinnedTileInTheWayIsMoved) {
  // Three tiles of 80; the next needs 160 in one piece beside the middle one.
  Kernel kernel(small_machine(240));
  const Tensor first = kernel.compute({}, 80);
  const Tensor middle = kernel.compute({}, 80);
  const Tensor last = kernel.compute({}, 80);
  const Tensor wide = kernel.compute({middle}, 160);
  kernel.use({first});
  kernel.use({last});
  kernel.use({wide});
  const Stream stream = checked(kernel);
  EXPECT_GE(insertions(stream).stores, 3);
  std::vector<std::int64_t> places;
  for (const Residence& residence : stream.residences) {
    if (residence.buffer == middle.buffer().get()) {
      places.push_back(residence.offset_bytes);
    }
  }
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(places[0], 80);
  EXPECT_NE(places[1], 80);
}

TEST(Placement, TheWindowThatIsIdleLongestIsEmptied) {
  Kernel kernel(small_machine(304));
  const Tensor soon = kernel.compute({}, 100);
  const Tensor late = kernel.compute({}, 100);
  const Tensor other = kernel.compute({}, 100);
  const Tensor result = kernel.compute({}, 100);  // needs the place of one of them
  kernel.use({soon});
  kernel.use({other});
  kernel.use({result});
  kernel.use({late});
  const Stream stream = checked(kernel);
  for (const StreamItem& item : stream.items) {
    if (item.insertion == Insertion::kSpill) {
      AccessList list;
      item.instruction->access(list);
      EXPECT_EQ(list.begin()->tensor->buffer(), late.buffer());
    }
  }
  EXPECT_EQ(insertions(stream).stores, 1);
}

TEST(Placement, FragmentationIsTriedTighterBeforeAnythingSpills) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Kernel kernel(small_machine(256));
    for (int i = 0; i < 60; ++i) {
      const Tensor a = kernel.compute({}, 4 * random(1, 12));
      const Tensor b = kernel.compute({}, 4 * random(1, 12));
      kernel.use({a, b});
      kernel.use({b});
    }
    EXPECT_TRUE(insertions(checked(kernel)).none());
  }
}

std::string error_of(Kernel& kernel, SpillPolicy spill, std::string* here = nullptr) {
  try {
    kernel.place(spill);
    return "placed";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCapacity);
    if (here != nullptr) {
      *here = error.text().here;
    }
    return error.id();
  }
}

TEST(Placement, WhatAnotherCoreWritesIsNoConstant) {
  // The other core overwrites the source after a meeting; reading it later, or again, would see the
  // new bytes.
  Kernel kernel(small_machine(256), 2);
  const Tensor shared = kernel.hbm({kRows, 100}, DType::kUint8);
  const Tensor tile = kernel.sbuf({kRows, 100}, DType::kUint8);
  const std::uint32_t load = kernel.add<DmaCopy>(tile, shared, DmaRequest{});
  kernel.append(
      1, std::make_unique<Probe>(kVector, engine_cost(1, 1), std::vector<Touch>{writes(shared)}));
  std::vector<Tensor> others;
  for (int i = 0; i < 3; ++i) {
    others.push_back(kernel.load(100));
  }
  for (const Tensor& other : others) {
    kernel.use({other});
  }
  kernel.use({tile});
  const Stream stream = kernel.place();
  EXPECT_EQ(stream.items[0].instruction, kernel.program().instructions(0)[load].get());
  for (std::size_t i = 1; i < stream.items.size(); ++i) {
    EXPECT_NE(stream.items[i].instruction, kernel.program().instructions(0)[load].get());
  }
}

TEST(Placement, ALoadThatOthersNameStaysWhereItIs) {
  Kernel kernel(small_machine(256));
  const Tensor named = kernel.load(100);
  kernel.append(0, [] {
    auto follower = std::make_unique<Probe>(kVector, engine_cost(1, 1));
    follower->depends_on = {0};
    return follower;
  }());
  std::vector<Tensor> others;
  for (int i = 0; i < 3; ++i) {
    others.push_back(kernel.load(100));
  }
  for (const Tensor& other : others) {
    kernel.use({other});
  }
  kernel.use({named});
  const Stream stream = checked(kernel);
  EXPECT_EQ(stream.items[0].instruction, kernel.program().instructions(0)[0].get());
  EXPECT_EQ(stream.waits.of(1).front(), Wait::after_end(0));
}

TEST(PlacementErrors, SpillForbidden) {
  Kernel kernel(small_machine(256));
  std::vector<Tensor> tiles;
  for (int i = 0; i < 3; ++i) {
    tiles.push_back(kernel.load(100));
  }
  for (const Tensor& tile : tiles) {
    kernel.use({tile});
  }
  EXPECT_EQ(error_of(kernel, SpillPolicy::kError), "spill-forbidden");
  EXPECT_EQ(error_of(kernel, SpillPolicy::kAuto), "placed");
}

TEST(PlacementErrors, OperandsOfOneInstructionMustFitTogether) {
  Kernel kernel(small_machine(256));
  const Tensor a = kernel.load(100);
  const Tensor b = kernel.load(100);
  kernel.compute({a, b}, 100);
  std::string here;
  EXPECT_EQ(error_of(kernel, SpillPolicy::kAuto, &here), "sbuf-capacity");
  EXPECT_NE(here.find("needs 300 bytes"), std::string::npos) << here;
}

TEST(PlacementErrors, OneByteMoreDoesNotFit) {
  for (const auto& [usable, outcome] :
       {std::pair{204, "placed"}, std::pair{200, "sbuf-capacity"}}) {
    Kernel kernel(small_machine(usable));
    kernel.use({kernel.load(100), kernel.load(100)});
    EXPECT_EQ(error_of(kernel, SpillPolicy::kAuto), outcome);
  }
}

TEST(PlacementErrors, PsumHasEightBanks) {
  for (const auto& [banks, outcome] : {std::pair{8, "placed"}, std::pair{9, "psum-capacity"}}) {
    Kernel kernel(machine_named("trn2"));
    std::vector<Tensor> live;
    const Tensor a = kernel.load(16);
    for (int i = 0; i < banks; ++i) {
      live.push_back(kernel.psum({kRows, 16}));
      kernel.product_into(live.back(), a, a);
    }
    for (const Tensor& bank : live) {
      kernel.store(kernel.compute({bank}, 16));
    }
    EXPECT_EQ(error_of(kernel, SpillPolicy::kAuto), outcome);
  }
}

TEST(Placement, ManualTensorsKeepTheirAddressesToThemselves) {
  Kernel kernel(small_machine(256));
  const std::vector<std::int64_t> shape = {kRows, 64};
  const Tensor manual = kernel.program().make_tensor(0, {.space = Space::kSbuf,
                                                         .dtype = DType::kUint8,
                                                         .shape = shape,
                                                         .name = "m",
                                                         .address = Address{0, 96}});
  kernel.probe(kVector, engine_cost(1, 1), {writes(manual)});
  std::vector<Tensor> tiles;
  for (int i = 0; i < 3; ++i) {
    tiles.push_back(kernel.load(60));
  }
  for (const Tensor& tile : tiles) {
    kernel.use({tile});
  }
  for (const Residence& residence : kernel.place().residences) {
    EXPECT_TRUE(residence.offset_bytes + residence.bytes <= 96 || residence.offset_bytes >= 160);
  }
}

// A PSUM tensor at the start of `bank`.
Tensor addressed(Kernel& kernel, std::int64_t bank) {
  const std::vector<std::int64_t> shape = {kRows, 16};
  return kernel.program().make_tensor(0, {.space = Space::kPsum,
                                          .dtype = DType::kFloat32,
                                          .shape = shape,
                                          .name = "m",
                                          .address = Address{0, bank * 2048}});
}

// As an expert of nki-library's token generation: eight banks by address, then one without.
TEST(Placement, BanksOfTheKernelsOwnAreLentBetweenTheirUses) {
  Kernel kernel(machine_named("trn2"));
  const Tensor a = kernel.load(16);
  for (int round = 0; round < 2; ++round) {
    std::vector<Tensor> banks;
    for (int bank = 0; bank < 8; ++bank) {
      banks.push_back(addressed(kernel, bank));
      kernel.product_into(banks.back(), a, a);
    }
    for (const Tensor& bank : banks) {
      kernel.store(kernel.compute({bank}, 16));
    }
    const Tensor guest = kernel.psum({kRows, 16});
    kernel.product_into(guest, a, a);
    kernel.product_into(guest, a, a);
    kernel.store(kernel.compute({guest}, 16));
  }
  const Stream stream = checked(kernel);
  std::vector<std::int64_t> guests;
  for (const Residence& residence : stream.residences) {
    if (residence.buffer->space == Space::kPsum) {
      guests.push_back(residence.offset_bytes);
    }
  }
  EXPECT_EQ(guests, (std::vector<std::int64_t>{0, 0}));  // the first of the eight is left first
}

// One bank stays in use, one is read before it is written: what it reads has been there.
TEST(Placement, BanksInUseAreNotLent) {
  for (const auto& [inherits, outcome] :
       {std::pair{false, "placed"}, std::pair{true, "psum-capacity"}}) {
    Kernel kernel(machine_named("trn2"));
    const Tensor a = kernel.load(16);
    std::vector<Tensor> banks;
    for (int bank = 0; bank < 8; ++bank) {
      banks.push_back(addressed(kernel, bank));
      kernel.product_into(banks.back(), a, a);
    }
    kernel.use({banks[7]});
    const Tensor guest = kernel.psum({kRows, 16});
    kernel.product_into(guest, a, a);
    kernel.use({guest});
    for (int bank = 0; bank < 7; ++bank) {
      kernel.use({banks[static_cast<std::size_t>(bank)]});
    }
    if (inherits) {
      kernel.use({addressed(kernel, 7)});
    }
    EXPECT_EQ(error_of(kernel, SpillPolicy::kAuto), outcome);
  }
}

// A tensor that fills part of its bank still has the bank to itself.
TEST(Placement, AutomaticTensorsStartAtABankBehindTheKernelsOwn) {
  Kernel kernel(machine_named("trn2"));
  const Tensor a = kernel.load(16);
  const Tensor own = addressed(kernel, 0);
  kernel.product_into(own, a, a);
  const Tensor other = kernel.psum({kRows, 512});
  kernel.product_into(other, a, a);
  kernel.use({own, other});
  for (const Residence& residence : checked(kernel).residences) {
    if (residence.buffer->space == Space::kPsum) {
      EXPECT_EQ(residence.offset_bytes, 2048);
    }
  }
}

}  // namespace
}  // namespace trena::core_test
