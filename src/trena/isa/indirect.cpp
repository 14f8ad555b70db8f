#include "trena/isa/indirect.h"

#include <fmt/format.h>

#include "trena/isa/rules.h"
#include "trena/memory/rows.h"

namespace trena {
namespace {

bool is_indirect(const Tensor& tensor) {
  return tensor.indirection() != nullptr &&
         tensor.indirection()->kind == Indirection::Kind::kColumns;
}

[[noreturn]] void complain(std::string rule, std::string here, std::string limit = {}) {
  refuse("indirect-operand",
         {.rule = std::move(rule), .here = std::move(here), .limit = std::move(limit)});
}

// A group of 16 partitions holds the index of its columns, 16 in each column of the index.
void check_index(const Machine& machine, const Instruction& instruction, const Tensor& tensor) {
  const Tensor& index = *tensor.indirection()->index;
  if (tensor.partitions() % kIndexGroup != 0) {
    throw_not_modelled(
        fmt::format("tensor indirection of {}, which is not whole groups of {} partitions",
                    tensor.describe(), kIndexGroup));
  }
  if (tensor.size(1) > kIndexGroup * index.free_size()) {
    complain("16 partitions hold the index of their own elements",
             fmt::format("{} elements by {}", tensor.size(1), index.describe()),
             fmt::format("{} elements", kIndexGroup * index.free_size()));
  }
  const std::int64_t quadrant = machine.core.sbuf.quadrant_partitions;
  if (index.start_partition() % quadrant != 0) {
    complain("an index starts where a quadrant does",
             fmt::format("{}: its index starts at partition {}", instruction.name(),
                         index.start_partition()),
             fmt::format("a multiple of {}", quadrant));
  }
}

void require_same_start(const Instruction& instruction, std::string_view role, const Tensor& tensor,
                        const Tensor& index) {
  if (tensor.start_partition() != index.start_partition()) {
    complain(fmt::format("{} and the index start at one partition", role),
             fmt::format("{}: partitions {} and {}", instruction.name(), tensor.start_partition(),
                         index.start_partition()));
  }
}

void check_places(const Machine& machine, const Instruction& instruction,
                  const Instruction::IndirectOperands& may) {
  const bool gathers = may.src != nullptr && is_indirect(*may.src);
  const bool scatters = may.dst != nullptr && is_indirect(*may.dst);
  if (gathers) {
    require_same_start(instruction, "a gathered source", *may.src, *may.src->indirection()->index);
  }
  if (!scatters) {
    return;
  }
  const Tensor& index = *may.dst->indirection()->index;
  if (may.src != nullptr && may.src->space() == Space::kSbuf) {
    require_same_start(instruction, "the source of a scatter", *may.src, index);
  } else if (gathers) {
    require_same_start(instruction, "the index of the source", *may.src->indirection()->index,
                       index);
  }
  if (instruction.engine(machine) == EngineKind::kScalar && may.dst->space() == Space::kPsum) {
    complain("the scalar engine scatters into SBUF only",
             fmt::format("{} to {}", instruction.name(), may.dst->describe()), "sbuf");
  }
}

}  // namespace

void check_indirection(const Machine& machine, const Instruction& instruction,
                       const AccessList& accesses) {
  const Instruction::IndirectOperands may = instruction.indirect_operands();
  bool any = false;
  for (const Access& access : accesses) {
    if (!is_indirect(*access.tensor)) {
      continue;
    }
    any = true;
    if (!machine.legality.indirection) {
      refuse("not-on-this-machine",
             {.rule = "tensor indirection (.indirect) came with NeuronCore-v4",
              .here = fmt::format("{} on {} ({})", instruction.name(), machine.chip.name,
                                  machine.chip.core)});
    }
    if (instruction.engine(machine) == EngineKind::kTensor) {
      throw_not_modelled(
          fmt::format("tensor indirection (.indirect) of an operand of {}", instruction.name()));
    }
    if (access.tensor != may.dst && access.tensor != may.src) {
      complain(
          fmt::format("{} takes this operand as it stands, not by .indirect()", instruction.name()),
          access.tensor->describe(), "its destination and its data, where it has them so");
    }
    check_index(machine, instruction, *access.tensor);
  }
  if (any) {
    check_places(machine, instruction, may);
  }
}

}  // namespace trena
