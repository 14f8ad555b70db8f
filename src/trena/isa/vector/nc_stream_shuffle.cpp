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

}  // namespace

NcStreamShuffle::NcStreamShuffle(Tensor dst, Tensor src, std::vector<std::int64_t> mask)
    : dst_(std::move(dst)), src_(std::move(src)), mask_(std::move(mask)) {
  if (static_cast<std::int64_t>(mask_.size()) != kMaskEntries || dst_.rank() == 0 ||
      src_.rank() == 0) {
    return;  // check() complains
  }
  std::vector<bool> written(static_cast<std::size_t>(dst_.partitions()));
  std::vector<bool> read(static_cast<std::size_t>(src_.partitions()));
  for (std::int64_t to = 0; to < dst_.partitions(); ++to) {
    const std::int64_t entry = mask_[static_cast<std::size_t>(to % kMaskEntries)];
    const std::int64_t from = to / kMaskEntries * kMaskEntries + entry;
    if (entry >= 0 && entry < kMaskEntries && from < src_.partitions()) {
      moves_.push_back({to, from});
      written[static_cast<std::size_t>(to)] = true;
      read[static_cast<std::size_t>(from)] = true;
    }
  }
  written_ = runs(dst_, written);
  read_ = runs(src_, read);
}

EngineKind NcStreamShuffle::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

void NcStreamShuffle::check_mask(std::int64_t quadrant) const {
  const auto complain = [](std::string here) {
    refuse("shuffle-mask",
           {.rule =
                "shuffle_mask has 32 entries: the partition of the same quadrant of `src` to take, "
                "or 255 to leave the output partition alone",
            .here = std::move(here),
            .limit = "0 to 31, or 255"});
  };
  if (static_cast<std::int64_t>(mask_.size()) != quadrant) {
    complain(fmt::format("{} entries", mask_.size()));
  }
  for (std::int64_t to = 0; to < dst_.partitions(); ++to) {
    const std::int64_t entry = mask_[static_cast<std::size_t>(to % quadrant)];
    if (entry == kKeep) {
      continue;
    }
    if (entry < 0 || entry >= quadrant) {
      complain(fmt::format("shuffle_mask[{}] is {}", to % quadrant, entry));
    }
    if (to / quadrant * quadrant + entry >= src_.partitions()) {
      complain(fmt::format("output partition {} takes partition {} of {}", to,
                           to / quadrant * quadrant + entry, src_.describe()));
    }
  }
}

void NcStreamShuffle::check(const Machine& machine) const {
  engine(machine);
  require_tile(machine, name(), "dst", dst_);
  require_tile(machine, name(), "src", src_);
  require_same_dtype(name(), "dst", dst_, "src", src_);
  require_same_elements(name(), "dst", dst_, "src", src_);
  const std::int64_t quadrant = machine.core.sbuf.quadrant_partitions;
  const std::int64_t most = std::max(dst_.partitions(), src_.partitions());
  const std::int64_t active = (most + quadrant - 1) / quadrant * quadrant;
  const std::int64_t step = active > 2 * quadrant ? 4 * quadrant : active;
  for (const auto& [role, tensor] : {std::pair{"dst", &dst_}, {"src", &src_}}) {
    if (tensor->start_partition() % step != 0) {
      refuse("partition-start",
             {.rule = "both tiles of a shuffle start where as many whole quadrants may start",
              .here = fmt::format("nc_stream_shuffle `{}`: {} active partitions from partition {}",
                                  role, active, tensor->start_partition()),
              .limit = fmt::format("a multiple of {}", step)});
    }
  }
  check_mask(quadrant);
}

void NcStreamShuffle::access(AccessList& list) const {
  for (const Tensor& tensor : read_) {
    list.read(tensor);
  }
  for (const Tensor& tensor : written_) {
    list.write(tensor);
  }
}

void NcStreamShuffle::execute(CoreState&) const {
  const auto row = static_cast<std::size_t>(src_.free_bytes());
  std::vector<std::byte> rows(static_cast<std::size_t>(src_.partitions()) * row);
  for (std::int64_t p = 0; p < src_.partitions(); ++p) {
    read_row_bits(src_, p, rows.data() + static_cast<std::size_t>(p) * row);
  }
  for (const Move& move : moves_) {
    write_row_bits(dst_, move.to, rows.data() + static_cast<std::size_t>(move.from) * row);
  }
}

Cost NcStreamShuffle::cost(const Machine& machine) const {
  return stream_cost(machine, EngineKind::kVector, machine.core.vector.shuffle, src_.free_size(),
                     {&dst_, &src_});
}

}  // namespace trena
