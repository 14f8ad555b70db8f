#include "trena/core/placement/capacity_errors.h"

#include <fmt/format.h>

namespace trena {
namespace {

std::string usable_sbuf(const Machine& machine) {
  return fmt::format("{} usable bytes per partition on {}", machine.core.sbuf.usable_bytes(),
                     machine.chip.name);
}

[[noreturn]] void throw_at(const Program& program, const Lifetimes& lifetimes, std::size_t step,
                           Error error) {
  error.set_where(program.source_line(lifetimes.steps()[step].instruction->position));
  throw error;
}

}  // namespace

void throw_psum_capacity(const Program& program, const Lifetimes& lifetimes, const Machine& machine,
                         const Tile& tile, std::size_t step) {
  const Psum& psum = machine.core.psum;
  std::string list;
  for (const Life& life : lifetimes.lives()) {
    if (life.buffer != nullptr && life.buffer->space == Space::kPsum &&
        life.buffer != tile.buffer.get() && life.first <= step && step <= life.last) {
      list += fmt::format("{}{} (line {})", list.empty() ? "" : ", ", life.buffer->name,
                          life.buffer->where.line);
    }
  }
  throw_at(program, lifetimes, step,
           Error(ErrorKind::kCapacity, "psum-capacity",
                 {.rule = "the PSUM tensors that are alive at once fit into its banks",
                  .here = fmt::format("`{}` needs {} more bank(s); alive: {}", tile.buffer->name,
                                      tile.bytes / psum.bank_bytes, list),
                  .limit = fmt::format("{} banks of {} bytes per partition on {}", psum.banks,
                                       psum.bank_bytes, machine.chip.name),
                  .fix = "copy results out of PSUM before starting more accumulation groups"}));
}

void throw_sbuf_capacity(const Program& program, const Lifetimes& lifetimes, const Machine& machine,
                         std::size_t step) {
  std::int64_t bytes = 0;
  std::string list;
  for (const Use& use : lifetimes.uses_of(step)) {
    if (use.tile != kNoTile && use.tensor->space() == Space::kSbuf) {
      bytes += lifetimes.tile(use.tile).bytes;
      list += (list.empty() ? "" : ", ") + use.tensor->describe();
    }
  }
  throw_at(program, lifetimes, step,
           Error(ErrorKind::kCapacity, "sbuf-capacity",
                 {.rule = "the operands of one instruction are in SBUF together",
                  .here = fmt::format("{} needs {} bytes per partition: {}",
                                      lifetimes.steps()[step].instruction->name(), bytes, list),
                  .limit = usable_sbuf(machine),
                  .fix = "use smaller tiles"}));
}

void throw_spill_forbidden(const Machine& machine, const std::string& homeless) {
  throw Error(ErrorKind::kCapacity, "spill-forbidden",
              {.rule = "with --spill=error everything alive at once must fit into SBUF",
               .here = "no place for " + homeless,
               .limit = usable_sbuf(machine),
               .fix = "use smaller tiles, or allow spills"});
}

}  // namespace trena
