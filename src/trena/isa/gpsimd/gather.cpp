#include "trena/isa/gpsimd/gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "trena/isa/core_state.h"
#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"

namespace trena {
namespace {

constexpr std::int64_t kMostElementsPerIndex = 32;  // powers of two up to it (hw.md §2.3)
constexpr std::int64_t kMostIndices = 4096;         // per core
constexpr double kWordBytes = 4.0;                  // one lane moves a 32-bit word per cycle

void require_sbuf_tile(const Machine& machine, std::string_view instruction, std::string_view role,
                       const Tensor& tensor) {
  require_tile(machine, instruction, role, tensor);
  require_space(instruction, role, tensor, {Space::kSbuf});
}

[[noreturn]] void throw_index(std::string_view instruction, std::int64_t partition,
                              std::int64_t index, const Tensor& data, std::int64_t last) {
  throw Error(
      ErrorKind::kBounds, "out-of-bounds",
      {.rule = fmt::format("{} takes elements of the row it reads", instruction),
       .here = fmt::format("partition {}: index {} into {}", partition, index, data.describe()),
       .limit = fmt::format("0 to {}", last),
       .device = "undefined: no check is made"});
}

// The rows of a tensor as raw bytes, taken before any row is written: dst may overlap.
std::vector<std::byte> packed(const Tensor& tensor) {
  const auto row = static_cast<std::size_t>(tensor.free_bytes());
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.partitions()) * row);
  for (std::int64_t p = 0; p < tensor.partitions(); ++p) {
    read_row_bits(tensor, p, bytes.data() + static_cast<std::size_t>(p) * row);
  }
  return bytes;
}

// Row-major values of an index tensor.
template <typename T>
std::vector<T> index_values(const Tensor& tensor) {
  const std::vector<std::byte> bytes = packed(tensor);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

class LocalGatherInstruction final : public InstructionOf<LocalGather> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "local_gather"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_sbuf_tile(machine, name(), "dst", args_.dst);
    require_sbuf_tile(machine, name(), "src_buffer", args_.src);
    require_sbuf_tile(machine, name(), "index", args_.index);
    require_same_dtype(name(), "dst", args_.dst, "src_buffer", args_.src);
    require_dtype(name(), "index", args_.index, {DType::kUint16});
    require_same_partitions(name(), "src_buffer", args_.src, "index", args_.index);
    require_same_partitions(name(), "dst", args_.dst, "src_buffer", args_.src);
    check_sizes(machine);
  }

  void access(AccessList& list) const override {
    list.read(args_.src);
    list.read(args_.index);
    list.write(args_.dst);
  }

  void execute(CoreState& core) const override {
    const std::int64_t group = core.machine().core.gpsimd.partitions_per_core;
    const std::int64_t columns = args_.index.free_size();
    const std::int64_t count = indices(group);
    const std::int64_t last = args_.src.free_size() - args_.elements_per_index;
    const auto index = index_values<std::uint16_t>(args_.index);
    const std::vector<std::byte> source = packed(args_.src);
    const auto width = static_cast<std::size_t>(size_bytes(args_.src.dtype()));
    const std::size_t run = width * static_cast<std::size_t>(args_.elements_per_index);
    std::vector<std::byte> out(static_cast<std::size_t>(args_.dst.free_bytes()));
    for (std::int64_t p = 0; p < args_.dst.partitions(); ++p) {
      const std::int64_t first = p / group * group;
      const std::byte* row = source.data() + p * args_.src.free_bytes();
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t at =
            index[static_cast<std::size_t>((first + i % group) * columns + i / group)];
        if (at > last) {
          throw_index(name(), p, at, args_.src, last);
        }
        std::memcpy(out.data() + static_cast<std::size_t>(i) * run,
                    row + static_cast<std::size_t>(at) * width, run);
      }
      write_row_bits(args_.dst, p, out.data());
    }
  }

  // 150 + n e C cycles with C = ((28 + 4 e) / (4 e)) / min(4 / bytes, e), as the old documents
  // print it (hw.md §2.3): so many cycles per index and one per element, several elements of a word
  // at once.
  Cost cost(const Machine& machine) const override {
    const GpsimdEngine& gpsimd = machine.core.gpsimd;
    const auto wide = static_cast<double>(args_.elements_per_index);
    const double together =
        std::min(kWordBytes / static_cast<double>(size_bytes(args_.src.dtype())), wide);
    const double steps = static_cast<double>(indices(gpsimd.partitions_per_core)) *
                         (gpsimd.gather_index_cycles + wide) / together;
    return stream_cost(machine, EngineKind::kGpsimd, gpsimd.gather, std::llround(steps), {});
  }

 private:
  void check_sizes(const Machine& machine) const {
    const std::int64_t group = machine.core.gpsimd.partitions_per_core;
    const auto complain = [](std::string rule, std::string here, std::string limit) {
      refuse("gather-size",
             {.rule = std::move(rule), .here = std::move(here), .limit = std::move(limit)});
    };
    if (args_.src.partitions() % group != 0) {
      complain("each GpSimd core gathers from all partitions it sees",
               fmt::format("local_gather of {}", args_.src.describe()),
               fmt::format("a multiple of {} partitions", group));
    }
    const std::int64_t wide = args_.elements_per_index;
    if (wide < 1 || wide > kMostElementsPerIndex || (wide & (wide - 1)) != 0) {
      complain("local_gather takes a power of two of elements per index",
               fmt::format("num_elem_per_idx={}", wide), "1, 2, 4, 8, 16 or 32");
    }
    const std::int64_t held = args_.index.free_size() * group;
    const std::int64_t used = indices(group);
    if (used < 1 || used > held || used > kMostIndices) {
      complain("local_gather uses some of the indices that a core's partitions hold",
               fmt::format("{} of {} indices per core", used, held),
               fmt::format("1 to {}", std::min(held, kMostIndices)));
    }
    if (args_.dst.free_size() != used * wide) {
      complain(
          "every partition of `dst` takes num_elem_per_idx elements for each index of its core",
          fmt::format("`dst` is {}, {} indices of {} elements", args_.dst.describe(), used, wide),
          fmt::format("{} elements per partition", used * wide));
    }
  }

  // used by each core
  std::int64_t indices(std::int64_t group_partitions) const {
    return args_.valid_indices.value_or(args_.index.free_size() * group_partitions);
  }
};

