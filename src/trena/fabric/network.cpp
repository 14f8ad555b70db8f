#include "trena/fabric/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "trena/error.h"
#include "trena/fabric/flows.h"
#include "trena/machine/load.h"

namespace trena {
namespace {

// Chunk `index` of `count` elements over `ranks` ranks: as even as possible, longer ones first.
std::int64_t chunk_elements(std::int64_t count, std::int64_t ranks, std::int64_t index) {
  return count / ranks + (index < count % ranks ? 1 : 0);
}

}  // namespace

Network::Network(Machine machine, Server server, Fabric fabric, int ranks_per_chip)
    : machine_(std::move(machine)),
      server_(std::move(server)),
      fabric_(std::move(fabric)),
      topology_(fabric_),
      ranks_per_chip_(ranks_per_chip > 0 ? ranks_per_chip : static_cast<int>(machine_.chip.cores)) {
}

int Network::chip_of(int rank) const {
  if (rank < 0 || rank >= rank_limit()) {
    throw_not_modelled(
        fmt::format("rank {}: {} has {} chips with {} ranks each, and collectives between servers",
                    rank, server_.name, topology_.chips(), ranks_per_chip_));
  }
  return rank / ranks_per_chip_;
}

std::vector<int> Network::ring_of(const std::vector<int>& ranks) const {
  const std::vector<int> chips = topology_.ring_order();
  std::vector<int> place(chips.size());
  for (std::size_t i = 0; i < chips.size(); ++i) {
    place[static_cast<std::size_t>(chips[i])] = static_cast<int>(i);
  }
  std::vector<int> order = ranks;
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    const int place_a = place[static_cast<std::size_t>(chip_of(a))];
    const int place_b = place[static_cast<std::size_t>(chip_of(b))];
    return place_a != place_b ? place_a < place_b : a < b;
  });
  return order;
}

AllReduceResult Network::all_reduce(const std::vector<int>& ranks, std::int64_t bytes,
                                    std::int64_t element_bytes) const {
  AllReduceResult result;
  result.ranks = static_cast<std::int64_t>(ranks.size());
  result.bytes = bytes;
  result.order = ring_of(ranks);
  const std::int64_t n = result.ranks;
  result.steps = 2 * (n - 1);

  // One rate for each link, and one for each rank's way to the next rank of its own chip.
  const std::size_t links = topology_.links().size();
  std::vector<double> rates(links + static_cast<std::size_t>(n), fabric_.link_gbs * fabric_.usable);
  const Dma& dma = machine_.core.dma;
  std::fill(rates.begin() + static_cast<std::ptrdiff_t>(links), rates.end(),
            static_cast<double>(dma.engines) * dma.engine_bytes_per_ns);
  std::vector<Flow> flows(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    Flow& flow = flows[static_cast<std::size_t>(i)];
    const int from = chip_of(result.order[static_cast<std::size_t>(i)]);
    const int to = chip_of(result.order[static_cast<std::size_t>((i + 1) % n)]);
    flow.links = topology_.route(from, to);
    const auto hops = static_cast<double>(flow.links.size());
    flow.latency_ns = fabric_.step_ns + std::max(0.0, hops - 1) * fabric_.transit_ns;
    if (flow.links.empty()) {
      flow.links.push_back(static_cast<int>(links + static_cast<std::size_t>(i)));
    }
  }
  const std::int64_t elements = bytes / element_bytes;
  std::map<std::vector<double>, double> known;  // equal steps are simulated once
  for (std::int64_t step = 0; step < result.steps; ++step) {
    std::vector<double> sizes;
    double latency = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      Flow& flow = flows[static_cast<std::size_t>(i)];
      const std::int64_t chunk =
          chunk_elements(elements, n, ((i - step) % n + n) % n) * element_bytes;
      flow.bytes = static_cast<double>(chunk);
      sizes.push_back(flow.bytes);
      latency = std::max(latency, flow.latency_ns);
      const bool on_chip = flow.links.front() >= static_cast<int>(links);
      result.link_bytes += on_chip ? 0 : chunk * static_cast<std::int64_t>(flow.links.size());
    }
    const auto [entry, fresh] = known.try_emplace(sizes, 0.0);
    if (fresh) {
      const std::vector<double> ends = finish_times_ns(flows, rates);
      entry->second = *std::max_element(ends.begin(), ends.end());
    }
    result.time_ns += entry->second;
    result.latency_ns += latency;
  }
  if (result.time_ns > 0) {
    result.bus_bytes_per_ns = static_cast<double>(result.steps) / static_cast<double>(n) *
                              static_cast<double>(bytes) / result.time_ns;
  }
  return result;
}

std::string find_server_with(const Machine& machine, const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code ignored;  // no directory: no files
  const auto servers = std::filesystem::path(directory) / "servers";
  for (const auto& entry : std::filesystem::directory_iterator(servers, ignored)) {
    if (entry.path().extension() == ".toml") {
      paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    if (load_server(path).machine == machine.chip.name) {
      return path;
    }
  }
  throw Error(
      ErrorKind::kMachine, "machine-unknown",
      {.rule = "a collective needs a server that joins the chips",
       .here = fmt::format("no file in {} has chips {}", servers.string(), machine.chip.name),
       .fix = "describe one: docs/describe-a-chip.md"});
}

}  // namespace trena
