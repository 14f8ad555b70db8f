// Instructions that two cores of an LNC pair execute together: they meet, exchange, and each
// records its own.
#pragma once

#include <memory>

#include "trena/core/program.h"
#include "trena/core/rendezvous.h"
#include "trena/isa/dma/sendrecv.h"
#include "trena/isa/sync/core_barrier.h"

namespace trena {

// One core of a launch as a member of a baton. Cores of a program are consecutive members.
struct Seat {
  Program* program = nullptr;
  int core = 0;
  Baton* baton = nullptr;  // null: nobody to meet
  int member = 0;
};

// Wait for the other core, then append. The program's position when called is the instruction's.
// Throw what check() throws before waiting; `pair-single-core` when the launch has one core;
// deadlock; Abandoned; `sendrecv-mismatch` when the tiles or directions of the two calls do not
// fit.
void append_core_barrier(const Seat& seat, std::unique_ptr<CoreBarrier> barrier);
void append_sendrecv(const Seat& seat, std::unique_ptr<SendRecv> swap, int pipe_id);

}  // namespace trena