class NcNGatherInstruction final : public InstructionOf<NcNGather> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "nc_n_gather"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_sbuf_tile(machine, name(), "dst", args_.dst);
    require_sbuf_tile(machine, name(), "data", args_.data);
    require_sbuf_tile(machine, name(), "indices", args_.indices);
    require_same_dtype(name(), "dst", args_.dst, "data", args_.data);
    require_dtype(name(), "indices", args_.indices, {DType::kUint32});
    require_same_partitions(name(), "dst", args_.dst, "data", args_.data);
    require_same_partitions(name(), "indices", args_.indices, "data", args_.data);
    require_same_elements(name(), "dst", args_.dst, "indices", args_.indices);
  }

  void access(AccessList& list) const override {
    list.read(args_.data);
    list.read(args_.indices);
    list.write(args_.dst);
  }

  void execute(CoreState&) const override {
    const std::int64_t count = args_.dst.free_size();
    const std::int64_t last = args_.data.free_size() - 1;
    const auto width = static_cast<std::size_t>(size_bytes(args_.data.dtype()));
    const auto index = index_values<std::uint32_t>(args_.indices);
    const std::vector<std::byte> source = packed(args_.data);
    std::vector<std::byte> out(static_cast<std::size_t>(args_.dst.free_bytes()));
    for (std::int64_t p = 0; p < args_.dst.partitions(); ++p) {
      const std::byte* row = source.data() + p * args_.data.free_bytes();
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t at = index[static_cast<std::size_t>(p * count + i)];
        if (at > last) {
          throw_index(name(), p, at, args_.data, last);
        }
        std::memcpy(out.data() + static_cast<std::size_t>(i) * width,
                    row + static_cast<std::size_t>(at) * width, width);
      }
      write_row_bits(args_.dst, p, out.data());
    }
  }

  // So many groups of instructions as the documents say; what one costs is not published: its start
  // is charged once per group, one cycle for each element (estimate).
  Cost cost(const Machine& machine) const override {
    const GpsimdEngine& gpsimd = machine.core.gpsimd;
    const std::int64_t groups =
        (args_.dst.free_size() + gpsimd.gather_group_elements - 1) / gpsimd.gather_group_elements;
    const double restarts = static_cast<double>(groups - 1) * gpsimd.gather.offset_cycles;
    Cost cost = stream_cost(machine, EngineKind::kGpsimd, gpsimd.gather, args_.dst.free_size(), {},
                            restarts);
    cost.interval += machine.ticks(EngineKind::kGpsimd, restarts);
    cost.evidence = Evidence::kEstimate;
    return cost;
  }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(LocalGather args) {
  return std::make_unique<LocalGatherInstruction>(std::move(args));
}

std::unique_ptr<Instruction> make_instruction(NcNGather args) {
  return std::make_unique<NcNGatherInstruction>(std::move(args));
}

}  // namespace trena
