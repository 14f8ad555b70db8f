#include "trena/fabric/collective.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "trena/isa/dma/transfer.h"
#include "trena/memory/rows.h"
#include "trena/number/convert.h"
#include "trena/number/threads.h"

namespace trena {
namespace {

struct Part {
  DType dtype;
  std::int64_t elements;
  AllReduce::Bytes bytes;  // null in a time-only run
};

struct Contribution {
  AluOp op;
  std::vector<Part> parts;  // one for each tensor
  // Made by the first rank that goes on; the others find it here (one rank runs at a time).
  mutable std::vector<AllReduce::Bytes> reduced;
};

AllReduce::Bytes pack(const Tensor& tensor) {
  auto bytes =
      std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(tensor.size_bytes()));
  const auto width = static_cast<std::int64_t>(size_bytes(tensor.dtype()));
  tensor.buffer()->storage->settle();
  transfer({tensor.dtype(), bytes->data(), {{tensor.element_count(), width}}}, layout_of(tensor));
  return bytes;
}

std::vector<int> group_of(const std::vector<std::vector<int>>& groups, const RankSeat& seat) {
  std::vector<int> mine;
  for (const std::vector<int>& group : groups) {
    if (std::find(group.begin(), group.end(), seat.rank) != group.end()) {
      mine = group;
    }
  }
  std::sort(mine.begin(), mine.end());
  const bool distinct = std::adjacent_find(mine.begin(), mine.end()) == mine.end();
  if (mine.empty() || !distinct || mine.front() < 0 || mine.back() >= seat.world) {
    throw Error(ErrorKind::kUsage, "collective-group",
                {.rule = "a replica group lists each of its ranks once, and every caller is in one",
                 .here = fmt::format("rank {} of {} with groups {}", seat.rank, seat.world, groups),
                 .limit = fmt::format("ranks 0 to {}", seat.world - 1),
                 .fix = "launch as many ranks as the group names (trena.simulate_ranks)"});
  }
  return mine;
}

void require_equal(const Contribution& mine, const Contribution& other, int rank) {
  bool equal = mine.op == other.op && mine.parts.size() == other.parts.size();
  for (std::size_t i = 0; equal && i < mine.parts.size(); ++i) {
    equal = mine.parts[i].dtype == other.parts[i].dtype &&
            mine.parts[i].elements == other.parts[i].elements;
  }
  if (!equal) {
    throw Error(
        ErrorKind::kIllegal, "collective-mismatch",
        {.rule = "all ranks of a group pass tensors of one type and length, and one operator",
         .here = fmt::format("rank {} passes others", rank)});
  }
}

std::shared_ptr<const Contribution> contribute(const AllReduce& instruction, AluOp op,
                                               bool values) {
  auto contribution = std::make_shared<Contribution>();
  contribution->op = op;
  for (const Tensor& source : instruction.sources()) {
    if (values && !is_written(source)) {
      throw Error(
          ErrorKind::kUnwritten, "unwritten-read",
          {.rule = "every byte an instruction reads must have been written before",
           .here = fmt::format("all_reduce reads {}", source.describe()),
           .device = "whatever the memory held before: garbage that changes from run to run",
           .fix = "write the tensor first"});
    }
    contribution->parts.push_back(
        {source.dtype(), source.element_count(), values ? pack(source) : nullptr});
  }
  return contribution;
}

void reduce_all(const std::vector<const Contribution*>& contributions) {
  const Contribution& first = *contributions.front();
  for (std::size_t i = 0; first.reduced.size() < first.parts.size(); ++i) {
    std::vector<AllReduce::Bytes> packed;
    for (const Contribution* contribution : contributions) {
      packed.push_back(contribution->parts[i].bytes);
    }
    first.reduced.push_back(reduce(first.parts[i].dtype, packed, first.op));
  }
}

Ticks duration(const RankSeat& seat, const std::vector<int>& ranks, const Contribution& mine) {
  if (ranks.size() == 1) {
    return 0;
  }
  double ns = 0;
  for (const Part& part : mine.parts) {
    const auto width = static_cast<std::int64_t>(size_bytes(part.dtype));
    ns += seat.network->all_reduce(ranks, part.elements * width, width).time_ns;
  }
  return ticks_from_ns(ns);
}

void meet_and_append(const Seat& seat, const RankSeat& rank, std::unique_ptr<AllReduce> instruction,
                     const std::vector<int>& ranks, AluOp op, const SourceLine& where) {
  const bool values = seat.program->options().values;
  std::vector<std::shared_ptr<const void>> offers{contribute(*instruction, op, values)};
  if (ranks.size() > 1) {
    const Position position = seat.program->position();
    offers = seat.baton->meet(seat.member, {"all_reduce", ranks, where}, offers.front()).offers;
    seat.program->set_position(position);
  }
  std::vector<const Contribution*> contributions;
  for (std::size_t i = 0; i < offers.size(); ++i) {
    contributions.push_back(static_cast<const Contribution*>(offers[i].get()));
    require_equal(*contributions.front(), *contributions.back(), ranks[i]);
  }
  if (values) {
    reduce_all(contributions);
  }
  instruction->complete(contributions.front()->reduced,
                        duration(rank, ranks, *contributions.front()));
  seat.program->append(seat.core, std::move(instruction));
}

}  // namespace

AllReduce::Bytes reduce(DType dtype, const std::vector<AllReduce::Bytes>& packed, AluOp op) {
  auto result = std::make_shared<std::vector<std::byte>>(*packed.front());
  const std::size_t width = size_bytes(dtype);
  const std::size_t count = result->size() / width;
  constexpr std::size_t kBlock = 4096;
  const std::size_t blocks = (count + kBlock - 1) / kBlock;
  parallel_for_partitions(blocks, count * packed.size(), [&](std::size_t begin, std::size_t end) {
    std::vector<float> total(kBlock);
    std::vector<float> next(kBlock);
    for (std::size_t block = begin; block < end; ++block) {
      const std::size_t first = block * kBlock;
      const std::size_t length = std::min(kBlock, count - first);
      std::byte* place = result->data() + first * width;
      const auto stride = static_cast<std::ptrdiff_t>(width);
      for (std::size_t rank = 1; rank < packed.size(); ++rank) {
        read_row(dtype, place, stride, length, total.data());
        read_row(dtype, packed[rank]->data() + first * width, stride, length, next.data());
        binary_row(op, total.data(), 1, next.data(), 1, total.data(), length);
        write_row(dtype, total.data(), place, stride, length);
      }
    }
  });
  return result;
}

void append_all_reduce(const Seat& seat, const RankSeat& rank,
                       std::unique_ptr<AllReduce> instruction,
                       const std::vector<std::vector<int>>& groups, AluOp op) {
  const SourceLine where = seat.program->source_line(seat.program->position());
  try {
    if (op != AluOp::kAdd && op != AluOp::kMinimum && op != AluOp::kMaximum) {
      refuse("operator-refused", {.rule = "all_reduce adds, or takes the minimum or maximum",
                                  .here = fmt::format("op={}", name(op)),
                                  .limit = "nl.add, nl.minimum, nl.maximum"});
    }
    instruction->check(seat.program->machine());
    if (seat.program->core_count() > 1) {
      throw_not_modelled("a collective of logical cores that are two physical ones (LNC 2)");
    }
    meet_and_append(seat, rank, std::move(instruction), group_of(groups, rank), op, where);
  } catch (Error& error) {
    if (!error.has_where()) {
      error.set_where(where);
    }
    throw;
  }
}

}  // namespace trena
