#include "trena/core/placement/stream_writer.h"

namespace trena {

StreamWriter::StreamWriter(const Lifetimes& lifetimes, const ManualAddresses& manual,
                           const Machine& machine)
    : lifetimes_(lifetimes),
      manual_(manual),
      machine_(machine),
      item_of_(lifetimes.steps().size(), 0) {
  const Peaks peaks = lifetimes.peaks(machine);
  stream_.sbuf_peak_bytes = peaks.sbuf_bytes;
  stream_.psum_peak_banks = peaks.psum_banks;
}

void StreamWriter::begin_stay(const Tenant& tenant, std::int64_t start,
                              const std::vector<Stay>& former) {
  const Buffer& buffer = *tenant.tile->buffer;
  stream_.residences.push_back({&buffer, start, tenant.tile->bytes, next_item(), next_item()});
  std::vector<Dependences::Key> keys;
  for (const Stay old : former) {
    keys.push_back(key(old));
  }
  order_.open(key(*tenant.stay), region_of(buffer), keys);
}

void StreamWriter::end_stay(Stay stay) { stream_.residences[stay].past_item = next_item(); }

void StreamWriter::write(std::size_t index, Insertion insertion, std::span<const Tenant> tenants,
                         const LentBanks& lent_banks) {
  const Step& step = lifetimes_.steps()[index];
  const std::uint32_t item = next_item();
  stream_.items.push_back({step.instruction, insertion, step.engine});
  for (const Use& use : lifetimes_.uses_of(index)) {
    order_use(use, item, tenants, lent_banks);
  }
  for (int state = 0; state < kHiddenStates; ++state) {
    if ((step.states >> state & 1u) != 0) {
      order_.visit_state(static_cast<HiddenState>(state), item);
    }
  }
  if (insertion == Insertion::kRecorded) {
    order_as_asked(index, item);
  }
  order_meetings(*step.instruction, item);
  order_.finish(stream_.waits);
}

void StreamWriter::order_use(const Use& use, std::uint32_t item, std::span<const Tenant> tenants,
                             const LentBanks& lent_banks) {
  const Buffer& buffer = *use.tensor->buffer();
  if (use.tile != kNoTile) {
    const Tenant& tenant = tenants[static_cast<std::size_t>(use.tile)];
    order_.visit(key(*tenant.stay), item, *use.tensor, use.kind);
    if (tenant.lent) {
      order_.visit_address(buffer.space, item,
                           lent_banks.region_of_guest(*use.tensor, *tenant.stay), use.kind,
                           buffer.id);
    }
  } else if (lifetimes_.written(buffer)) {
    order_.visit(buffer.id, item, *use.tensor, use.kind);
  }
  if (const Indirection* address = use.tensor->indirection().get();
      address != nullptr && !address->index) {
    order_.wait_for_registers();
  }
  if (manual_.shared(buffer)) {
    order_.visit_address(buffer.space, item, region_in_memory(*use.tensor), use.kind, buffer.id);
  }
}

void StreamWriter::order_as_asked(std::size_t step, std::uint32_t item) {
  const Instruction& instruction = *lifetimes_.steps()[step].instruction;
  item_of_[step] = item;
  for (const std::uint32_t earlier : instruction.depends_on) {
    order_.add_wait(Wait::after_end(item_of_[earlier]));
  }
  if (instruction.order_block != 0) {
    keep_order(lifetimes_.steps()[step], item);
  }
}

// nl.no_reorder binds the scheduler, not the device: every engine issues its instructions and its
// transfers in the order of the program, and engines run beside each other (AWS
// how-to-scheduling-apis.rst; dependency.schedule of SDK 2.33 says it of a single edge).
void StreamWriter::keep_order(const Step& step, std::uint32_t item) {
  if (step.instruction->order_block != order_block_) {
    order_block_ = step.instruction->order_block;
    last_ordered_.fill(std::nullopt);
  }
  const auto follow = [&](EngineKind engine) {
    const std::size_t queue = static_cast<std::size_t>(engine) + (step.dma ? kEngineCount : 0);
    std::optional<std::uint32_t>& last = last_ordered_[queue];
    if (last) {
      order_.add_wait(Wait::after_start(*last));
    }
    last = item;
  };
  follow(step.engine);
  if (const auto other = step.instruction->alternative(machine_)) {
    follow(other->engine);
  }
}

// Cores meet in the order of their programs, whatever is ready first: two cores that took two
// meetings in different orders would wait for ever.
void StreamWriter::order_meetings(const Instruction& instruction, std::uint32_t item) {
  if (instruction.rendezvous() < 0) {
    return;
  }
  if (last_meeting_) {
    order_.add_wait(Wait::after_start(*last_meeting_));
  }
  last_meeting_ = item;
}

void StreamWriter::write_move(std::int32_t tile, const Tenant& tenant,
                              SpillMove::Direction direction, std::size_t step) {
  const BufferPtr& buffer = tenant.tile->buffer;
  const std::int64_t shape[] = {buffer->rows, buffer->row_bytes};
  auto move = std::make_unique<SpillMove>(Tensor(buffer, DType::kUint8, shape), direction);
  move->position = lifetimes_.steps()[step].instruction->position;
  const std::uint32_t item = next_item();
  stream_.items.push_back({move.get(), Insertion::kSpill, move->engine(machine_)});
  scratch_.clear();
  move->access(scratch_);
  for (const Access& access : scratch_) {
    order_.visit(key(*tenant.stay), item, *access.tensor, access.kind);
  }
  // The slot in HBM scratch: a reload waits for the store before it.
  const Dependences::Key slot = Dependences::kSparse + static_cast<Dependences::Key>(tile);
  order_.visit(slot, item, *scratch_.begin()->tensor,
               direction == SpillMove::Direction::kStore ? AccessKind::kWrite : AccessKind::kRead);
  order_.finish(stream_.waits);
  stream_.inserted.push_back(std::move(move));
}

}  // namespace trena
