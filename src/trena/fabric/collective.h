// Collectives between the ranks of one process: each rank is a program on a thread of its own, and
// they meet at one baton (core/rendezvous.h). Ranks are timed alone: a rank does not wait for
// slower ones, which is exact when all do the same work.
#pragma once

#include <memory>
#include <vector>

#include "trena/core/pair.h"
#include "trena/fabric/network.h"
#include "trena/isa/sync/all_reduce.h"
#include "trena/number/vector_math.h"

namespace trena {

// What a rank knows about the others. A launch of its own is rank 0 of 1.
struct RankSeat {
  int rank = 0;
  int world = 1;
  const Network* network = nullptr;  // null: nobody to talk to
};

// Meets the ranks of the caller's group, reduces in ascending order of rank and appends. Each
// addition happens in float32 and is stored in the tensor's type, as every hop of a ring does (the
// order of a real ring differs from chunk to chunk). `groups`: disjoint lists of ranks. Throws
// `collective-group`, `collective-mismatch`, `collective-tensors`, `operator-refused`, deadlock,
// Abandoned, and `not-modelled` for logical cores of two physical ones.
void append_all_reduce(const Seat& seat, const RankSeat& rank,
                       std::unique_ptr<AllReduce> instruction,
                       const std::vector<std::vector<int>>& groups, AluOp op);

// packed[r]: tensor of rank r; all of one type and length.
AllReduce::Bytes reduce(DType dtype, const std::vector<AllReduce::Bytes>& packed, AluOp op);

}  // namespace trena
