// How long simultaneous transfers take when they share links: each link's rate is divided fairly
// among the flows that cross it (max-min), and again whenever one ends. Link level; packets are not
// simulated.
#pragma once

#include <cstdint>
#include <vector>

namespace trena {

struct Flow {
  std::vector<int> links;  // every link it occupies
  double bytes = 0;
  double latency_ns = 0;  // from its start until its first byte moves
};

// When each flow ends, in ns from the common start; bytes_per_ns by link. All flows begin to share
// links at the start, whatever their latency (an approximation that matters only when latencies
// differ).
std::vector<double> finish_times_ns(const std::vector<Flow>& flows,
                                    const std::vector<double>& bytes_per_ns);

}  // namespace trena
