#include "trena/core/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "trena/core/dependences.h"
#include "trena/core/idle_window.h"
#include "trena/core/lent_banks.h"
#include "trena/core/ranges.h"
#include "trena/core/spill_moves.h"

namespace trena {
namespace {

constexpr std::int32_t kNotOnChip = -1;
constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

// A tensor that Placement puts somewhere: its uses by index of the recorded program.
struct Tile {
  BufferPtr buffer;
  std::int64_t bytes = 0;  // per partition, rounded up to the memory's grain
  std::vector<std::size_t> uses;
  std::size_t next_use = 0;  // index into `uses`
  std::size_t last_use = 0;  // index of the program
  std::size_t loads = 0;     // its first uses, together a load that can be repeated; 0: none
  bool clean = false;        // HBM holds the same bytes: the load's source, or a spill slot
  bool spilled = false;      // … in a spill slot
  bool has_contents = false;
  bool pinned = false;
  bool lent = false;  // sits in a bank that the kernel addresses itself
  std::optional<Stay> stay;

  bool psum() const { return buffer->space == Space::kPsum; }
  bool dead() const { return next_use >= uses.size(); }
};

// One access of a recorded instruction, resolved once.
struct Use {
  std::int32_t tile;  // kNotOnChip: HBM or a manual tensor
  AccessKind kind;
  const Tensor* tensor;  // lives as long as its instruction
};

struct Recorded {
  const Instruction* instruction;
  EngineKind engine;
  bool dma;
  bool awaited;  // named in some `depends_on`
  std::uint32_t first_use;
  std::uint32_t past_use;
  std::uint32_t states;  // bit per HiddenState
};

// From the first to the last access of a tensor on the chip, in program order.
struct Life {
  const Buffer* buffer = nullptr;  // none: not on the chip, or never touched
  std::size_t first = 0;
  std::size_t last = 0;
  bool inherits = false;  // its first access reads what an earlier tensor left there
};

class Placer {
 public:
  Placer(const Program& program, int core, const Machine& machine);

  // As written. False: something does not fit (then nothing of this object may be used again).
  bool place_as_written(bool tightest);
  void place_with_spills();
  Stream take_stream() { return std::move(stream_); }
  const std::string& failure() const { return failure_; }

 private:
  enum class Search { kOldest, kTightest };

  void note_writes_of_all_cores();
  void read_program();
  void note_shared_addresses();
  void note_owners_of_banks();
  void measure_peaks();
  bool repeatable_load(std::size_t index, std::int32_t tile) const;
  void note_loads(std::int32_t id);
  std::span<const Use> uses_of(std::size_t index) const {
    return {uses_.data() + recorded_[index].first_use, uses_.data() + recorded_[index].past_use};
  }
  Ranges& memory(const Tile& tile) {
    return tile.lent ? lent_banks_.guests() : tile.psum() ? psum_ : sbuf_;
  }

  void emit(std::size_t index, Insertion insertion);
  void emit_move(std::int32_t tile, SpillMove::Direction direction);
  void open_stay(Tile& tile, std::int64_t start);
  void after(std::size_t index);
  void release(Tile& tile, std::size_t index, int engine);
  bool allocate_as_written(Tile& tile, int writer, Search search);

  // With spills.
  Tile* filled_by_load(std::size_t index);
  std::size_t unit_end(std::size_t index) const;
  bool make_room_for_unit(std::size_t first, std::size_t past, std::size_t& cut);
  bool bring_in(Tile& tile, std::int32_t id, int writer, std::size_t first);
  std::optional<Idleness> idleness(const Ranges::Range& range, bool may_evict_dirty) const;
  std::optional<std::int64_t> evict_window(std::int64_t bytes, bool may_evict_dirty);
  void evict_from(std::int64_t start, std::int64_t bytes);
  void evict(std::int32_t id);
  void evict_everything();
  [[noreturn]] void throw_operands_do_not_fit(std::size_t index) const;
  [[noreturn]] void throw_psum(const Tile& tile, std::size_t index) const;

