// Several programs run as one thread each, one at a time: the baton changes hands only where
// members meet (design: values are deterministic for any number of threads; hw.md §5.4). Cores of
// an LNC pair and ranks of a collective are members alike.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "trena/error.h"

namespace trena {

// Where a member waits. Members meet when all of `members` wait with equal kind and equal members.
struct Meeting {
  std::string kind;          // "core_barrier", "sendrecv pipe 0": also for people
  std::vector<int> members;  // ascending
  SourceLine where;
};

// What a member learns: a number unique in this baton, and what the members brought, in their
// order.
struct Met {
  std::int64_t id = -1;
  std::vector<std::shared_ptr<const void>> offers;
};

// Another member failed: leave quietly, its own error is the one to report.
class Abandoned : public std::exception {
 public:
  const char* what() const noexcept override { return "another member of the launch failed"; }
};

class Baton {
 public:
  // `noun` names a member in messages ("core", "rank"). `poll`, if given, is called about 20 times
  // a second by waiting threads, without any lock; what it throws leaves the call that waits.
  explicit Baton(int count, std::string noun = "core", std::function<void()> poll = {});

  int count() const { return static_cast<int>(members_.size()); }

  // Blocks until it is `member`'s turn for the first time. Member 0 is the first.
  void start(int member);

  // Blocks until all have come and it is `member`'s turn again; lower members go on first. Throws
  // Error{kDeadlock}
  // ("deadlock") in every waiting member when nobody can move, and Abandoned when another member
  // failed.
  Met meet(int member, Meeting meeting, std::shared_ptr<const void> offer = nullptr);

  // The member is through; the next one may run.
  void finish(int member);

  // The member ends with an error: releases all others.
  void fail(int member);

 private:
  enum class State : std::uint8_t { kReady, kWaiting, kFinished };
  struct Member {
    State state = State::kReady;
    Meeting meeting;
    std::shared_ptr<const void> offer;
    Met met;
  };
  static constexpr int kNobody = -1;

  Member& at(int member) { return members_[static_cast<std::size_t>(member)]; }
  bool complete(const Meeting& meeting);
  void pass_on();
  void wait_for_turn(std::unique_lock<std::mutex>& lock, int member);
  Error deadlock_of(int member) const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Member> members_;
  std::string noun_;
  std::function<void()> poll_;
  int turn_ = 0;
  bool failed_ = false;
  std::string deadlock_;  // who waits where; empty: no deadlock
  std::int64_t next_id_ = 0;
};

}  // namespace trena
