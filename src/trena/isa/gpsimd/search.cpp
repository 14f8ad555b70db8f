#include "trena/isa/gpsimd/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "trena/isa/row_kernel.h"
#include "trena/isa/stream.h"

namespace trena {
namespace {

constexpr std::int64_t kCorePartitions = 16;  // one GpSimd core sees them, all generations
constexpr std::int64_t kTopkLeast = 8;        // elements of a list; and less than (hw.md §2.3)
constexpr std::int64_t kTopkLimit = 65536;
constexpr std::int64_t kTopkMost = 32767;  // results
constexpr std::int64_t kTopkPasses = 4;    // 4 n + k cycles

void require_sbuf_tile(const Machine& machine, std::string_view instruction, std::string_view role,
                       const Tensor& tensor) {
  require_tile(machine, instruction, role, tensor);
  require_space(instruction, role, tensor, {Space::kSbuf});
}

// One integer or float row, exact up to 2^53.
std::vector<double> row_values(const Tensor& tensor, std::int64_t partition) {
  const auto count = static_cast<std::size_t>(tensor.free_size());
  std::vector<double> values(count);
  std::vector<std::byte> bits(static_cast<std::size_t>(tensor.free_bytes()));
  read_row_bits(tensor, partition, bits.data());
  for (std::size_t i = 0; i < count; ++i) {
    std::int32_t integer;
    float number;
    std::memcpy(&integer, bits.data() + i * sizeof integer, sizeof integer);
    std::memcpy(&number, &integer, sizeof number);
    values[i] = tensor.dtype() == DType::kInt32 ? integer : static_cast<double>(number);
  }
  return values;
}

void write_integers(const Tensor& tensor, std::int64_t partition,
                    const std::vector<std::int32_t>& values) {
  std::vector<std::byte> bits(values.size() * sizeof(std::int32_t));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::int32_t word = values[i];
    if (tensor.dtype() == DType::kFloat32) {
      const auto number = static_cast<float>(values[i]);
      std::memcpy(&word, &number, sizeof word);
    }
    std::memcpy(bits.data() + i * sizeof word, &word, sizeof word);
  }
  write_row_bits(tensor, partition, bits.data());
}

Tensor every_core(const Tensor& tensor) {
  if (tensor.rank() == 0) {
    return tensor;  // check() complains
  }
  std::vector<Dim> dims;
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    dims.push_back(tensor.dim(axis));
  }
  dims[0].size = (dims[0].size + kCorePartitions - 1) / kCorePartitions;
  dims[0].stride_bytes *= kCorePartitions;
  return tensor.with(tensor.dtype(), tensor.offset_bytes(), dims);
}

Tensor one_row(const Tensor& tensor, std::int64_t partition) {
  std::vector<Dim> dims;
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    dims.push_back(tensor.dim(axis));
  }
  dims[0].size = 1;
  return tensor.with(tensor.dtype(), tensor.offset_bytes() + partition * tensor.dim(0).stride_bytes,
                     dims);
}

// float32 order as integers: NaN above everything, -0 below +0.
std::int64_t sort_key(std::uint16_t bfloat16) {
  const bool nan = (bfloat16 & 0x7FFF) > 0x7F80;
  const std::int64_t magnitude = bfloat16 & 0x7FFF;
  return nan ? 0x8000 : (bfloat16 & 0x8000) != 0 ? -magnitude - 1 : magnitude;
}