  const Program& program_;
  const Machine& machine_;
  std::vector<Recorded> recorded_;
  std::vector<Use> uses_;
  std::vector<Tile> tiles_;
  std::vector<std::int32_t> tile_of_stay_;
  std::vector<Life> lives_;             // by buffer id
  std::vector<bool> written_;           // by buffer id, by any core
  std::vector<bool> shares_address_;    // by buffer id: another tensor's address meets its own
  std::vector<std::uint32_t> item_of_;  // recorded index → item
  Ranges sbuf_;
  Ranges psum_;
  LentBanks lent_banks_;
  Dependences order_;
  Stream stream_;
  AccessList scratch_;
  IdleWindow window_;
  std::string failure_;
  std::optional<std::uint32_t> last_meeting_;
  std::uint32_t order_block_ = 0;  // of nl.no_reorder, and the last item in it
  std::uint32_t last_ordered_ = 0;
  std::size_t now_ = 0;  // program index of the unit being placed
};

// Ranges that manual tensors own, over the whole program: automatic ones keep clear of them.
// `grain`: of PSUM, whole banks.
std::vector<std::pair<std::int64_t, std::int64_t>> manual_ranges(const Program& program, int core,
                                                                 Space space, std::int64_t grain) {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  const auto manual = [&](const BufferPtr& buffer) {
    return buffer->space == space && buffer->address.has_value();
  };
  if (std::none_of(program.buffers().begin(), program.buffers().end(), manual)) {
    return ranges;
  }
  AccessList list;
  for (const auto& instruction : program.instructions(core)) {
    list.clear();
    instruction->access(list);
    for (const Access& access : list) {
      const Buffer& buffer = *access.tensor->buffer();
      if (manual(access.tensor->buffer())) {
        const std::int64_t first = buffer.address->offset_bytes / grain * grain;
        const std::int64_t end = buffer.address->offset_bytes + buffer.row_bytes;
        const std::pair range(first, (end + grain - 1) / grain * grain);
        if (ranges.empty() || ranges.back() != range) {
          ranges.push_back(range);
        }
      }
    }
  }
  return ranges;
}

std::vector<std::pair<std::int64_t, std::int64_t>> addressed_banks(const Program& program, int core,
                                                                   const Machine& machine) {
  return manual_ranges(program, core, Space::kPsum, machine.core.psum.bank_bytes);
}

Placer::Placer(const Program& program, int core, const Machine& machine)
    : program_(program),
      machine_(machine),
      lives_(program.buffers().size()),
      written_(program.buffers().size(), false),
      shares_address_(program.buffers().size(), false),
      sbuf_(machine.core.sbuf.usable_bytes(), manual_ranges(program, core, Space::kSbuf, 1)),
      psum_(machine.core.psum.partition_bytes(), addressed_banks(program, core, machine)),
      lent_banks_(machine.core.psum.partition_bytes(), machine.core.psum.bank_bytes,
                  addressed_banks(program, core, machine)) {
  const auto& instructions = program.instructions(core);
  recorded_.reserve(instructions.size());
  for (const auto& instruction : instructions) {
    recorded_.push_back({instruction.get(), instruction->engine(machine), false, false, 0, 0, 0});
  }
  note_writes_of_all_cores();
  read_program();
  note_shared_addresses();
  note_owners_of_banks();
  measure_peaks();
}

// What another core writes is no constant here either.
void Placer::note_writes_of_all_cores() {
  for (int core = 0; core < program_.core_count() && program_.core_count() > 1; ++core) {
    for (const auto& instruction : program_.instructions(core)) {
      scratch_.clear();
      instruction->access(scratch_);
      for (const Access& access : scratch_) {
        if (!access.tensor->on_chip() && !only_reads(access.kind)) {
          written_[access.tensor->buffer()->id] = true;
        }
      }
    }
  }
}

void Placer::read_program() {
  std::vector<std::int32_t> tile_of_buffer(program_.buffers().size(), kNotOnChip);
  for (std::size_t i = 0; i < recorded_.size(); ++i) {
    Recorded& recorded = recorded_[i];
    recorded.first_use = static_cast<std::uint32_t>(uses_.size());
    scratch_.clear();
    recorded.instruction->access(scratch_);
    for (const Access& access : scratch_) {
      const BufferPtr& buffer = access.tensor->buffer();
      if (!only_reads(access.kind)) {
        written_[buffer->id] = true;
      }
      if (buffer->on_chip()) {
        Life& life = lives_[buffer->id];
        if (life.buffer == nullptr) {
          const bool reads = only_reads(access.kind) || access.kind == AccessKind::kUpdate;
          life = {buffer.get(), i, i, reads};
        }
        life.last = i;
      }
      std::int32_t tile = kNotOnChip;
      if (buffer->on_chip() && !buffer->address) {
        tile = tile_of_buffer[buffer->id];
        if (tile == kNotOnChip) {
          tile = tile_of_buffer[buffer->id] = static_cast<std::int32_t>(tiles_.size());
          const std::int64_t grain = buffer->space == Space::kPsum
                                         ? machine_.core.psum.bank_bytes
                                         : machine_.core.sbuf.alignment_bytes;
          Tile made;
          made.buffer = buffer;
          made.bytes = (buffer->row_bytes + grain - 1) / grain * grain;
          tiles_.push_back(std::move(made));
        }
        std::vector<std::size_t>& uses = tiles_[static_cast<std::size_t>(tile)].uses;
        if (uses.empty() || uses.back() != i) {
          uses.push_back(i);
        }
      }
      uses_.push_back({tile, access.kind, access.tensor});
    }
    recorded.past_use = static_cast<std::uint32_t>(uses_.size());
    recorded.dma = recorded.instruction->is_dma();
    for (const std::uint32_t earlier : recorded.instruction->depends_on) {
      recorded_[earlier].awaited = true;
    }
    for (int state = 0; state < kHiddenStates; ++state) {
      recorded.states |= scratch_.has_state(static_cast<HiddenState>(state)) ? 1u << state : 0u;
    }
  }
}

// Most tensors with an address have it to themselves.
void Placer::note_shared_addresses() {
  std::vector<const Buffer*> manual;
  for (const Life& life : lives_) {
    if (life.buffer != nullptr && life.buffer->address) {
      manual.push_back(life.buffer);
    }
  }
  const auto place = [](const Buffer* buffer) {
    return std::pair(buffer->space, buffer->address->offset_bytes);
  };
  std::sort(manual.begin(), manual.end(),
            [&](const Buffer* a, const Buffer* b) { return place(a) < place(b); });
  const Buffer* farthest = nullptr;  // of those before, the one that reaches farthest
  std::int64_t end = 0;
  for (const Buffer* buffer : manual) {
    if (farthest != nullptr && place(buffer) < std::pair(farthest->space, end)) {
      shares_address_[farthest->id] = shares_address_[buffer->id] = true;
    }
    const std::int64_t its_end = buffer->address->offset_bytes + buffer->row_bytes;
    if (farthest == nullptr || farthest->space != buffer->space || its_end > end) {
      farthest = buffer;
      end = its_end;
    }
  }
}

// A tensor that finds its contents at its address keeps the bank from the beginning.
void Placer::note_owners_of_banks() {
  const bool guests =
      std::any_of(tiles_.begin(), tiles_.end(), [](const Tile& t) { return t.psum(); });
  for (const Life& life : lives_) {
    if (guests && life.buffer != nullptr && life.buffer->address &&
        life.buffer->space == Space::kPsum) {
      lent_banks_.add_owner(life.buffer->address->offset_bytes, life.buffer->row_bytes,
                            life.inherits ? 0 : life.first, life.last);
      shares_address_[life.buffer->id] = true;
    }
  }
}

// Live bytes per partition and banks at the worst moment, before anything is spilled.
void Placer::measure_peaks() {
  std::vector<std::int64_t> sbuf(recorded_.size() + 1, 0);
  std::vector<std::int64_t> psum(recorded_.size() + 1, 0);
  for (const Life& life : lives_) {
    if (life.buffer == nullptr) {
      continue;
    }
    const bool in_psum = life.buffer->space == Space::kPsum;
    const std::int64_t bank = machine_.core.psum.bank_bytes;
    const std::int64_t bytes = life.buffer->row_bytes;
    const std::int64_t amount = in_psum ? (bytes + bank - 1) / bank : bytes;
    std::vector<std::int64_t>& change = in_psum ? psum : sbuf;
    change[life.first] += amount;
    change[life.last + 1] -= amount;
  }
  std::int64_t sbuf_now = 0;
  std::int64_t psum_now = 0;
  for (std::size_t i = 0; i < recorded_.size(); ++i) {
    sbuf_now += sbuf[i];
    psum_now += psum[i];
    stream_.sbuf_peak_bytes = std::max(stream_.sbuf_peak_bytes, sbuf_now);
    stream_.psum_peak_banks = std::max(stream_.psum_peak_banks, psum_now);
  }
}

// Does this instruction fill a part of `tile`, and nothing else, from HBM bytes that nobody writes?
bool Placer::repeatable_load(std::size_t index, std::int32_t tile) const {
  const Recorded& recorded = recorded_[index];
  const std::span<const Use> uses = uses_of(index);
  if (!recorded.dma || uses.size() != 2 || recorded.awaited ||
      !recorded.instruction->depends_on.empty() || recorded.instruction->order_block != 0 ||
      recorded.instruction->rendezvous() >= 0) {
    return false;
  }
  const Use& source = uses[0].kind == AccessKind::kRead ? uses[0] : uses[1];
  const Use& target = uses[0].kind == AccessKind::kRead ? uses[1] : uses[0];
  return source.kind == AccessKind::kRead && target.kind == AccessKind::kWrite &&
         target.tile == tile && source.tensor->space() == Space::kHbm &&
         !written_[source.tensor->buffer()->id];
}

// Loads that may run later, and again: before anybody else touches the tile they fill all of it,
// each its own part.
void Placer::note_loads(std::int32_t id) {
  constexpr std::size_t kMostParts = 64;
  Tile& tile = tiles_[static_cast<std::size_t>(id)];
  std::vector<Region> parts;
  std::int64_t filled = 0;
  while (filled < tile.buffer->size_bytes() &&
         parts.size() < std::min(tile.uses.size(), kMostParts)) {
    const std::size_t index = tile.uses[parts.size()];
    if (!repeatable_load(index, id)) {
      return;
    }
    const std::span<const Use> uses = uses_of(index);
    const Tensor& target = *uses[uses[0].tile == id ? 0 : 1].tensor;
    const Region part = region_of(target);
    for (const Region& other : parts) {
      if (overlaps(part, other)) {
        return;
      }
    }
    parts.push_back(part);
    filled += target.size_bytes();
  }
  if (filled == tile.buffer->size_bytes() && tile.uses.size() > parts.size()) {
    tile.loads = parts.size();
  }
}

void Placer::open_stay(Tile& tile, std::int64_t start) {
  const auto stay = static_cast<Stay>(tile_of_stay_.size());
  tile_of_stay_.push_back(static_cast<std::int32_t>(&tile - tiles_.data()));
  const std::vector<Stay> former = memory(tile).take(start, tile.bytes, stay);
  tile.stay = stay;
  const auto item = static_cast<std::uint32_t>(stream_.items.size());
  stream_.residences.push_back({tile.buffer.get(), start, tile.bytes, item, item});
  const Dependences::Key base = program_.buffers().size();
  std::vector<Dependences::Key> keys;
  for (const Stay old : former) {
    keys.push_back(base + old);
  }
  order_.open(base + stay, region_of(*tile.buffer), keys);
}

void Placer::emit(std::size_t index, Insertion insertion) {
  const auto item = static_cast<std::uint32_t>(stream_.items.size());
  stream_.items.push_back({recorded_[index].instruction, insertion, recorded_[index].engine});
  const Dependences::Key base = program_.buffers().size();
  for (const Use& use : uses_of(index)) {
    const Buffer& buffer = *use.tensor->buffer();
    if (use.tile != kNotOnChip) {
      const Tile& tile = tiles_[static_cast<std::size_t>(use.tile)];
      order_.visit(base + *tile.stay, item, *use.tensor, use.kind);
      if (tile.lent) {
        order_.visit_address(buffer.space, item,
                             lent_banks_.region_of_guest(*use.tensor, *tile.stay), use.kind,
                             buffer.id);
      }
    } else if (written_[buffer.id]) {
      order_.visit(buffer.id, item, *use.tensor, use.kind);
    }
    if (const Indirection* address = use.tensor->indirection().get();
        address != nullptr && !address->index) {
      order_.wait_for_registers();
    }
    if (shares_address_[buffer.id]) {
      order_.visit_address(buffer.space, item, region_in_memory(*use.tensor), use.kind, buffer.id);
    }
  }
  for (int state = 0; state < kHiddenStates; ++state) {
    if ((recorded_[index].states >> state & 1u) != 0) {
      order_.visit_state(static_cast<HiddenState>(state), item);
    }
  }
  if (insertion == Insertion::kRecorded) {
    item_of_[index] = item;
    for (const std::uint32_t earlier : recorded_[index].instruction->depends_on) {
      order_.add_wait(Wait::after_end(item_of_[earlier]));
    }
    if (const std::uint32_t block = recorded_[index].instruction->order_block; block != 0) {
      if (block == order_block_) {
        order_.add_wait(Wait::after_start(last_ordered_));
      }
      order_block_ = block;
      last_ordered_ = item;
    }
  }
  if (recorded_[index].instruction->rendezvous() >= 0) {
    // Cores meet in the order of their programs, whatever is ready first: two cores that took two
    // meetings in different orders would wait for ever.
    if (last_meeting_) {
      order_.add_wait(Wait::after_start(*last_meeting_));
    }
    last_meeting_ = item;
  }
  order_.finish(stream_.waits);
}

void Placer::emit_move(std::int32_t id, SpillMove::Direction direction) {
  Tile& tile = tiles_[static_cast<std::size_t>(id)];
  const std::int64_t shape[] = {tile.buffer->rows, tile.buffer->row_bytes};
  auto move = std::make_unique<SpillMove>(Tensor(tile.buffer, DType::kUint8, shape), direction);
  move->position = recorded_[now_].instruction->position;
  const auto item = static_cast<std::uint32_t>(stream_.items.size());
  stream_.items.push_back({move.get(), Insertion::kSpill, move->engine(machine_)});
  const Dependences::Key base = program_.buffers().size();
  scratch_.clear();
  move->access(scratch_);
  for (const Access& access : scratch_) {
    order_.visit(base + *tile.stay, item, *access.tensor, access.kind);
  }
  // The slot in HBM scratch: a reload waits for the store before it.
  const Dependences::Key slot = Dependences::kSparse + static_cast<Dependences::Key>(id);
  order_.visit(slot, item, *scratch_.begin()->tensor,
               direction == SpillMove::Direction::kStore ? AccessKind::kWrite : AccessKind::kRead);
  order_.finish(stream_.waits);
  stream_.inserted.push_back(std::move(move));
}

void Placer::release(Tile& tile, std::size_t index, int engine) {
  memory(tile).release(*tile.stay, static_cast<std::int64_t>(index), engine);
  stream_.residences[*tile.stay].past_item = static_cast<std::uint32_t>(stream_.items.size());
  tile.stay.reset();
}

// Bookkeeping after an instruction: contents, next uses, and the end of lives.
void Placer::after(std::size_t index) {
  const int engine = recorded_[index].dma ? -1 : static_cast<int>(recorded_[index].engine);
  for (const Use& use : uses_of(index)) {
    if (use.tile == kNotOnChip) {
      continue;
    }
    Tile& tile = tiles_[static_cast<std::size_t>(use.tile)];
    if (!only_reads(use.kind)) {
      tile.clean = false;
      tile.spilled = false;
      tile.has_contents = true;
    }
    while (!tile.dead() && tile.uses[tile.next_use] <= index) {
      ++tile.next_use;
    }
    tile.last_use = index;
  }
  for (const Use& use : uses_of(index)) {
    if (use.tile != kNotOnChip) {
      Tile& tile = tiles_[static_cast<std::size_t>(use.tile)];
      if (tile.dead() && tile.stay) {
        release(tile, index, engine);
      }
    }
  }
}

bool Placer::allocate_as_written(Tile& tile, int writer, Search search) {
  Ranges& ranges = memory(tile);
  std::optional<std::int64_t> start;
  if (search == Search::kTightest) {
    start = ranges.find_tightest(tile.bytes);
  } else {
    if (!tile.psum() && writer >= 0) {
      start = ranges.find_oldest(tile.bytes, writer);
    }
    if (!start) {
      start = ranges.find_oldest(tile.bytes);
    }
  }
  if (!start && tile.psum()) {
    start = lent_banks_.find(tile.bytes, now_, tile.uses.back());
    tile.lent = start.has_value();
  }
  if (!start) {
    return false;
  }
  open_stay(tile, *start);
  return true;
}

bool Placer::place_as_written(bool tightest) {
  item_of_.assign(recorded_.size(), 0);
  for (std::size_t i = 0; i < recorded_.size(); ++i) {
    now_ = i;
    const int writer = recorded_[i].dma ? -1 : static_cast<int>(recorded_[i].engine);
    for (const Use& use : uses_of(i)) {
      if (use.tile == kNotOnChip) {
        continue;
      }
      Tile& tile = tiles_[static_cast<std::size_t>(use.tile)];
      if (!tile.stay &&
          !allocate_as_written(tile, writer, tightest ? Search::kTightest : Search::kOldest)) {
        if (tile.psum() && tightest) {
          throw_psum(tile, i);
        }
        failure_ = fmt::format("{} at line {}", tile.buffer->name,
                               recorded_[i].instruction->position.line);
        return false;
      }
    }
    emit(i, Insertion::kRecorded);
    after(i);
  }
  return true;
}

// A unit: consecutive products accumulating into one tensor, or any other instruction alone.
// Evicting inside such a run would send every operand through the same few slots.
std::size_t Placer::unit_end(std::size_t index) const {
  const auto target = [&](std::size_t i) -> const Buffer* {
    for (const Use& use : uses_of(i)) {
      if (use.kind == AccessKind::kAccumulate) {
        return use.tensor->buffer().get();
      }
    }
    return nullptr;
  };
  const Buffer* buffer = target(index);
  std::size_t past = index + 1;
  while (buffer != nullptr && past < recorded_.size() && target(past) == buffer) {
    ++past;
  }
  return past;
}

void Placer::evict(std::int32_t id) {
  Tile& tile = tiles_[static_cast<std::size_t>(id)];
  if (tile.clean) {
    release(tile, tile.last_use, -1);
    return;
  }
  emit_move(id, SpillMove::Direction::kStore);
  tile.clean = true;
  tile.spilled = true;
  release(tile, now_, -1);
}

// What emptying a range would cost, and how long it has been, or will be, idle. None: it must stay.
std::optional<Idleness> Placer::idleness(const Ranges::Range& range, bool may_evict_dirty) const {
  constexpr double kForEver = std::numeric_limits<double>::max();
  const auto now = static_cast<double>(now_);
  if (!range.stay) {
    return Idleness{range.freed_at < 0 ? kForEver : now - static_cast<double>(range.freed_at) + 1,
                    0, -1};
  }
  const Tile& tile = tiles_[static_cast<std::size_t>(tile_of_stay_[*range.stay])];
  if (tile.pinned || (!tile.clean && !may_evict_dirty)) {
    return std::nullopt;
  }
  const auto last_use = static_cast<double>(tile.last_use);
  return tile.clean ? Idleness{now - last_use, 1, last_use}
                    : Idleness{static_cast<double>(tile.uses[tile.next_use]) - now, 2, last_use};
}

// The run of neighbouring ranges that has been idle longest for the transfers it costs to empty it:
// of all shortest runs of `bytes`, looked at in one pass.
std::optional<std::int64_t> Placer::evict_window(std::int64_t bytes, bool may_evict_dirty) {
  struct Best {
    double score = 0;
    double last_use = 0;
    std::int64_t start = 0;
  };
  std::optional<Best> best;
  IdleWindow& window = window_;
  window.restart(0);
  for (const auto& [start, range] : sbuf_.by_start()) {
    const std::optional<Idleness> idleness = this->idleness(range, may_evict_dirty);
    if (!idleness || start != window.past()) {
      window.restart(start);
    }
    if (!idleness) {
      continue;
    }
    window.push(range, *idleness);
    for (; window.bytes() >= bytes; window.pop()) {
      const double idle = window.idle();
      if (best && idle < best->score) {
        continue;
      }
      const double score = std::max(idle / std::max(window.transfers(), 1.0), 1e-9);
      if (!best || score > best->score ||
          (score == best->score && window.last_use() < best->last_use)) {
        best = Best{score, window.last_use(), window.start()};
      }
    }
  }
  if (!best) {
    return std::nullopt;
  }
  evict_from(best->start, bytes);
  return best->start;
}

// Everything in the shortest run of ranges from `start` that holds `bytes`.
void Placer::evict_from(std::int64_t start, std::int64_t bytes) {
  std::vector<std::int32_t> victims;
  const auto& ranges = sbuf_.by_start();
  for (auto at = ranges.find(start); at != ranges.end() && at->first < start + bytes; ++at) {
    if (at->second.stay) {
      victims.push_back(tile_of_stay_[*at->second.stay]);
    }
  }
  for (const std::int32_t victim : victims) {
    evict(victim);
  }
}

void Placer::evict_everything() {
  std::vector<std::int32_t> resident;
  for (const auto& [start, range] : sbuf_.by_start()) {
    if (range.stay) {
      resident.push_back(tile_of_stay_[*range.stay]);
    }
  }
  for (const std::int32_t id : resident) {
    evict(id);
  }
  sbuf_.forget_stamps();
}

// Gives an absent tile a place and its contents. False: no window.
bool Placer::bring_in(Tile& tile, std::int32_t id, int writer, std::size_t first) {
  if (tile.psum()) {
    if (!allocate_as_written(tile, writer, Search::kOldest) &&
        !allocate_as_written(tile, writer, Search::kTightest)) {
      throw_psum(tile, first);
    }
    return true;
  }
  const bool reload = tile.has_contents || tile.loads > 0;
  std::optional<std::int64_t> start;
  if (!reload && writer >= 0) {
    start = sbuf_.find_oldest(tile.bytes, writer);
  }
  if (!start) {
    start = sbuf_.find_oldest(tile.bytes);
  }
  if (start && reload) {
    // A load may take the place of a clean tile that has been idle longer than any free range: its
    // arrival then does not wait for the newest reader.
    const std::optional<std::int64_t> rotated = evict_window(tile.bytes, false);
    start = rotated ? rotated : start;
  }
  if (!start) {
    start = evict_window(tile.bytes, true);
  }
  if (!start) {
    return false;
  }
  open_stay(tile, *start);
  if (!reload) {
    return true;
  }
  if (tile.spilled) {
    emit_move(id, SpillMove::Direction::kReload);
  } else {
    for (std::size_t part = 0; part < tile.loads; ++part) {
      emit(tile.uses[part], tile.has_contents ? Insertion::kReload : Insertion::kRecorded);
    }
    tile.has_contents = true;
    tile.clean = true;
  }
  return true;
}

// Places everything the unit touches. False: the unit must end before `cut`, or (cut == first)
// repack.
bool Placer::make_room_for_unit(std::size_t first, std::size_t past, std::size_t& cut) {
  for (std::size_t i = first; i < past; ++i) {
    for (const Use& use : uses_of(i)) {
      if (use.tile != kNotOnChip) {
        tiles_[static_cast<std::size_t>(use.tile)].pinned = true;
      }
    }
  }
  const int writer = recorded_[first].dma ? -1 : static_cast<int>(recorded_[first].engine);
  for (std::size_t i = first; i < past; ++i) {
    for (const Use& use : uses_of(i)) {
      if (use.tile == kNotOnChip) {
        continue;
      }
      Tile& tile = tiles_[static_cast<std::size_t>(use.tile)];
      if (!tile.stay && !bring_in(tile, use.tile, writer, first)) {
        cut = i;
        return false;
      }
    }
  }
  return true;
}

// The tile that this instruction loads, or loads a part of, if that can wait.
Tile* Placer::filled_by_load(std::size_t index) {
  for (const Use& use : uses_of(index)) {
    if (use.tile != kNotOnChip) {
      Tile& tile = tiles_[static_cast<std::size_t>(use.tile)];
      if (tile.loads > 0 && index <= tile.uses[tile.loads - 1]) {
        return &tile;
      }
    }
  }
  return nullptr;
}

void Placer::place_with_spills() {
  item_of_.assign(recorded_.size(), 0);
  for (std::size_t id = 0; id < tiles_.size(); ++id) {
    note_loads(static_cast<std::int32_t>(id));
  }
  const auto unpin = [&](std::size_t first, std::size_t past) {
    for (std::size_t i = first; i < past; ++i) {
      for (const Use& use : uses_of(i)) {
        if (use.tile != kNotOnChip) {
          tiles_[static_cast<std::size_t>(use.tile)].pinned = false;
        }
      }
    }
  };
  std::size_t past = 0;
  for (std::size_t first = 0; first < recorded_.size(); first = past) {
    now_ = first;
    past = unit_end(first);
    if (Tile* tile = filled_by_load(first)) {
      tile->next_use = tile->loads;  // taken out: it comes back in front of its first use
      continue;
    }
    bool repacked = false;
    std::size_t cut = first;
    while (!make_room_for_unit(first, past, cut)) {
      unpin(first, past);
      if (cut > first) {
        past = cut;
      } else if (!repacked) {
        evict_everything();
        repacked = true;
      } else {
        throw_operands_do_not_fit(first);
      }
    }
    for (std::size_t i = first; i < past; ++i) {
      emit(i, Insertion::kRecorded);
      after(i);
    }
    unpin(first, past);
  }
}

void Placer::throw_operands_do_not_fit(std::size_t index) const {
  std::int64_t bytes = 0;
  std::string list;
  for (const Use& use : uses_of(index)) {
    if (use.tile != kNotOnChip && use.tensor->space() == Space::kSbuf) {
      const Tile& tile = tiles_[static_cast<std::size_t>(use.tile)];
      bytes += tile.bytes;
      list += (list.empty() ? "" : ", ") + use.tensor->describe();
    }
  }
  Error error(ErrorKind::kCapacity, "sbuf-capacity",
              {.rule = "the operands of one instruction are in SBUF together",
               .here = fmt::format("{} needs {} bytes per partition: {}",
                                   recorded_[index].instruction->name(), bytes, list),
               .limit = fmt::format("{} usable bytes per partition on {}",
                                    machine_.core.sbuf.usable_bytes(), machine_.chip.name),
               .fix = "use smaller tiles"});
  error.set_where(program_.source_line(recorded_[index].instruction->position));
  throw error;
}

void Placer::throw_psum(const Tile& tile, std::size_t index) const {
  const Psum& psum = machine_.core.psum;
  std::string list;
  for (const Life& life : lives_) {
    if (life.buffer != nullptr && life.buffer->space == Space::kPsum &&
        life.buffer != tile.buffer.get() && life.first <= index && index <= life.last) {
      list += fmt::format("{}{} (line {})", list.empty() ? "" : ", ", life.buffer->name,
                          life.buffer->where.line);
    }
  }
  Error error(ErrorKind::kCapacity, "psum-capacity",
              {.rule = "the PSUM tensors that are alive at once fit into its banks",
               .here = fmt::format("`{}` needs {} more bank(s); alive: {}", tile.buffer->name,
                                   tile.bytes / psum.bank_bytes, list),
               .limit = fmt::format("{} banks of {} bytes per partition on {}", psum.banks,
                                    psum.bank_bytes, machine_.chip.name),
               .fix = "copy results out of PSUM before starting more accumulation groups"});
  error.set_where(program_.source_line(recorded_[index].instruction->position));
  throw error;
}

}  // namespace

Stream place(const Program& program, int core, const Machine& machine, SpillPolicy spill) {
  Placer as_written(program, core, machine);
  if (as_written.place_as_written(false)) {
    return as_written.take_stream();
  }
  Placer tight(program, core, machine);
  if (tight.place_as_written(true)) {
    return tight.take_stream();
  }
  if (spill == SpillPolicy::kError) {
    throw Error(ErrorKind::kCapacity, "spill-forbidden",
                {.rule = "with --spill=error everything alive at once must fit into SBUF",
                 .here = "no place for " + tight.failure(),
                 .limit = fmt::format("{} usable bytes per partition on {}",
                                      machine.core.sbuf.usable_bytes(), machine.chip.name),
                 .fix = "use smaller tiles, or allow spills"});
  }
  Placer spilling(program, core, machine);
  spilling.place_with_spills();
  return spilling.take_stream();
}

}  // namespace trena
