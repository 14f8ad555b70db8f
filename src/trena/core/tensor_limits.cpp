#include "trena/core/tensor_limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace trena {

void check_shape(Space space, std::span<const std::int64_t> shape) {
  const std::size_t least = space == Space::kHbm ? 0 : 1;
  bool positive = true;
  for (const std::int64_t size : shape) {
    positive = positive && size > 0;
  }
  if (positive && shape.size() >= least && shape.size() <= Tensor::kMaxRank) {
    return;
  }
  throw Error(ErrorKind::kUsage, "tensor-shape",
              {.rule = fmt::format("a tensor in {} has {} to {} dimensions of at least one element",
                                   name(space), least, Tensor::kMaxRank),
               .here = fmt::format("shape [{}]", fmt::join(shape, ", "))});
}

void check_size(const Machine& machine, Space space, DType dtype,
                std::span<const std::int64_t> shape) {
  double bytes = static_cast<double>(size_bytes(dtype));
  for (const std::int64_t size : shape) {
    bytes *= static_cast<double>(size);
  }
  if (bytes <= machine.hbm_gib() * 0x1p30) {
    return;
  }
  const bool hbm = space == Space::kHbm;
  throw Error(ErrorKind::kCapacity, fmt::format("{}-capacity", name(space)),
              {.rule = fmt::format("a tensor fits into {}", name(space)),
               .here = fmt::format("shape [{}] {}", fmt::join(shape, ", "), trena::name(dtype)),
               .limit = hbm ? fmt::format("{} GiB on {}", machine.hbm_gib(), machine.chip.name)
                            : "less than all of HBM"});
}

void check_capacity(const Machine& machine, const Buffer& buffer, const std::string& what) {
  const bool psum = buffer.space == Space::kPsum;
  const std::int64_t partition_limit =
      psum ? machine.core.psum.partitions : machine.core.sbuf.partitions;
  if (buffer.rows > partition_limit) {
    throw Error(ErrorKind::kCapacity, "partition-limit",
                {.rule = fmt::format("the first dimension of a tensor in {} is its partitions",
                                     name(buffer.space)),
                 .here = fmt::format("{} asks for {} partitions", what, buffer.rows),
                 .limit = fmt::format("{} partitions", partition_limit),
                 .fix = "split the first dimension into tiles of at most nl.tile_size.pmax"});
  }
  const std::int64_t offset = buffer.address ? buffer.address->offset_bytes : 0;
  const std::int64_t limit =
      psum ? machine.core.psum.partition_bytes() : machine.core.sbuf.usable_bytes();
  if (offset < 0 || offset + buffer.row_bytes > limit) {
    throw Error(
        ErrorKind::kCapacity, psum ? "psum-capacity" : "sbuf-capacity",
        {.rule = fmt::format("a tensor in {} stays inside its partitions", name(buffer.space)),
         .here = fmt::format("{} needs {} bytes per partition from byte {}", what, buffer.row_bytes,
                             offset),
         .limit = fmt::format("{} usable bytes per partition on {}", limit, machine.chip.name),
         .fix = "use a smaller tile"});
  }
  if (buffer.address) {
    const int first = buffer.address->partition;
    if (first < 0 || first + buffer.rows > partition_limit) {
      throw Error(ErrorKind::kCapacity, "address-partition",
                  {.rule = "a tensor with an address stays inside the memory",
                   .here = fmt::format("partitions {} to {}", first, first + buffer.rows - 1),
                   .limit = fmt::format("partitions 0 to {}", partition_limit - 1)});
    }
    if (psum && offset % machine.core.psum.bank_bytes != 0) {
      throw Error(ErrorKind::kIllegal, "psum-bank-start",
                  {.rule = "a PSUM tensor starts at the start of a bank",
                   .here = fmt::format("address offset {} bytes", offset),
                   .limit = fmt::format("multiples of {} bytes", machine.core.psum.bank_bytes)});
    }
  }
}

}  // namespace trena
