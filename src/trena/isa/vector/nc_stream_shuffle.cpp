#include "trena/isa/vector/nc_stream_shuffle.h"

#include <fmt/format.h>

#include <algorithm>

#include "trena/isa/stream.h"
#include "trena/memory/rows.h"

namespace trena {
namespace {

constexpr std::int64_t kMaskEntries = 32;

// The marked partitions as few views as possible.
std::vector<Tensor> runs(const Tensor& tensor, const std::vector<bool>& marked) {
  std::vector<Tensor> result;
  std::vector<Dim> dims;
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    dims.push_back(tensor.dim(axis));
  }
  const auto count = static_cast<std::int64_t>(marked.size());
  for (std::int64_t first = 0; first < count; ++first) {
    std::int64_t last = first;
    while (last < count && marked[static_cast<std::size_t>(last)]) {
      ++last;
    }
    if (last > first) {
      dims[0].size = last - first;
      result.push_back(tensor.with(
          tensor.dtype(), tensor.offset_bytes() + first * tensor.dim(0).stride_bytes, dims));
      first = last;
    }
  }
  return result;
}

class NcStreamShuffleInstruction final : public InstructionOf<NcStreamShuffle> {
 public:
  explicit NcStreamShuffleInstruction(NcStreamShuffle args) : InstructionOf(std::move(args)) {
    if (static_cast<std::int64_t>(args_.mask.size()) != kMaskEntries || args_.dst.rank() == 0 ||
        args_.src.rank() == 0) {
      return;  // check() complains
    }
    std::vector<bool> written(static_cast<std::size_t>(args_.dst.partitions()));
    std::vector<bool> read(static_cast<std::size_t>(args_.src.partitions()));
    for (std::int64_t to = 0; to < args_.dst.partitions(); ++to) {
      const std::int64_t entry = args_.mask[static_cast<std::size_t>(to % kMaskEntries)];
      const std::int64_t from = to / kMaskEntries * kMaskEntries + entry;
      if (entry >= 0 && entry < kMaskEntries && from < args_.src.partitions()) {
        moves_.push_back({to, from});
        written[static_cast<std::size_t>(to)] = true;
        read[static_cast<std::size_t>(from)] = true;
      }
    }
    written_ = runs(args_.dst, written);
    read_ = runs(args_.src, read);
  }

  std::string_view name() const override { return "nc_stream_shuffle"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_tile(machine, name(), "dst", args_.dst);
    require_tile(machine, name(), "src", args_.src);
    require_same_dtype(name(), "dst", args_.dst, "src", args_.src);
    require_same_elements(name(), "dst", args_.dst, "src", args_.src);
    const std::int64_t quadrant = machine.core.sbuf.quadrant_partitions;
    const std::int64_t most = std::max(args_.dst.partitions(), args_.src.partitions());
    const std::int64_t active = (most + quadrant - 1) / quadrant * quadrant;
    const std::int64_t step = active > 2 * quadrant ? 4 * quadrant : active;
    for (const auto& [role, tensor] : {std::pair{"dst", &args_.dst}, {"src", &args_.src}}) {
      if (tensor->start_partition() % step != 0) {
        refuse(
            "partition-start",
            {.rule = "both tiles of a shuffle start where as many whole quadrants may start",
             .here = fmt::format("nc_stream_shuffle `{}`: {} active partitions from partition {}",
                                 role, active, tensor->start_partition()),
             .limit = fmt::format("a multiple of {}", step)});
      }
    }
    check_mask(quadrant);
  }

  void access(AccessList& list) const override {
    for (const Tensor& tensor : read_) {
      list.read(tensor);
    }
    for (const Tensor& tensor : written_) {
      list.write(tensor);
    }
  }

  void execute(CoreState&) const override {
    const auto row = static_cast<std::size_t>(args_.src.free_bytes());
    std::vector<std::byte> rows(static_cast<std::size_t>(args_.src.partitions()) * row);
    for (std::int64_t p = 0; p < args_.src.partitions(); ++p) {
      read_row_bits(args_.src, p, rows.data() + static_cast<std::size_t>(p) * row);
    }
    for (const Move& move : moves_) {
      write_row_bits(args_.dst, move.to, rows.data() + static_cast<std::size_t>(move.from) * row);
    }
  }

  Cost cost(const Machine& machine) const override {
    return stream_cost(machine, EngineKind::kVector, machine.core.vector.shuffle,
                       args_.src.free_size(), {&args_.dst, &args_.src});
  }

 private:
  struct Move {
    std::int64_t to;
    std::int64_t from;
  };

  void check_mask(std::int64_t quadrant) const {
    const auto complain = [](std::string here) {
      refuse(
          "shuffle-mask",
          {.rule =
               "shuffle_mask has 32 entries: the partition of the same quadrant of `src` to take, "
               "or 255 to leave the output partition alone",
           .here = std::move(here),
           .limit = "0 to 31, or 255"});
    };
    if (static_cast<std::int64_t>(args_.mask.size()) != quadrant) {
      complain(fmt::format("{} entries", args_.mask.size()));
    }
    for (std::int64_t to = 0; to < args_.dst.partitions(); ++to) {
      const std::int64_t entry = args_.mask[static_cast<std::size_t>(to % quadrant)];
      if (entry == NcStreamShuffle::kKeep) {
        continue;
      }
      if (entry < 0 || entry >= quadrant) {
        complain(fmt::format("shuffle_mask[{}] is {}", to % quadrant, entry));
      }
      if (to / quadrant * quadrant + entry >= args_.src.partitions()) {
        complain(fmt::format("output partition {} takes partition {} of {}", to,
                             to / quadrant * quadrant + entry, args_.src.describe()));
      }
    }
  }

  std::vector<Move> moves_;      // partitions of dst and src
  std::vector<Tensor> written_;  // the partitions of dst that change
  std::vector<Tensor> read_;     // the partitions of src that are used
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(NcStreamShuffle args) {
  return std::make_unique<NcStreamShuffleInstruction>(std::move(args));
}

}  // namespace trena
