// The value pass (design.md §4): computes instructions as if in program order. Several threads run
// behind the front end; an instruction waits for the earlier ones that touch its bytes, so that
// nobody can see a difference: not the bytes, not the order of errors, not a host that looks (it
// settles first).
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <queue>
#include <vector>

#include "trena/isa/instruction.h"
#include "trena/memory/buffer.h"
#include "trena/number/threads.h"

namespace trena {

class CoreState;

class Executor final : public Producer {
 public:
  using Locate = std::function<SourceLine(Position)>;

  // Is told of an instruction that failed behind the caller, on the thread that settles; false: the
  // error is to be thrown there.
  using Forgive = std::function<bool(const Error& error, const Instruction& instruction, int core)>;

  // `locate` is called on the thread that settles, `forgive` too.
  Executor(int core_count, Locate locate, Forgive forgive = {});
  ~Executor() override;

  // Refuses reads of unwritten bytes (unwritten-read), marks what the instruction writes, and
  // computes it: now, or behind the caller. The instruction must outlive the next settle(); until
  // it is computed its tensors keep their bytes, then they are unpinned.
  void execute(const Instruction& instruction, const AccessList& accesses, CoreState& core);

  void settle() override;

  // From now on nothing runs behind the caller: two tensors may be the same bytes of the host.
  void stay_in_step() { in_step_ = true; }

 private:
  using Ticket = std::uint64_t;  // of one instruction, ascending in program order from 1
  struct Job;
  struct Failure {
    Ticket ticket;
    const Instruction* instruction;
    int core;
    std::exception_ptr error;
  };

  bool runs_behind(const Instruction& instruction, const AccessList& accesses) const;
  void enter(const Instruction& instruction, const AccessList& accesses, CoreState& core);
  void follow(Job& entry, Ticket ticket, Storage::Uses& uses, bool only_reads);
  void publish();
  void retire();
  void help(std::size_t enough);
  void make_room();
  void drain();
  bool is_forgiven(const Failure& failure) const;
  void work(std::size_t enough);
  static void compute(const Job& job, bool others_idle);
  bool is_computed(Ticket ticket) const;
  Job& job(Ticket ticket);
  const Job& job(Ticket ticket) const;

  const Locate locate_;
  const Forgive forgive_;
  bool in_step_ = false;

  // Of the caller's thread. Jobs (retired_, entered_] wait in a ring; those up to published_ are
  // known to the workers.
  std::vector<Job> jobs_;
  Ticket entered_ = 0, published_ = 0, retired_ = 0;
  std::vector<std::array<Storage::Uses, kHiddenStates>> hidden_;  // by core

  std::mutex mutex_;  // guards the following, and Job::waits_for, followers
  std::priority_queue<Ticket, std::vector<Ticket>, std::greater<>> ready_;
  int workers_ = 0;
  int computing_ = 0;
  Ticket computed_ = 0;  // how many
  std::vector<Failure> failures_;

  BackgroundTasks tasks_;
};

}  // namespace trena
