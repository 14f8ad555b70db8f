#include "trena/core/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "trena/isa/core_state.h"
#include "trena/isa/dma/transfer.h"
#include "trena/memory/rows.h"

namespace trena {
namespace {

// Instructions that may be under way, for each thread: enough to find independent ones behind a
// chain of products, few enough that their tiles stay in the cache.
constexpr std::size_t kWindowPerThread = 64;
// Telling the workers costs as much as a small instruction: they hear of several at once, or of one
// that touches this many bytes.
constexpr std::size_t kBatch = 16;
constexpr std::int64_t kLargeBytes = 16384;

[[noreturn]] void throw_unwritten(const Instruction& instruction, const Tensor& tensor) {
  const WrittenBits& written = tensor.buffer()->storage->written();
  std::size_t first_unwritten = 0;
  bool found = false;
  for_each_run(tensor, [&](std::size_t offset, std::size_t length) {
    for (std::size_t i = 0; i < length && !found; ++i) {
      if (!written.test(offset + i)) {
        first_unwritten = offset + i - static_cast<std::size_t>(tensor.buffer()->origin_bytes);
        found = true;
      }
    }
  });
  const auto pitch = static_cast<std::size_t>(tensor.buffer()->pitch_bytes);
  throw Error(
      ErrorKind::kUnwritten, "unwritten-read",
      {.rule = "every byte an instruction reads must have been written before",
       .here = fmt::format("{} reads {}; row {}, byte {} was never written", instruction.name(),
                           tensor.describe(), first_unwritten / pitch, first_unwritten % pitch),
       .device = "whatever the memory held before: garbage that changes from run to run",
       .fix = "write the tensor first (dma_copy, memset), or read only the part that was written"});
}

void require_written_operands(const Instruction& instruction, const AccessList& accesses) {
  for (const Access& access : accesses) {
    const bool reads = access.kind == AccessKind::kRead || access.kind == AccessKind::kUpdate;
    if (reads && !is_written(*access.tensor)) {
      throw_unwritten(instruction, *access.tensor);
    }
  }
}

// Where the instruction reads or writes depends on bytes that may still be under way.
bool has_unsettled_address(const AccessList& accesses) {
  return std::any_of(accesses.begin(), accesses.end(), [](const Access& access) {
    const Indirection* indirection = access.tensor->indirection().get();
    return indirection != nullptr && indirection->kind != Indirection::Kind::kScalar;
  });
}

void mark_results(const AccessList& accesses) {
  const Tensor* carried = nullptr;
  for (const Access& access : accesses) {
    if (access.kind == AccessKind::kReadCarry) {
      carried = access.tensor;
    } else if (access.kind == AccessKind::kWriteCarry) {
      carry_written(*access.tensor, *carried);
    } else if (access.kind == AccessKind::kWrite || access.kind == AccessKind::kAccumulate) {
      mark_written(*access.tensor);
    }
  }
}

}  // namespace

struct Executor::Job {
  const Instruction* instruction = nullptr;
  CoreState* core = nullptr;
  AccessList accesses;
  std::vector<Ticket> before;  // what it must not overtake
  int waits_for = 0;           // how many of them are not computed yet
  std::vector<Ticket> followers;
  std::atomic<bool> computed{false};
};

Executor::Executor(int core_count, Locate locate, Forgive forgive)
    : locate_(std::move(locate)),
      forgive_(std::move(forgive)),
      jobs_(kWindowPerThread * static_cast<std::size_t>(thread_count())),
      hidden_(static_cast<std::size_t>(core_count)) {}

Executor::~Executor() = default;  // Program has settled; the tasks wait for their last steps

Executor::Job& Executor::job(Ticket ticket) { return jobs_[ticket % jobs_.size()]; }
const Executor::Job& Executor::job(Ticket ticket) const { return jobs_[ticket % jobs_.size()]; }

bool Executor::is_computed(Ticket ticket) const {
  return ticket <= retired_ || job(ticket).computed.load(std::memory_order_acquire);
}

bool Executor::runs_behind(const Instruction& instruction, const AccessList& accesses) const {
  if (in_step_ || thread_count() == 1 || instruction.judges_values() ||
      instruction.rendezvous() >= 0 || accesses.has_state(HiddenState::kRegisters)) {
    return false;
  }
  // Written-bits belong to the caller's thread: what marks them while it computes stays there.
  return std::all_of(accesses.begin(), accesses.end(), [](const Access& access) {
    switch (access.kind) {
      case AccessKind::kReadCarry:
        return is_written(*access.tensor);
      case AccessKind::kWriteSome:
        return access.tensor->buffer()->storage->written().all();
      default:
        return true;
    }
  });
}

void Executor::execute(const Instruction& instruction, const AccessList& accesses,
                       CoreState& core) {
  const bool in_step = has_unsettled_address(accesses);
  if (in_step) {
    settle();
  }
  require_written_operands(instruction, accesses);
  if (!in_step && runs_behind(instruction, accesses)) {
    enter(instruction, accesses, core);
    mark_results(accesses);
    return;
  }
  settle();
  instruction.execute(core);
  mark_results(accesses);
  accesses.unpin();
}

// ---- The caller's thread -----------------------------------------------------------------------

void Executor::enter(const Instruction& instruction, const AccessList& accesses, CoreState& core) {
  if (entered_ - retired_ == jobs_.size()) {
    make_room();
  }
  const Ticket ticket = ++entered_;
  Job& entry = job(ticket);
  entry.instruction = &instruction;
  entry.core = &core;
  entry.accesses = accesses;
  entry.before.clear();
  entry.computed.store(false, std::memory_order_relaxed);
  std::int64_t bytes = 0;
  for (const Access& access : accesses) {
    bytes += access.tensor->size_bytes();
    follow(entry, ticket, access.tensor->buffer()->storage->uses(), only_reads(access.kind));
  }
  for (int state = 0; state < kHiddenStates; ++state) {
    if (accesses.has_state(static_cast<HiddenState>(state))) {
      follow(entry, ticket,
             hidden_[static_cast<std::size_t>(core.core_index())][static_cast<std::size_t>(state)],
             false);
    }
  }
  if (bytes >= kLargeBytes || entered_ - published_ >= kBatch) {
    publish();
  }
}

void Executor::follow(Job& entry, Ticket ticket, Storage::Uses& uses, bool only_reads) {
  const auto after = [&](Ticket earlier) {
    if (earlier != ticket && !is_computed(earlier)) {
      entry.before.push_back(earlier);
    }
  };
  after(uses.writer);
  if (only_reads) {
    constexpr std::size_t kManyReaders = 64;
    if (uses.readers.size() >= kManyReaders) {
      std::erase_if(uses.readers, [&](Ticket reader) { return is_computed(reader); });
    }
    uses.readers.push_back(ticket);
    return;
  }
  for (const Ticket reader : uses.readers) {
    after(reader);
  }
  uses.readers.clear();
  uses.writer = ticket;
}

void Executor::publish() {
  bool call = false;
  {
    const std::lock_guard lock(mutex_);
    while (published_ < entered_) {
      const Ticket ticket = ++published_;
      Job& entry = job(ticket);
      entry.waits_for = 0;
      for (const Ticket earlier : entry.before) {
        if (!is_computed(earlier)) {
          job(earlier).followers.push_back(ticket);
          ++entry.waits_for;
        }
      }
      if (entry.waits_for == 0) {
        ready_.push(ticket);
      }
    }
    call = !ready_.empty() && workers_ + 1 < thread_count();
    workers_ += call ? 1 : 0;
  }
  if (call) {
    tasks_.start([this] { work(0); });
  }
  retire();
}

// Gives up the bytes of what is computed, in program order.
void Executor::retire() {
  while (retired_ < published_ && job(retired_ + 1).computed.load(std::memory_order_acquire)) {
    job(++retired_).accesses.unpin();
  }
}

// The caller's thread is one of the workers for a while.
void Executor::help(std::size_t enough) {
  {
    const std::lock_guard lock(mutex_);
    ++workers_;
  }
  work(enough);
}

// Until half of the window is free again: the workers never run out of work meanwhile.
void Executor::make_room() {
  publish();
  help(jobs_.size() / 2);
  retire();
  if (entered_ - retired_ == jobs_.size()) {
    settle();
  }
}

void Executor::drain() {
  if (retired_ == entered_) {
    return;
  }
  publish();
  while (retired_ < entered_) {
    help(0);
    tasks_.wait();
    retire();
  }
}

void Executor::settle() {
  drain();
  if (failures_.empty()) {
    return;
  }
  std::vector<Failure> failures = std::exchange(failures_, {});
  std::sort(failures.begin(), failures.end(),
            [](const Failure& a, const Failure& b) { return a.ticket < b.ticket; });
  for (const Failure& failure : failures) {
    if (!is_forgiven(failure)) {
      std::rethrow_exception(failure.error);
    }
  }
}

// Puts the line of its instruction on the error.
bool Executor::is_forgiven(const Failure& failure) const {
  try {
    std::rethrow_exception(failure.error);
  } catch (Error& error) {
    if (!error.has_where()) {
      error.set_where(locate_(failure.instruction->position));
    }
    return forgive_ && forgive_(error, *failure.instruction, failure.core);
  } catch (...) {
    return false;
  }
}

// ---- The workers -------------------------------------------------------------------------------

// Computes what is ready, the earliest first, until nothing is or no more than `enough` are under
// way.
void Executor::work(std::size_t enough) {
  const FlushDenormals flush;
  std::unique_lock lock(mutex_);
  while (!ready_.empty() && published_ - computed_ > enough) {
    const Ticket ticket = ready_.top();
    ready_.pop();
    ++computing_;
    const int busy = computing_ + static_cast<int>(ready_.size());
    const bool call = !ready_.empty() && workers_ < thread_count();
    workers_ += call ? 1 : 0;
    lock.unlock();
    if (call) {
      tasks_.start([this] { work(0); });
    }
    Job& mine = job(ticket);
    std::exception_ptr failure;
    try {
      compute(mine, busy < thread_count());
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    --computing_;
    ++computed_;
    if (failure != nullptr) {
      failures_.push_back({ticket, mine.instruction, mine.core->core_index(), failure});
    }
    for (const Ticket follower : mine.followers) {
      if (--job(follower).waits_for == 0) {
        ready_.push(follower);
      }
    }
    mine.followers.clear();
    mine.computed.store(true, std::memory_order_release);
  }
  --workers_;
}

void Executor::compute(const Job& job, bool others_idle) {
  if (others_idle) {
    job.instruction->execute(*job.core);
  } else {
    const SerialScope serial;
    job.instruction->execute(*job.core);
  }
}

}  // namespace trena
