#include "trena/core/placement/lifetimes.h"

#include <algorithm>

namespace trena {

Lifetimes::Lifetimes(const Program& program, int core, const Machine& machine)
    : lives_(program.buffers().size()),
      tile_of_buffer_(program.buffers().size(), kNoTile),
      written_(program.buffers().size(), false) {
  const auto& instructions = program.instructions(core);
  steps_.reserve(instructions.size());
  for (const auto& instruction : instructions) {
    steps_.push_back({instruction.get(), instruction->engine(machine)});
  }
  note_writes_of_all_cores(program);
  for (std::size_t step = 0; step < steps_.size(); ++step) {
    read(step, machine);
  }
}

// What another core writes is no constant here either.
void Lifetimes::note_writes_of_all_cores(const Program& program) {
  for (int core = 0; core < program.core_count() && program.core_count() > 1; ++core) {
    for (const auto& instruction : program.instructions(core)) {
      scratch_.clear();
      instruction->access(scratch_);
      for (const Access& access : scratch_) {
        if (!access.tensor->on_chip() && !only_reads(access.kind)) {
          written_[access.tensor->buffer()->id] = true;
        }
      }
    }
  }
}

void Lifetimes::read(std::size_t index, const Machine& machine) {
  Step& step = steps_[index];
  step.first_use = static_cast<std::uint32_t>(uses_.size());
  scratch_.clear();
  step.instruction->access(scratch_);
  for (const Access& access : scratch_) {
    const BufferPtr& buffer = access.tensor->buffer();
    if (!only_reads(access.kind)) {
      written_[buffer->id] = true;
    }
    std::int32_t tile = kNoTile;
    if (buffer->on_chip()) {
      note_life(access, index);
      tile = buffer->address ? kNoTile : note_use(buffer, index, machine);
    }
    uses_.push_back({tile, access.kind, access.tensor});
  }
  step.past_use = static_cast<std::uint32_t>(uses_.size());
  step.dma = step.instruction->is_dma();
  for (const std::uint32_t earlier : step.instruction->depends_on) {
    steps_[earlier].awaited = true;
  }
  for (int state = 0; state < kHiddenStates; ++state) {
    step.states |= scratch_.has_state(static_cast<HiddenState>(state)) ? 1u << state : 0u;
  }
}

void Lifetimes::note_life(const Access& access, std::size_t step) {
  const Buffer& buffer = *access.tensor->buffer();
  Life& life = lives_[buffer.id];
  if (life.buffer == nullptr) {
    const bool reads = only_reads(access.kind) || access.kind == AccessKind::kUpdate;
    life = {&buffer, step, step, reads};
  }
  life.last = step;
}

std::int32_t Lifetimes::note_use(const BufferPtr& buffer, std::size_t step,
                                 const Machine& machine) {
  std::int32_t& tile = tile_of_buffer_[buffer->id];
  if (tile == kNoTile) {
    tile = static_cast<std::int32_t>(tiles_.size());
    const std::int64_t grain = buffer->space == Space::kPsum ? machine.core.psum.bank_bytes
                                                             : machine.core.sbuf.alignment_bytes;
    tiles_.push_back({buffer, (buffer->row_bytes + grain - 1) / grain * grain, {}});
  }
  std::vector<std::size_t>& uses = tiles_[static_cast<std::size_t>(tile)].uses;
  if (uses.empty() || uses.back() != step) {
    uses.push_back(step);
  }
  return tile;
}

Peaks Lifetimes::peaks(const Machine& machine) const {
  const std::int64_t bank = machine.core.psum.bank_bytes;
  std::vector<Peaks> change(steps_.size() + 1);
  for (const Life& life : lives_) {
    if (life.buffer == nullptr) {
      continue;
    }
    const std::int64_t bytes = life.buffer->row_bytes;
    if (life.buffer->space == Space::kPsum) {
      const std::int64_t banks = (bytes + bank - 1) / bank;
      change[life.first].psum_banks += banks;
      change[life.last + 1].psum_banks -= banks;
    } else {
      change[life.first].sbuf_bytes += bytes;
      change[life.last + 1].sbuf_bytes -= bytes;
    }
  }
  Peaks now;
  Peaks peak;
  for (std::size_t step = 0; step < steps_.size(); ++step) {
    now.sbuf_bytes += change[step].sbuf_bytes;
    now.psum_banks += change[step].psum_banks;
    peak.sbuf_bytes = std::max(peak.sbuf_bytes, now.sbuf_bytes);
    peak.psum_banks = std::max(peak.psum_banks, now.psum_banks);
  }
  return peak;
}

}  // namespace trena
