#include "trena/core/pair.h"

#include <fmt/format.h>

namespace trena {
namespace {

struct Sent {
  int send_to;
  DType dtype;
  std::int64_t partitions;
  std::int64_t elements;  // per partition
  std::string tile;       // for messages
  SendRecv::Bytes bytes;  // null in a time-only run
};

// Runs `call` and puts `where` on its complaints.
template <typename Call>
void at_line(const SourceLine& where, Call&& call) {
  try {
    call();
  } catch (Error& error) {
    if (!error.has_where()) {
      error.set_where(where);
    }
    throw;
  }
}

void require_two_cores(const Seat& seat, std::string_view instruction) {
  if (seat.baton != nullptr && seat.program->core_count() == 2) {
    return;
  }
  throw Error(ErrorKind::kIllegal, "pair-single-core",
              {.rule = fmt::format("{} joins the two cores of a logical core", instruction),
               .here = fmt::format("this launch has {} core(s)", seat.program->core_count()),
               .fix = "launch the kernel with [2] (LNC 2), or leave the call out when "
                      "nl.num_programs() is 1"});
}

Met meet(const Seat& seat, std::string kind, const SourceLine& where,
         std::shared_ptr<const void> offer) {
  const Position position = seat.program->position();
  const int first = seat.member - seat.core;
  Met met =
      seat.baton->meet(seat.member, {std::move(kind), {first, first + 1}, where}, std::move(offer));
  seat.program->set_position(position);  // the other core moved it
  return met;
}

void require_fit(const SendRecv& swap, const Sent& sent, int core) {
  const Tensor& dst = swap.dst();
  if (sent.send_to == core && sent.dtype == dst.dtype() && sent.partitions == dst.partitions() &&
      sent.elements == dst.free_size()) {
    return;
  }
  throw Error(
      ErrorKind::kIllegal, "sendrecv-mismatch",
      {.rule = "what one core sends is what the other receives",
       .here = fmt::format("core {} receives {} from core {}, which sends {} to core {}", core,
                           dst.describe(), swap.receive_from(), sent.tile, sent.send_to),
       .fix = "make both calls with tiles of one shape and type, and with matching ranks"});
}

}  // namespace

void append_core_barrier(const Seat& seat, std::unique_ptr<CoreBarrier> barrier) {
  const SourceLine where = seat.program->source_line(seat.program->position());
  at_line(where, [&] {
    barrier->check(seat.program->machine());
    require_two_cores(seat, barrier->name());
    barrier->set_rendezvous(meet(seat, "core_barrier", where, nullptr).id);
    seat.program->append(seat.core, std::move(barrier));
  });
}

void append_sendrecv(const Seat& seat, std::unique_ptr<SendRecv> swap, int pipe_id) {
  const SourceLine where = seat.program->source_line(seat.program->position());
  at_line(where, [&] {
    swap->check(seat.program->machine());
    require_two_cores(seat, swap->name());
    const Tensor& src = swap->src();
    const bool values = seat.program->options().values;
    auto offer = std::make_shared<const Sent>(Sent{swap->send_to(), src.dtype(), src.partitions(),
                                                   src.free_size(), src.describe(),
                                                   values ? swap->pack() : nullptr});
    const Met met = meet(seat, fmt::format("sendrecv pipe {}", pipe_id), where, std::move(offer));
    const auto& sent =
        *static_cast<const Sent*>(met.offers[static_cast<std::size_t>(swap->receive_from())].get());
    require_fit(*swap, sent, seat.core);
    swap->receive(met.id, sent.bytes);
    seat.program->append(seat.core, std::move(swap));
  });
}

}  // namespace trena