class SequenceBoundsInstruction final : public InstructionOf<SequenceBounds> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "sequence_bounds"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_sbuf_tile(machine, name(), "dst", args_.dst);
    require_sbuf_tile(machine, name(), "segment_ids", args_.segment_ids);
    require_dtype(name(), "dst", args_.dst, {DType::kFloat32, DType::kInt32});
    require_dtype(name(), "segment_ids", args_.segment_ids, {DType::kFloat32, DType::kInt32});
    const bool fits = args_.segment_ids.partitions() == 1 && args_.dst.partitions() == 1 &&
                      args_.dst.free_size() == 2 * args_.segment_ids.free_size();
    if (!fits) {
      refuse("search-shape",
             {.rule = "sequence_bounds reads one row of ids and writes two indices for each",
              .here = fmt::format("`segment_ids` is {}, `dst` is {}", args_.segment_ids.describe(),
                                  args_.dst.describe()),
              .limit = "shapes [1, n] and [1, 2, n]"});
    }
  }

  void access(AccessList& list) const override {
    list.read(args_.segment_ids);
    list.write(args_.dst);
  }

  void execute(CoreState&) const override {
    const std::vector<double> ids = row_values(args_.segment_ids, 0);
    const auto count = static_cast<std::int32_t>(ids.size());
    std::vector<std::int32_t> bounds(2 * ids.size());
    for (std::int32_t first = 0; first < count;) {
      std::int32_t end = first;
      while (end < count &&
             ids[static_cast<std::size_t>(end)] == ids[static_cast<std::size_t>(first)]) {
        ++end;
      }
      end = std::max(end, first + 1);  // a NaN differs from itself
      const bool padding = ids[static_cast<std::size_t>(first)] == 0.0;
      std::fill(bounds.begin() + first, bounds.begin() + end, padding ? count : first);
      std::fill(bounds.begin() + count + first, bounds.begin() + count + end, padding ? -1 : end);
      first = end;
    }
    write_integers(args_.dst, 0, bounds);
  }

  Cost cost(const Machine& machine) const override {
    return stream_cost(machine, EngineKind::kGpsimd, machine.core.gpsimd.search,
                       args_.segment_ids.free_size(), {});
  }
};

class NonzeroWithCountInstruction final : public InstructionOf<NonzeroWithCount> {
 public:
  explicit NonzeroWithCountInstruction(NonzeroWithCount args)
      : InstructionOf(std::move(args)),
        rows_out_(every_core(args_.dst)),
        rows_in_(every_core(args_.src)) {}

  std::string_view name() const override { return "nonzero_with_count"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_sbuf_tile(machine, name(), "dst", args_.dst);
    require_sbuf_tile(machine, name(), "src", args_.src);
    require_dtype(name(), "src", args_.src, {DType::kFloat32, DType::kInt32});
    require_dtype(name(), "dst", args_.dst, {DType::kInt32});
    require_same_partitions(name(), "dst", args_.dst, "src", args_.src);
    if (args_.dst.free_size() != args_.src.free_size() + 1) {
      refuse("search-shape",
             {.rule = "nonzero_with_count writes an index for each element, and the count",
              .here = fmt::format("`src` is {}, `dst` is {}", args_.src.describe(),
                                  args_.dst.describe()),
              .limit = fmt::format("{} elements per partition of dst", args_.src.free_size() + 1)});
    }
    for (const auto& [role, value] :
         {std::pair{"index_offset", args_.index_offset}, {"padding_val", args_.padding}}) {
      if (value < std::numeric_limits<std::int32_t>::min() ||
          value > std::numeric_limits<std::int32_t>::max()) {
        refuse("search-shape", {.rule = fmt::format("`{}` is an int32", role),
                                .here = fmt::format("{}={}", role, value),
                                .limit = "-2^31 to 2^31 - 1"});
      }
    }
  }

  void access(AccessList& list) const override {
    // A core whose row nobody wrote finds something in it, and nobody reads what (nki-library fills
    // one row of eight): its result counts as unwritten.
    list.add(rows_in_, AccessKind::kReadCarry);
    list.add(rows_out_, AccessKind::kWriteSome);
  }

  void execute(CoreState&) const override {
    for (std::int64_t p = 0; p < rows_in_.partitions(); ++p) {
      const Tensor out = one_row(rows_out_, p);
      if (!is_written(one_row(rows_in_, p))) {
        WrittenBits& written = out.buffer()->storage->written();
        for_each_run(
            out, [&](std::size_t offset, std::size_t length) { written.clear(offset, length); });
        continue;
      }
      mark_written(out);
      const std::vector<double> values = row_values(rows_in_, p);
      std::vector<std::int32_t> found;
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] != 0.0) {
          found.push_back(static_cast<std::int32_t>(
              static_cast<std::uint32_t>(i) + static_cast<std::uint32_t>(args_.index_offset)));
        }
      }
      const auto count = static_cast<std::int32_t>(found.size());
      found.resize(values.size(), static_cast<std::int32_t>(args_.padding));
      found.push_back(count);
      write_integers(rows_out_, p, found);
    }
  }

  Cost cost(const Machine& machine) const override {
    return stream_cost(machine, EngineKind::kGpsimd, machine.core.gpsimd.search,
                       args_.src.free_size(), {});
  }

 private:
  Tensor rows_out_;  // the first partition of each GpSimd core
  Tensor rows_in_;
};

