// One core's work as the clock sees it: the recorded instructions plus the moves that Placement inserted, each
// with its engine, its cost and what must have finished before it starts.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trena/core/program.h"
#include "trena/isa/cost.h"

namespace trena {

struct StreamItem {
  const Instruction* instruction = nullptr;
  EngineKind engine = EngineKind::kSync;
  bool spill = false;  // inserted by Placement: a reload or a store of a tensor that did not fit
};

// Item indices of one core, in compressed rows: item i waits for edges[first[i]] … edges[first[i + 1] - 1].
struct Edges {
  std::vector<std::uint32_t> first{0};
  std::vector<std::uint32_t> edges;

  void add(std::uint32_t before) { edges.push_back(before); }
  void close() { first.push_back(static_cast<std::uint32_t>(edges.size())); }
};

struct CoreStream {
  std::vector<StreamItem> items;
  std::vector<std::unique_ptr<Instruction>> inserted;  // owns the spill moves
  Edges waits;                                         // by tensor identity, depends_on, reuse of a range
  std::int64_t sbuf_peak_bytes = 0;                    // per partition, live at once before spilling
  std::int64_t psum_peak_banks = 0;
};

}  // namespace trena
