#include "trena/report/critical_path.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace trena {
namespace {

constexpr std::int64_t kNobody = -1;

// Of every event, the one that its queue issued before it.
std::vector<std::int64_t> queue_predecessors(const std::vector<RunEvent>& events) {
  std::vector<std::int64_t> order(events.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](std::int64_t id) {
    const RunEvent& event = events[static_cast<std::size_t>(id)];
    return std::tuple(event.core, event.queue, event.issue, id);
  };
  std::sort(order.begin(), order.end(),
            [&](std::int64_t a, std::int64_t b) { return key(a) < key(b); });
  std::vector<std::int64_t> before(events.size(), kNobody);
  for (std::size_t k = 1; k < order.size(); ++k) {
    const RunEvent& event = events[static_cast<std::size_t>(order[k])];
    const RunEvent& other = events[static_cast<std::size_t>(order[k - 1])];
    if (event.core == other.core && event.queue == other.queue) {
      before[static_cast<std::size_t>(order[k])] = order[k - 1];
    }
  }
  return before;
}

// The event that ends last; of several the first.
std::int64_t last_event(const std::vector<RunEvent>& events) {
  std::int64_t last = kNobody;
  Ticks latest = -1;
  for (std::size_t id = 0; id < events.size(); ++id) {
    const Ticks end = std::max(events[id].end, events[id].busy_until);
    if (end > latest) {
      latest = end;
      last = static_cast<std::int64_t>(id);
    }
  }
  return last;
}

}  // namespace

std::vector<PathPart> critical_path(const Run& run) {
  const std::vector<RunEvent>& events = run.events;
  const std::vector<std::int64_t> before = queue_predecessors(events);
  using Key = std::tuple<std::uint32_t, std::int32_t, std::string_view, int, bool>;
  std::map<Key, PathPart> parts;
  std::int64_t id = last_event(events);
  Ticks until = id == kNobody ? 0
                              : std::max(events[static_cast<std::size_t>(id)].end,
                                         events[static_cast<std::size_t>(id)].busy_until);
  // A chain visits an event once; the bound is for runs that were not made by the clock.
  for (std::size_t steps = 0; id != kNobody && steps < events.size(); ++steps) {
    const RunEvent& event = events[static_cast<std::size_t>(id)];
    const std::int64_t queue = before[static_cast<std::size_t>(id)];
    const bool waited = event.cause != kNoCause && (event.stall > 0 || queue == kNobody);
    const std::int64_t previous = waited ? event.cause : queue;
    Ticks from = 0;
    if (previous != kNobody && steps + 1 < events.size()) {
      const RunEvent& earlier = events[static_cast<std::size_t>(previous)];
      // What a DMA queue hands on is a slot, and that only when the next one is issued.
      const Ticks handed = waited ? earlier.end : earlier.dma ? event.issue : earlier.busy_until;
      from = std::clamp<Ticks>(handed, 0, std::min(until, event.issue));
    }
    const Key key{event.position.file, event.position.line, event.name, event.queue, event.spill};
    PathPart& part = parts[key];
    if (part.count == 0) {
      const bool known = event.position.file < run.files.size();
      part.line = {known ? run.files[event.position.file] : std::string(),
                   known ? event.position.line : 0};
      part.name = event.name;
      part.row = queue_name(event.queue);
      part.spill = event.spill;
    }
    part.time += until - from;
    ++part.count;
    until = from;
    id = previous;
  }
  std::vector<PathPart> result;
  result.reserve(parts.size());
  for (auto& [unused, part] : parts) {
    result.push_back(std::move(part));
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const PathPart& a, const PathPart& b) { return a.time > b.time; });
  return result;
}

}  // namespace trena
