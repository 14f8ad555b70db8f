#include "trena/fabric/flows.h"

#include <algorithm>
#include <limits>

namespace trena {
namespace {

// Raises all rates together; when a link is full, the flows that cross it keep what they have.
std::vector<double> fair_rates(const std::vector<Flow>& flows, const std::vector<bool>& active,
                               std::vector<double> free) {
  std::vector<double> rates(flows.size(), 0);
  std::vector<bool> growing = active;
  while (std::find(growing.begin(), growing.end(), true) != growing.end()) {
    std::vector<int> sharers(free.size(), 0);
    for (std::size_t flow = 0; flow < flows.size(); ++flow) {
      for (const int link : flows[flow].links) {
        sharers[static_cast<std::size_t>(link)] += growing[flow] ? 1 : 0;
      }
    }
    double growth = std::numeric_limits<double>::infinity();
    std::size_t tightest = 0;
    for (std::size_t link = 0; link < free.size(); ++link) {
      if (sharers[link] > 0 && free[link] / sharers[link] < growth) {
        growth = free[link] / sharers[link];
        tightest = link;
      }
    }
    for (std::size_t link = 0; link < free.size(); ++link) {
      free[link] -= growth * sharers[link];
    }
    free[tightest] = 0;
    for (std::size_t flow = 0; flow < flows.size(); ++flow) {
      if (growing[flow]) {
        rates[flow] += growth;
        const auto full = [&](int link) { return free[static_cast<std::size_t>(link)] <= 0; };
        growing[flow] = !std::any_of(flows[flow].links.begin(), flows[flow].links.end(), full);
      }
    }
  }
  return rates;
}

}  // namespace

std::vector<double> finish_times_ns(const std::vector<Flow>& flows,
                                    const std::vector<double>& bytes_per_ns) {
  std::vector<double> left(flows.size());
  std::vector<double> finish(flows.size());
  std::vector<bool> active(flows.size());
  for (std::size_t flow = 0; flow < flows.size(); ++flow) {
    left[flow] = flows[flow].bytes;
    finish[flow] = flows[flow].latency_ns;
    active[flow] = flows[flow].bytes > 0 && !flows[flow].links.empty();
  }
  double now = 0;
  while (std::find(active.begin(), active.end(), true) != active.end()) {
    const std::vector<double> rates = fair_rates(flows, active, bytes_per_ns);
    double next = std::numeric_limits<double>::infinity();
    std::size_t first = 0;
    for (std::size_t flow = 0; flow < flows.size(); ++flow) {
      if (active[flow] && left[flow] / rates[flow] < next) {
        next = left[flow] / rates[flow];
        first = flow;
      }
    }
    now += next;
    left[first] = 0;
    for (std::size_t flow = 0; flow < flows.size(); ++flow) {
      if (!active[flow]) {
        continue;
      }
      left[flow] = flow == first ? 0 : left[flow] - rates[flow] * next;
      // Equal flows end together in spite of rounding.
      if (left[flow] <= 1e-9 * flows[flow].bytes) {
        active[flow] = false;
        finish[flow] = now + flows[flow].latency_ns;
      }
    }
  }
  return finish;
}

}  // namespace trena
