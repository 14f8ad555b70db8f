// What a recorded program asks of the memories of one core: who touches which tensor when, and
// which tensors Placement has to find a place for. Read once; nothing here knows an address that
// the kernel did not choose.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trena/core/program.h"
#include "trena/isa/instruction.h"

namespace trena {

// A tensor of SBUF or PSUM without an address of its own, known by its index in tiles().
struct Tile {
  BufferPtr buffer;
  std::int64_t bytes = 0;         // per partition, rounded up to the memory's grain
  std::vector<std::size_t> uses;  // steps, ascending

  bool psum() const { return buffer->space == Space::kPsum; }
};

constexpr std::int32_t kNoTile = -1;  // HBM, or a tensor at the kernel's address

// One access of a recorded instruction.
struct Use {
  std::int32_t tile;
  AccessKind kind;
  const Tensor* tensor;  // lives as long as its instruction
};

// One recorded instruction: a step is its index in the program of the core.
struct Step {
  const Instruction* instruction;
  EngineKind engine;
  bool dma = false;
  bool awaited = false;  // named in some `depends_on`
  std::uint32_t first_use = 0;
  std::uint32_t past_use = 0;
  std::uint32_t states = 0;  // bit per HiddenState

  // The engine that touches the operands, -1: a DMA.
  int worker() const { return dma ? -1 : static_cast<int>(engine); }
};

// From the first to the last access of a tensor on the chip, addressed ones included.
struct Life {
  const Buffer* buffer = nullptr;  // none: not on the chip, or never touched
  std::size_t first = 0;           // steps
  std::size_t last = 0;
  bool inherits = false;  // its first access reads what an earlier tensor left there

  bool addressed() const { return buffer != nullptr && buffer->address.has_value(); }
};

// Alive at once at the worst step, as written.
struct Peaks {
  std::int64_t sbuf_bytes = 0;  // per partition
  std::int64_t psum_banks = 0;
};

class Lifetimes {
 public:
  Lifetimes(const Program& program, int core, const Machine& machine);

  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Tile>& tiles() const { return tiles_; }
  const std::vector<Life>& lives() const { return lives_; }  // by buffer id
  const Tile& tile(std::int32_t index) const { return tiles_[static_cast<std::size_t>(index)]; }
  std::span<const Use> uses_of(std::size_t step) const {
    return {uses_.data() + steps_[step].first_use, uses_.data() + steps_[step].past_use};
  }
  // By this core, or HBM by any.
  bool written(const Buffer& buffer) const { return written_[buffer.id]; }
  Peaks peaks(const Machine& machine) const;

 private:
  void note_writes_of_all_cores(const Program& program);
  void read(std::size_t step, const Machine& machine);
  void note_life(const Access& access, std::size_t step);
  std::int32_t note_use(const BufferPtr& buffer, std::size_t step, const Machine& machine);

  std::vector<Step> steps_;
  std::vector<Use> uses_;  // of all steps, in order
  std::vector<Tile> tiles_;
  std::vector<Life> lives_;
  std::vector<std::int32_t> tile_of_buffer_;
  std::vector<bool> written_;
  AccessList scratch_;
};

}  // namespace trena
