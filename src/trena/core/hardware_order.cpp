#include "trena/core/hardware_order.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <unordered_map>

#include "trena/isa/core_state.h"
#include "trena/isa/dma/sendrecv.h"
#include "trena/memory/region.h"
#include "trena/memory/rows.h"
#include "trena/number/threads.h"

namespace trena {
namespace {

// Bytes of some tensors at one moment.
class Snapshot {
 public:
  void add(const Tensor& tensor) {
    Storage* storage = tensor.buffer()->storage.get();
    const auto keep = [&](std::size_t offset, std::size_t length) {
      parts_.push_back({storage, offset, length});
      bytes_.insert(bytes_.end(), storage->data() + offset, storage->data() + offset + length);
    };
    if (tensor.indirection() == nullptr) {
      for_each_run(tensor, keep);
      return;
    }
    const Buffer& buffer = *tensor.buffer();  // an index may choose any of it
    for (std::int64_t row = 0; row < buffer.rows; ++row) {
      keep(static_cast<std::size_t>(buffer.origin_bytes + row * buffer.pitch_bytes),
           static_cast<std::size_t>(buffer.row_bytes));
    }
  }

  void restore() const {
    const std::byte* bytes = bytes_.data();
    for (const Part& part : parts_) {
      std::memcpy(part.storage->data() + part.offset, bytes, part.length);
      bytes += part.length;
    }
  }

 private:
  struct Part {
    Storage* storage;
    std::size_t offset;
    std::size_t length;
  };
  std::vector<Part> parts_;
  std::vector<std::byte> bytes_;
};

Snapshot snapshot(const std::vector<Access>& accesses, bool of_reads) {
  Snapshot result;
  for (const Access& access : accesses) {
    if (only_reads(access.kind) == of_reads) {
      result.add(*access.tensor);
    }
  }
  return result;
}

// May a write of `a` change what `b` reads?
bool disturbs(const std::vector<Access>& a, const std::vector<Access>& b) {
  for (const Access& write : a) {
    if (only_reads(write.kind)) {
      continue;
    }
    const Storage& storage = *write.tensor->buffer()->storage;
    for (const Access& read : b) {
      const Storage& other = *read.tensor->buffer()->storage;
      const bool apart = storage.data() + storage.size_bytes() <= other.data() ||
                         other.data() + other.size_bytes() <= storage.data();
      if (only_reads(read.kind) && !apart && share_bytes(*write.tensor, *read.tensor)) {
        return true;
      }
    }
  }
  return false;
}

// One instruction that changes bytes.
struct Work {
  const Instruction* instruction = nullptr;  // none: nothing to compute
  int core = 0;
  Ticks start = 0;
  Ticks landed = 0;
};

struct Moment {
  Ticks time;
  // What ends at a moment is there for what starts then; what does both has started first.
  enum class Kind : std::uint8_t { kLand, kStart, kLandAtOnce } kind;
  std::uint32_t work;
  auto operator<=>(const Moment&) const = default;
};

// Between its start and its end.
struct Flight {
  std::vector<Access> accesses;
  std::optional<Snapshot> operands;  // once somebody is about to change them
};

class Replay {
 public:
  Replay(Program& program, std::span<const Stream> streams, const Run& run);
  void run();

 private:
  void land_products_in_order(std::span<const Stream> streams);
  void count_uses();
  std::vector<Moment> moments() const;
  void start(std::uint32_t number);
  void land(std::uint32_t number);
  void compute(const Work& work, Flight& flight);
  void provide(Buffer& buffer);
  void release(Buffer& buffer);
  void keep_written_bits();

  // Bytes of program order that somebody can still name, and what became of them here.
  struct Named {
    std::shared_ptr<Storage> former;
    std::shared_ptr<Storage> now;
  };