class TopKInstruction final : public InstructionOf<TopK> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "topk"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_sbuf_tile(machine, name(), "val_dst", args_.values);
    require_sbuf_tile(machine, name(), "idx_dst", args_.indices);
    require_sbuf_tile(machine, name(), "src", args_.src);
    require_dtype(name(), "src", args_.src, {DType::kBfloat16});
    require_dtype(name(), "val_dst", args_.values, {DType::kBfloat16});
    require_dtype(name(), "idx_dst", args_.indices, {DType::kUint32});
    require_same_partitions(name(), "val_dst", args_.values, "src", args_.src);
    require_same_partitions(name(), "idx_dst", args_.indices, "src", args_.src);
    require_same_elements(name(), "idx_dst", args_.indices, "val_dst", args_.values);
    const std::int64_t results = args_.values.free_size();
    const bool fits = args_.src.partitions() % kCorePartitions == 0 && args_.count >= kTopkLeast &&
                      args_.count < kTopkLimit &&
                      args_.count <= args_.src.free_size() * kCorePartitions &&
                      results <= kTopkMost && results <= args_.count;
    if (!fits) {
      refuse("topk-size",
             {.rule = "topk finds some of the n elements that 16 partitions hold",
              .here = fmt::format("n={}, {} results, `src` is {}", args_.count, results,
                                  args_.src.describe()),
              .limit = fmt::format("n from {} to {} and no more than 16 columns hold, at most n "
                                   "results and {}; a multiple of {} partitions",
                                   kTopkLeast, kTopkLimit - 1, kTopkMost, kCorePartitions)});
    }
  }

  void access(AccessList& list) const override {
    list.read(args_.src);
    list.write(args_.values);
    list.write(args_.indices);
  }

  void execute(CoreState&) const override {
    const auto columns = static_cast<std::size_t>(args_.src.free_size());
    const auto results = static_cast<std::size_t>(args_.values.free_size());
    std::vector<std::uint16_t> group(columns * kCorePartitions);
    std::vector<std::uint16_t> list(static_cast<std::size_t>(args_.count));
    std::vector<std::uint32_t> order(list.size());
    std::vector<std::uint16_t> values(results);
    for (std::int64_t first = 0; first < args_.src.partitions(); first += kCorePartitions) {
      for (std::int64_t p = 0; p < kCorePartitions; ++p) {
        read_row_bits(
            args_.src, first + p,
            reinterpret_cast<std::byte*>(group.data() + static_cast<std::size_t>(p) * columns));
      }
      for (std::size_t i = 0; i < list.size(); ++i) {
        list[i] = group[i % kCorePartitions * columns + i / kCorePartitions];
      }
      std::iota(order.begin(), order.end(), 0u);
      const auto larger = [&](std::uint32_t a, std::uint32_t b) {
        const std::int64_t key_a = sort_key(list[a]);
        const std::int64_t key_b = sort_key(list[b]);
        return key_a != key_b ? key_a > key_b : a < b;
      };
      const auto end = order.begin() + static_cast<std::ptrdiff_t>(results);
      std::partial_sort(order.begin(), end, order.end(), larger);
      std::reverse(order.begin(), end);
      for (std::size_t i = 0; i < results; ++i) {
        values[i] = list[order[i]];
      }
      for (std::int64_t p = first; p < first + kCorePartitions; ++p) {
        write_row_bits(args_.values, p, reinterpret_cast<const std::byte*>(values.data()));
        write_row_bits(args_.indices, p, reinterpret_cast<const std::byte*>(order.data()));
      }
    }
  }

  Cost cost(const Machine& machine) const override {
    return stream_cost(machine, EngineKind::kGpsimd, machine.core.gpsimd.topk,
                       kTopkPasses * args_.count + args_.values.free_size(), {});
  }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(SequenceBounds args) {
  return std::make_unique<SequenceBoundsInstruction>(std::move(args));
}

std::unique_ptr<Instruction> make_instruction(NonzeroWithCount args) {
  return std::make_unique<NonzeroWithCountInstruction>(std::move(args));
}

std::unique_ptr<Instruction> make_instruction(TopK args) {
  return std::make_unique<TopKInstruction>(std::move(args));
}

}  // namespace trena
