#include "trena/isa/vector/top8.h"

#include <fmt/format.h>

#include <limits>

#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"

namespace trena {
namespace {

constexpr std::size_t kEight = 8;
constexpr std::int64_t kMostElements = 16384;  // hw.md §2.3
constexpr int kMostDimensions = 3;
constexpr std::uint32_t kNotFound = 0xFFFFFFFF;

void require_searchable(const Machine& machine, std::string_view instruction, std::string_view role,
                        const Tensor& data) {
  require_tile(machine, instruction, role, data);
  const std::int64_t elements = data.free_size();
  if (elements < static_cast<std::int64_t>(kEight) || elements > kMostElements ||
      data.rank() > kMostDimensions) {
    refuse("top8-size", {.rule = "the instructions of the top eight search rows of a certain size",
                         .here = fmt::format("{} `{}` is {}", instruction, role, data.describe()),
                         .limit = fmt::format("{} to {} elements per partition, {} dimensions",
                                              kEight, kMostElements, kMostDimensions)});
  }
}

void require_eight(const Machine& machine, std::string_view instruction, std::string_view role,
                   const Tensor& tensor, const Tensor& data) {
  require_tile(machine, instruction, role, tensor);
  require_same_partitions(instruction, role, tensor, "data", data);
  if (tensor.free_size() != static_cast<std::int64_t>(kEight)) {
    refuse("top8-size", {.rule = "eight values per partition",
                         .here = fmt::format("{} `{}` is {}", instruction, role, tensor.describe()),
                         .limit = fmt::format("shape [{}, {}]", data.partitions(), kEight)});
  }
}

// The `order`-th search for a value starts behind the position where an equal one was found before.
std::uint32_t find_next(const float* row, std::size_t count, const float* values,
                        const std::uint32_t* found, std::size_t which, int direction) {
  std::size_t from = 0;
  const int last = direction > 0 ? -1 : static_cast<int>(kEight);
  for (int i = static_cast<int>(which) - direction; i != last; i -= direction) {
    if (values[i] == values[which]) {
      if (found[i] == kNotFound) {
        return kNotFound;
      }
      from = found[i] + 1;
      break;
    }
  }
  for (std::size_t i = from; i < count; ++i) {
    if (row[i] == values[which]) {
      return static_cast<std::uint32_t>(i);
    }
  }
  return kNotFound;
}

}  // namespace

EngineKind Max8::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

void Max8::check(const Machine& machine) const {
  engine(machine);
  require_searchable(machine, name(), "src", src_);
  require_eight(machine, name(), "dst", dst_, src_);
}

void Max8::access(AccessList& list) const {
  list.read(src_);
  list.write(dst_);
}

void Max8::execute(CoreState&) const {
  const TileRows out(dst_), in(src_);
  const std::size_t row = in.row_elements();
  for_each_block(dst_.partitions(), row, 2.0, [&](const Block& block) {
    const float* x = in.read(block, 0);
    auto* z = scratch<float>(2, out.elements(block));
    std::fill_n(z, out.elements(block), -std::numeric_limits<float>::infinity());
    for (std::int64_t p = 0; p < block.partitions; ++p) {
      const float* values = x + static_cast<std::size_t>(p) * row;
      float* top = z + static_cast<std::size_t>(p) * kEight;
      for (std::size_t i = 0; i < row; ++i) {
        const float value = values[i];
        if (!(value > top[kEight - 1])) {
          continue;
        }
        std::size_t at = kEight - 1;
        for (; at > 0 && value > top[at - 1]; --at) {
          top[at] = top[at - 1];
        }
        top[at] = value;
      }
    }
    out.write(block, z);
  });
}

Cost Max8::cost(const Machine& machine) const {
  return stream_cost(machine, EngineKind::kVector, machine.core.vector.max8, src_.free_size(),
                     {&src_});
}

EngineKind NcFindIndex8::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

void NcFindIndex8::check(const Machine& machine) const {
  engine(machine);
  require_searchable(machine, name(), "data", data_);
  require_eight(machine, name(), "vals", values_, data_);
  require_eight(machine, name(), "dst", dst_, data_);
  require_dtype(name(), "dst", dst_, {DType::kUint16, DType::kUint32});
}

void NcFindIndex8::access(AccessList& list) const {
  list.read(data_);
  list.read(values_);
  list.write(dst_);
}

void NcFindIndex8::execute(CoreState&) const {
  const TileRows out(dst_), in(data_), wanted(values_);
  const std::size_t row = in.row_elements();
  for_each_block(dst_.partitions(), row, 4.0, [&](const Block& block) {
    const float* x = in.read(block, 0);
    const float* values = wanted.read(block, 1);
    auto* found = scratch<std::uint32_t>(2, out.elements(block));
    for (std::size_t p = 0; p < static_cast<std::size_t>(block.partitions); ++p) {
      for (std::size_t i = 0; i < kEight; ++i) {
        found[p * kEight + i] =
            find_next(x + p * row, row, values + p * kEight, found + p * kEight, i, 1);
      }
    }
    out.write_bits(block, found);
  });
}

Cost NcFindIndex8::cost(const Machine& machine) const {
  return stream_cost(machine, EngineKind::kVector, machine.core.vector.find_index8,
                     data_.free_size(), {&data_});
}

EngineKind NcMatchReplace8::engine(const Machine& machine) const {
  return resolve_engine(machine, name(), std::nullopt);
}

void NcMatchReplace8::check(const Machine& machine) const {
  engine(machine);
  require_searchable(machine, name(), "data", data_);
  require_tile(machine, name(), "dst", dst_);
  require_same_partitions(name(), "dst", dst_, "data", data_);
  require_same_elements(name(), "dst", dst_, "data", data_);
  require_eight(machine, name(), "vals", values_, data_);
  if (dst_index_) {
    require_eight(machine, name(), "dst_idx", *dst_index_, data_);
    require_dtype(name(), "dst_idx", *dst_index_, {DType::kUint16, DType::kUint32});
  }
}

void NcMatchReplace8::access(AccessList& list) const {
  list.read(data_);
  list.read(values_);
  list.write(dst_);
  if (dst_index_) {
    list.write(*dst_index_);
  }
}

void NcMatchReplace8::execute(CoreState&) const {
  const TileRows out(dst_), in(data_), wanted(values_), index(dst_index_ ? *dst_index_ : values_);
  const std::size_t row = in.row_elements();
  for_each_block(dst_.partitions(), row, 4.0, [&](const Block& block) {
    const std::size_t count = out.elements(block);
    const float* x = in.read(block, 0);
    const float* values = wanted.read(block, 1);
    auto* z = scratch<float>(2, count);
    auto* found = scratch<std::uint32_t>(3, static_cast<std::size_t>(block.partitions) * kEight);
    std::copy_n(x, count, z);
    for (std::size_t p = 0; p < static_cast<std::size_t>(block.partitions); ++p) {
      for (std::size_t i = kEight; i-- > 0;) {
        std::uint32_t& at = found[p * kEight + i];
        at = find_next(x + p * row, row, values + p * kEight, found + p * kEight, i, -1);
        if (at != kNotFound) {
          z[p * row + at] = replacement_;
        }
      }
    }
    out.write(block, z);
    if (dst_index_) {
      index.write_bits(block, found);
    }
  });
}

Cost NcMatchReplace8::cost(const Machine& machine) const {
  return stream_cost(machine, EngineKind::kVector, machine.core.vector.max8, data_.free_size(),
                     {&data_, &dst_});
}

}  // namespace trena
