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

void require_eight_indices(const Machine& machine, std::string_view instruction,
                           std::string_view role, const Tensor& tensor, const Tensor& data) {
  require_eight(machine, instruction, role, tensor, data);
  require_dtype(instruction, role, tensor, {DType::kUint16, DType::kUint32});
}

// A search for a value starts behind the position where an equal one was found before.
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

class Max8Instruction final : public InstructionOf<Max8> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "max8"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_searchable(machine, name(), "src", args_.src);
    require_eight(machine, name(), "dst", args_.dst, args_.src);
  }

  void access(AccessList& list) const override {
    list.read(args_.src);
    list.write(args_.dst);
  }

  void execute(CoreState&) const override {
    const TileRows out(args_.dst), in(args_.src);
    const std::size_t row = in.row_elements();
    for_each_row(args_.dst.partitions(), out, in, 2.0, [&](const float* values, float* top) {
      std::fill_n(top, kEight, -std::numeric_limits<float>::infinity());
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
    });
  }

  Cost cost(const Machine& machine) const override {
    return stream_cost(machine, EngineKind::kVector, machine.core.vector.max8,
                       args_.src.free_size(), {&args_.src});
  }
};

class NcFindIndex8Instruction final : public InstructionOf<NcFindIndex8> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "nc_find_index8"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_searchable(machine, name(), "data", args_.data);
    require_eight(machine, name(), "vals", args_.values, args_.data);
    require_eight_indices(machine, name(), "dst", args_.dst, args_.data);
  }

  void access(AccessList& list) const override {
    list.read(args_.data);
    list.read(args_.values);
    list.write(args_.dst);
  }

  void execute(CoreState&) const override {
    const TileRows out(args_.dst), in(args_.data), wanted(args_.values);
    const std::size_t row = in.row_elements();
    for_each_block(args_.dst.partitions(), row, 4.0, [&](const Block& block) {
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

  Cost cost(const Machine& machine) const override {
    return stream_cost(machine, EngineKind::kVector, machine.core.vector.find_index8,
                       args_.data.free_size(), {&args_.data});
  }
};

class NcMatchReplace8Instruction final : public InstructionOf<NcMatchReplace8> {
 public:
  using InstructionOf::InstructionOf;

  std::string_view name() const override { return "nc_match_replace8"; }

  EngineKind engine(const Machine& machine) const override {
    return resolve_engine(machine, name(), std::nullopt);
  }

  void check(const Machine& machine) const override {
    engine(machine);
    require_searchable(machine, name(), "data", args_.data);
    require_tile(machine, name(), "dst", args_.dst);
    require_same_partitions(name(), "dst", args_.dst, "data", args_.data);
    require_same_elements(name(), "dst", args_.dst, "data", args_.data);
    require_eight(machine, name(), "vals", args_.values, args_.data);
    if (args_.dst_index) {
      require_eight_indices(machine, name(), "dst_idx", *args_.dst_index, args_.data);
    }
  }

  void access(AccessList& list) const override {
    list.read(args_.data);
    list.read(args_.values);
    list.write(args_.dst);
    if (args_.dst_index) {
      list.write(*args_.dst_index);
    }
  }

  void execute(CoreState&) const override {
    const TileRows out(args_.dst), in(args_.data), wanted(args_.values),
        index(args_.dst_index ? *args_.dst_index : args_.values);
    const std::size_t row = in.row_elements();
    for_each_block(args_.dst.partitions(), row, 4.0, [&](const Block& block) {
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
            z[p * row + at] = args_.replacement;
          }
        }
      }
      out.write(block, z);
      if (args_.dst_index) {
        index.write_bits(block, found);
      }
    });
  }

  Cost cost(const Machine& machine) const override {
    return stream_cost(machine, EngineKind::kVector, machine.core.vector.max8,
                       args_.data.free_size(), {&args_.data, &args_.dst});
  }
};

}  // namespace

std::unique_ptr<Instruction> make_instruction(Max8 args) {
  return std::make_unique<Max8Instruction>(std::move(args));
}

std::unique_ptr<Instruction> make_instruction(NcFindIndex8 args) {
  return std::make_unique<NcFindIndex8Instruction>(std::move(args));
}

std::unique_ptr<Instruction> make_instruction(NcMatchReplace8 args) {
  return std::make_unique<NcMatchReplace8Instruction>(std::move(args));
}

}  // namespace trena
