#include "trena/core/rendezvous.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace trena {
namespace {

constexpr std::chrono::milliseconds kPollInterval{50};

bool same(const Meeting& a, const Meeting& b) { return a.kind == b.kind && a.members == b.members; }

}  // namespace

Baton::Baton(int count, std::string noun, std::function<void()> poll)
    : members_(static_cast<std::size_t>(count)), noun_(std::move(noun)), poll_(std::move(poll)) {}

void Baton::start(int member) {
  std::unique_lock lock(mutex_);
  wait_for_turn(lock, member);
}

Met Baton::meet(int member, Meeting meeting, std::shared_ptr<const void> offer) {
  if (std::find(meeting.members.begin(), meeting.members.end(), member) == meeting.members.end()) {
    throw Error(ErrorKind::kUsage, "rendezvous-member",
                {.rule = "who calls a rendezvous takes part in it",
                 .here = fmt::format("{} {} calls {} of others", noun_, member, meeting.kind)});
  }
  std::unique_lock lock(mutex_);
  Member& self = at(member);
  self.state = State::kWaiting;
  self.meeting = std::move(meeting);
  self.offer = std::move(offer);
  if (complete(self.meeting)) {
    Met met{next_id_++, {}};
    for (const int other : self.meeting.members) {
      met.offers.push_back(std::move(at(other).offer));
    }
    for (const int other : std::vector<int>(self.meeting.members)) {
      at(other).state = State::kReady;
      at(other).met = met;
    }
  }
  pass_on();
  wait_for_turn(lock, member);
  return std::move(self.met);
}

void Baton::finish(int member) {
  const std::unique_lock lock(mutex_);
  at(member).state = State::kFinished;
  pass_on();
}

void Baton::fail(int member) {
  const std::unique_lock lock(mutex_);
  at(member).state = State::kFinished;
  failed_ = true;
  changed_.notify_all();
}

bool Baton::complete(const Meeting& meeting) {
  return std::all_of(meeting.members.begin(), meeting.members.end(), [&](int other) {
    return other >= 0 && other < count() && at(other).state == State::kWaiting &&
           same(at(other).meeting, meeting);
  });
}

void Baton::pass_on() {
  turn_ = kNobody;
  std::string waiting;
  for (int member = 0; member < count(); ++member) {
    const Member& candidate = at(member);
    if (candidate.state == State::kReady) {
      turn_ = member;
      break;
    }
    const SourceLine& where = candidate.meeting.where;
    waiting += waiting.empty() ? "" : "; ";
    waiting += candidate.state == State::kFinished
                   ? fmt::format("{} {} has finished", noun_, member)
                   : fmt::format("{} {} waits at {} ({}:{})", noun_, member, candidate.meeting.kind,
                                 where.file, where.line);
  }
  const bool anybody = std::any_of(members_.begin(), members_.end(), [](const Member& member) {
    return member.state == State::kWaiting;
  });
  if (turn_ == kNobody && anybody) {
    deadlock_ = waiting;
  }
  changed_.notify_all();
}

void Baton::wait_for_turn(std::unique_lock<std::mutex>& lock, int member) {
  const auto released = [&] { return turn_ == member || failed_ || !deadlock_.empty(); };
  while (!released()) {
    if (!poll_) {
      changed_.wait(lock, released);
    } else if (!changed_.wait_for(lock, kPollInterval, released)) {
      lock.unlock();
      poll_();
      lock.lock();
    }
  }
  if (!deadlock_.empty()) {
    throw deadlock_of(member);
  }
  if (failed_) {
    throw Abandoned();
  }
}

Error Baton::deadlock_of(int member) const {
  Error error(ErrorKind::kDeadlock, "deadlock",
              {.rule = "every rendezvous is joined by each of its members, in the same order",
               .here = deadlock_,
               .device = "the waiting ones hang for ever",
               .fix = "make the same calls on all of them, with the same pipe, in the same order"});
  error.set_where(members_[static_cast<std::size_t>(member)].meeting.where);
  return error;
}

}  // namespace trena
