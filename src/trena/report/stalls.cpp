#include <algorithm>
#include <map>
#include <tuple>

#include "trena/report/summary.h"

namespace trena {
namespace {

// Everything that makes two stalls the same entry of the table, in the order of ties.
using StallKey = std::tuple<std::uint32_t, std::int32_t, std::string_view, int, std::uint32_t,
                            std::int32_t, std::string_view, int, bool>;

StallKey key(const RunEvent& event, const RunEvent& cause) {
  return {event.position.file, event.position.line, event.name,  event.queue, cause.position.file,
          cause.position.line, cause.name,          cause.queue, cause.spill};
}

SourceLine source_line(const Run& run, Position position) {
  const bool known = position.file < run.files.size();
  return {known ? run.files[position.file] : std::string(), known ? position.line : 0};
}

Stall entry(const Run& run, const RunEvent& event, const RunEvent& cause) {
  Stall stall;
  stall.line = source_line(run, event.position);
  stall.name = event.name;
  stall.row = queue_name(event.queue);
  stall.cause_line = source_line(run, cause.position);
  stall.cause_name = cause.name;
  stall.cause_row = queue_name(cause.queue);
  stall.cause_spill = cause.spill;
  return stall;
}

}  // namespace

std::vector<Stall> aggregate_stalls(const Run& run) {
  std::map<StallKey, Stall> entries;
  for (const RunEvent& event : run.events) {
    if (event.stall <= 0 || event.cause == kNoCause) {
      continue;
    }
    const RunEvent& cause = run.events[static_cast<std::size_t>(event.cause)];
    const auto [found, fresh] = entries.try_emplace(key(event, cause));
    if (fresh) {
      found->second = entry(run, event, cause);
    }
    found->second.time += event.stall;
    ++found->second.count;
  }
  std::vector<Stall> stalls;
  stalls.reserve(entries.size());
  for (auto& [unused, stall] : entries) {
    stalls.push_back(std::move(stall));
  }
  std::stable_sort(stalls.begin(), stalls.end(),
                   [](const Stall& a, const Stall& b) { return a.time > b.time; });
  return stalls;
}

}  // namespace trena
