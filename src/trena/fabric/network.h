// Ranks on the chips of one server, and what a collective between them costs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trena/fabric/topology.h"
#include "trena/machine/machine.h"

namespace trena {

struct AllReduceResult {
  std::string algorithm = "ring";
  std::int64_t ranks = 0;
  std::int64_t bytes = 0;       // per rank
  std::int64_t steps = 0;       // 2 (ranks - 1)
  double time_ns = 0;           // without the start-up of the collective: not modelled
  double latency_ns = 0;        // of it, what would remain at 0 bytes
  std::int64_t link_bytes = 0;  // over all links and steps
  double bus_bytes_per_ns =
      0;  // 2 (n - 1) / n x bytes / time, as the vendor's tool counts (fleet.md §2.2)
  std::vector<int> order;  // the ranks around the ring
};

class Network {
 public:
  // `ranks_per_chip` neighbouring ranks share a chip; 0: one for each core.
  Network(Machine machine, Server server, Fabric fabric, int ranks_per_chip = 0);

  const Topology& topology() const { return topology_; }
  const Fabric& fabric() const { return fabric_; }
  const Server& server() const { return server_; }
  int ranks_per_chip() const { return ranks_per_chip_; }
  int rank_limit() const { return topology_.chips() * ranks_per_chip_; }

  // Throws `not-modelled` for ranks beyond this server.
  int chip_of(int rank) const;

  // Ring all-reduce of `bytes` per rank (elements of `element_bytes`): reduce-scatter, then
  // all-gather. In each of the 2 (n - 1) steps every rank passes one chunk to the next; a step ends
  // when its last flow does. A flow needs Fabric::step_ns, transit_ns for each further chip on its
  // way, and its bytes at its share of the links (fleet.md §2.1). Ranks of one chip pass chunks
  // through its HBM at the rate of one core's DMA engines.
  AllReduceResult all_reduce(const std::vector<int>& ranks, std::int64_t bytes,
                             std::int64_t element_bytes = 1) const;

 private:
  std::vector<int> ring_of(const std::vector<int>& ranks) const;

  Machine machine_;
  Server server_;
  Fabric fabric_;
  Topology topology_;
  int ranks_per_chip_;
};

// The file in <directory>/servers whose chips are the machine's, the first by file name. Throws
// `machine-unknown`.
std::string find_server_with(const Machine& machine, const std::string& directory);

}  // namespace trena