  Program& program_;
  std::vector<Work> works_;
  std::vector<std::unique_ptr<CoreState>> cores_;
  std::map<std::uint32_t, Flight> flights_;
  std::map<std::pair<std::int64_t, int>, SendRecv::Bytes> sent_;  // by meeting and receiver
  std::vector<std::int64_t> uses_;                                // by buffer id, still to come
  std::vector<bool> given_;                                       // by buffer id, by the caller
  std::vector<bool> provided_;                                    // by buffer id
  std::map<std::shared_ptr<Storage>, std::shared_ptr<Storage>> arrays_;           // former → now
  std::unordered_map<std::uint32_t, Named> named_;                                // by buffer id
  std::unordered_map<std::size_t, std::vector<std::shared_ptr<Storage>>> spare_;  // by size
};

// An instruction that skips a run-time index outside its tensor did nothing; one that writes
// nothing but a register of the front end has done its part.
bool changes_bytes(const Instruction& instruction, AccessList& list) {
  list.clear();
  instruction.access(list);
  bool writes = false;
  for (const Access& access : list) {
    const Indirection* indirection = access.tensor->indirection().get();
    if (indirection != nullptr && indirection->escape) {
      return false;
    }
    writes = writes || !only_reads(access.kind);
  }
  return writes || !list.has_state(HiddenState::kRegisters);
}

Replay::Replay(Program& program, std::span<const Stream> streams, const Run& run)
    : program_(program),
      uses_(program.buffers().size(), 0),
      given_(program.buffers().size(), false),
      provided_(program.buffers().size(), false) {
  AccessList list;
  for (std::size_t core = 0; core < streams.size(); ++core) {
    cores_.push_back(std::make_unique<CoreState>(program.machine(), static_cast<int>(core)));
    for (const StreamItem& item : streams[core].items) {
      const RunEvent& event = run.events[works_.size()];
      Work work{nullptr, static_cast<int>(core), event.start,
                event.dma ? event.busy_until : event.end};
      // A tensor that placement moves keeps its bytes; a load that it repeats brings the same.
      if (item.insertion == Insertion::kRecorded && changes_bytes(*item.instruction, list)) {
        work.instruction = item.instruction;
      }
      works_.push_back(work);
    }
  }
  land_products_in_order(streams);
  count_uses();
}

// The array keeps products in order (hw.md §2.2), also where one that starts later ends sooner:
// what it adds to is there.
void Replay::land_products_in_order(std::span<const Stream> streams) {
  std::size_t base = works_.size();
  for (std::size_t core = streams.size(); core-- > 0;) {
    base -= streams[core].items.size();
    for (std::size_t i = streams[core].items.size(); i-- > 0;) {
      const auto on_array = [&](std::size_t item) {
        return streams[core].items[item].engine == EngineKind::kTensor;
      };
      for (const Wait wait : streams[core].waits.of(i)) {
        if (wait.for_start() && on_array(i) && on_array(wait.item())) {
          Ticks& landed = works_[base + wait.item()].landed;
          landed = std::min(landed, works_[base + i].landed);
        }
      }
    }
  }
}

void Replay::count_uses() {
  AccessList list;
  for (const Work& work : works_) {
    if (work.instruction == nullptr) {
      continue;
    }
    list.clear();
    work.instruction->access(list);
    for (const Access& access : list) {
      ++uses_[access.tensor->buffer()->id];
    }
  }
}

std::vector<Moment> Replay::moments() const {
  std::vector<Moment> moments;
  moments.reserve(2 * works_.size());
  for (std::uint32_t i = 0; i < works_.size(); ++i) {
    const Work& work = works_[i];
    if (work.instruction != nullptr) {
      const bool at_once = work.landed <= work.start;
      moments.push_back({work.start, Moment::Kind::kStart, i});
      moments.push_back({std::max(work.start, work.landed),
                         at_once ? Moment::Kind::kLandAtOnce : Moment::Kind::kLand, i});
    }
  }
  std::sort(moments.begin(), moments.end());
  return moments;
}

void Replay::run() {
  const FlushDenormals flush;
  for (const Program::Argument& argument : program_.arguments()) {
    given_[argument.buffer->id] = true;
    std::memcpy(argument.buffer->data(), argument.bytes.data(), argument.bytes.size());
  }
  for (const Moment& moment : moments()) {
    if (moment.kind == Moment::Kind::kStart) {
      start(moment.work);
    } else {
      land(moment.work);
    }
  }
  for (const BufferPtr& buffer : program_.buffers()) {
    if (buffer->storage.use_count() > 1) {
      provide(*buffer);  // no instruction touched it, but somebody may look
    }
  }
  keep_written_bits();
}

void Replay::start(std::uint32_t number) {
  const Work& work = works_[number];
  AccessList list;
  work.instruction->access(list);
  Flight& flight = flights_[number];
  flight.accesses.assign(list.begin(), list.end());
  for (const Access& access : flight.accesses) {
    provide(*access.tensor->buffer());
  }
  if (const auto* swap = dynamic_cast<const SendRecv*>(work.instruction)) {
    sent_[{swap->rendezvous(), swap->send_to()}] = swap->pack();
  }
}

void Replay::land(std::uint32_t number) {
  const auto found = flights_.find(number);
  Flight flight = std::move(found->second);
  flights_.erase(found);
  for (auto& [other, in_flight] : flights_) {
    if (!in_flight.operands && disturbs(flight.accesses, in_flight.accesses)) {
      in_flight.operands = snapshot(in_flight.accesses, true);
    }
  }
  compute(works_[number], flight);
  for (const Access& access : flight.accesses) {
    release(*access.tensor->buffer());
  }
}

// With the operands as they were at its start: put back for the moment, where they have changed.
void Replay::compute(const Work& work, Flight& flight) {
  std::optional<Snapshot> changed;
  if (flight.operands) {
    changed = snapshot(flight.accesses, true);
    flight.operands->restore();
  }
  try {
    CoreState& core = *cores_[static_cast<std::size_t>(work.core)];
    if (const auto* swap = dynamic_cast<const SendRecv*>(work.instruction)) {
      swap->deliver(*sent_.at({swap->rendezvous(), work.core}));
    } else {
      work.instruction->execute(core);
    }
  } catch (Error& error) {
    if (!error.has_where()) {
      error.set_where(program_.source_line(work.instruction->position));
    }
    throw;
  }
  if (changed) {
    const Snapshot results = snapshot(flight.accesses, false);
    changed->restore();
    results.restore();
  }
}

// Bytes as they are before a kernel, at the first use.
void Replay::provide(Buffer& buffer) {
  if (given_[buffer.id] || provided_[buffer.id]) {
    return;
  }
  provided_[buffer.id] = true;
  const std::shared_ptr<Storage> former = std::move(buffer.storage);
  if (buffer.address) {
    std::shared_ptr<Storage>& now = arrays_[former];
    if (now == nullptr) {
      now = Storage::allocate(former->size_bytes());
      program_.fill_unwritten(*now, nullptr);
    }
    buffer.storage = now;
  } else {
    std::vector<std::shared_ptr<Storage>>& spare =
        spare_[static_cast<std::size_t>(buffer.size_bytes())];
    if (spare.empty()) {
      spare.push_back(Storage::allocate(static_cast<std::size_t>(buffer.size_bytes())));
    }
    buffer.storage = std::move(spare.back());
    spare.pop_back();
    program_.fill_unwritten(*buffer.storage, &buffer);
    if (former.use_count() > 1) {
      named_[buffer.id] = {former, buffer.storage};
    }
  }
  if (buffer.space == Space::kPsum) {
    buffer.matmul_written = std::make_unique<WrittenBits>(buffer.storage->size_bytes());
  }
}

// Its last use is over, and nobody can ask for its bytes: they serve another tensor.
void Replay::release(Buffer& buffer) {
  const bool mine = !given_[buffer.id] && !buffer.address && !named_.contains(buffer.id);
  if (--uses_[buffer.id] == 0 && mine && buffer.storage.use_count() == 1) {
    spare_[buffer.storage->size_bytes()].push_back(std::move(buffer.storage));
    buffer.storage = nullptr;
    buffer.matmul_written.reset();
  }
}

// Here every byte counts as written, so that a reader takes what it finds; whoever asks later is
// told what program order wrote.
void Replay::keep_written_bits() {
  for (auto& [id, named] : named_) {
    named.now->written() = named.former->written();
  }
  for (auto& [former, now] : arrays_) {
    now->written() = former->written();
  }
}

}  // namespace

void compute_in_hardware_order(Program& program, std::span<const Stream> streams, const Run& run) {
  Replay(program, streams, run).run();
}

}  // namespace trena
