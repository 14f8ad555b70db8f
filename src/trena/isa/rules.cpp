#include "trena/isa/rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "trena/number/convert.h"

namespace trena {

void refuse(std::string_view id, ErrorText text) {
  throw Error(ErrorKind::kIllegal, id, std::move(text));
}

EngineKind resolve_engine(const Machine& machine, std::string_view instruction,
                          EngineRequest request) {
  const std::vector<EngineKind>& able = machine.legality.engines_for(instruction);
  if (able.empty()) {
    refuse("not-on-this-machine",
           {.rule = fmt::format("{} does not exist on every generation", instruction),
            .here = fmt::format("target {} ({})", machine.chip.name, machine.chip.core)});
  }
  if (!request) {
    return able.front();
  }
  if (std::find(able.begin(), able.end(), *request) == able.end()) {
    std::vector<std::string_view> names;
    for (const EngineKind engine : able) {
      names.push_back(name(engine));
    }
    refuse("engine-refused",
           {.rule = fmt::format("{} runs only on the engines that have it", instruction),
            .here = fmt::format("engine {}", name(*request)),
            .limit = fmt::format("{} on {}", fmt::join(names, ", "), machine.chip.name),
            .fix = "leave `engine` out, or name one of these"});
  }
  return *request;
}

void require_space(std::string_view instruction, std::string_view role, const Tensor& tensor,
                   std::initializer_list<Space> allowed) {
  if (std::find(allowed.begin(), allowed.end(), tensor.space()) != allowed.end()) {
    return;
  }
  std::vector<std::string_view> names;
  for (const Space space : allowed) {
    names.push_back(name(space));
  }
  refuse(
      "memory-refused",
      {.rule = fmt::format("{} takes `{}` from the memories its engine reaches", instruction, role),
       .here = fmt::format("`{}` is {}", role, tensor.describe()),
       .limit = fmt::format("{}", fmt::join(names, " or ")),
       .fix = "copy the tensor there first (dma_copy, tensor_copy)"});
}

void require_engine_reaches(const Machine& machine, std::string_view instruction, EngineKind engine,
                            std::initializer_list<const Tensor*> tensors) {
  if (engine != EngineKind::kGpsimd || machine.legality.gpsimd_psum) {
    return;
  }
  for (const Tensor* tensor : tensors) {
    if (tensor->space() == Space::kPsum) {
      refuse("memory-refused",
             {.rule = "GpSimd reaches SBUF only",
              .here = fmt::format("{} on gpsimd with {}", instruction, tensor->describe()),
              .limit = "sbuf",
              .fix = "run it on vector or scalar, or copy the tensor to SBUF first"});
    }
  }
}

void require_partition_start(const Machine& machine, std::string_view instruction,
                             std::string_view role, const Tensor& tensor) {
  if (tensor.space() == Space::kHbm) {
    return;
  }
  const std::int64_t quadrant = machine.core.sbuf.quadrant_partitions;
  const std::int64_t used = tensor.partitions();
  const std::int64_t start = tensor.start_partition();
  const std::int64_t step = used > 2 * quadrant ? 4 * quadrant
                            : used > quadrant   ? 2 * quadrant
                                                : quadrant;
  if (start % step == 0) {
    return;
  }
  refuse("partition-start",
         {.rule = "an access of 65–128 partitions starts at partition 0, of 33–64 at 0 or 64, of "
                  "1–32 at 0, 32, 64 or 96",
          .here = fmt::format("{} `{}`: {} partitions from partition {}", instruction, role, used,
                              start),
          .limit = fmt::format("a multiple of {}", step),
          .fix = "move the tile to a legal start partition, or use fewer partitions"});
}

void require_same_partitions(std::string_view instruction, std::string_view role_a, const Tensor& a,
                             std::string_view role_b, const Tensor& b) {
  if (a.partitions() == b.partitions()) {
    return;
  }
  refuse(
      "partition-mismatch",
      {.rule = fmt::format("{} uses the same number of partitions of each operand", instruction),
       .here =
           fmt::format("`{}` has {}, `{}` has {}", role_a, a.partitions(), role_b, b.partitions()),
       .fix = "no engine broadcasts across partitions; copy the row, or slice the other operand"});
}

void require_same_elements(std::string_view instruction, std::string_view role_a, const Tensor& a,
                           std::string_view role_b, const Tensor& b) {
  if (a.free_size() == b.free_size()) {
    return;
  }
  refuse("element-mismatch",
         {.rule = fmt::format("{} streams as many elements per partition through each operand",
                              instruction),
          .here = fmt::format("`{}` is {} ({} elements), `{}` is {} ({} elements)", role_a,
                              a.describe(), a.free_size(), role_b, b.describe(), b.free_size()),
          .fix = "slice one of them, or broadcast a free dimension with .broadcast()"});
}

void require_same_tile(const Machine& machine, std::string_view instruction,
                       std::string_view role_a, const Tensor& a, std::string_view role_b,
                       const Tensor& b) {
  require_same_partitions(instruction, role_a, a, role_b, b);
  require_same_elements(instruction, role_a, a, role_b, b);
  require_partition_start(machine, instruction, role_a, a);
  require_partition_start(machine, instruction, role_b, b);
}

void require_not_both_psum(std::string_view instruction, std::string_view role_a, const Tensor& a,
                           std::string_view role_b, const Tensor& b) {
  if (a.space() != Space::kPsum || b.space() != Space::kPsum) {
    return;
  }
  refuse("two-psum-operands",
         {.rule = fmt::format("{} reads at most one of its operands from PSUM", instruction),
          .here = fmt::format("`{}` is {}, `{}` is {}", role_a, a.describe(), role_b, b.describe()),
          .limit = "one operand in PSUM",
          .fix = "copy one of them to SBUF first (tensor_copy)"});
}

void require_dtype(std::string_view instruction, std::string_view role, const Tensor& tensor,
                   std::initializer_list<DType> allowed) {
  if (std::find(allowed.begin(), allowed.end(), tensor.dtype()) != allowed.end()) {
    return;
  }
  std::vector<std::string_view> names;
  for (const DType dtype : allowed) {
    names.push_back(name(dtype));
  }
  refuse("dtype-refused",
         {.rule = fmt::format("{} has a datapath for some types only", instruction),
          .here = fmt::format("`{}` is {}", role, tensor.describe()),
          .limit = fmt::format("{}", fmt::join(names, ", ")),
          .fix = "cast the tensor first"});
}

std::vector<std::string_view> names(const DTypeSet& dtypes) {
  std::vector<std::string_view> result;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtypes.contains(dtype)) {
      result.push_back(name(dtype));
    }
  }
  return result;
}

void require_compute_dtype(std::string_view instruction, std::string_view role,
                           const Tensor& tensor) {
  const DTypeInfo& type = info(tensor.dtype());
  if (type.size_bytes <= 4 && type.packed_elements == 1) {
    return;
  }
  refuse("dtype-refused",
         {.rule = fmt::format("{} computes on types of at most 32 bits, one value per element",
                              instruction),
          .here = fmt::format("`{}` is {}", role, tensor.describe()),
          .limit = "8-, 16- and 32-bit integers and floats",
          .fix = "cast the tensor first"});
}

void require_integer(std::string_view instruction, std::string_view role, const Tensor& tensor) {
  if (info(tensor.dtype()).is_integer) {
    return;
  }
  refuse("dtype-refused",
         {.rule = "bitvec operators act on the raw bits of integers, without a cast",
          .here = fmt::format("{} `{}` is {}", instruction, role, tensor.describe()),
          .limit = "an integer type",
          .fix = "use an arithmetic operator, or view the tensor as integers"});
}

void require_same_dtype(std::string_view instruction, std::string_view role_a, const Tensor& a,
                        std::string_view role_b, const Tensor& b) {
  if (a.dtype() == b.dtype()) {
    return;
  }
  refuse("dtype-refused",
         {.rule = fmt::format("{} moves `{}` to `{}` without a cast", instruction, role_b, role_a),
          .here = fmt::format("`{}` is {}, `{}` is {}", role_a, a.describe(), role_b, b.describe()),
          .limit = std::string(name(a.dtype()))});
}

void require_tile(const Machine& machine, std::string_view instruction, std::string_view role,
                  const Tensor& tensor) {
  const Indirection* indirection = tensor.indirection().get();
  if (indirection != nullptr && indirection->kind == Indirection::Kind::kVector) {
    throw_not_modelled(fmt::format("rows by index in `{}` of {}", role, instruction));
  }
  require_space(instruction, role, tensor, {Space::kSbuf, Space::kPsum});
  require_compute_dtype(instruction, role, tensor);
  if (!machine.legality.dtypes.contains(tensor.dtype())) {
    refuse("dtype-refused",
           {.rule = "every generation knows its own set of element types",
            .here = fmt::format("{} `{}` is {}", instruction, role, tensor.describe()),
            .limit = fmt::format("{} on {}", fmt::join(names(machine.legality.dtypes), ", "),
                                 machine.chip.name)});
  }
  require_partition_start(machine, instruction, role, tensor);
}

void require_elementwise(const Machine& machine, std::string_view instruction, const Tensor& dst,
                         std::string_view role_a, const Tensor& a) {
  require_tile(machine, instruction, "dst", dst);
  require_tile(machine, instruction, role_a, a);
  require_same_partitions(instruction, "dst", dst, role_a, a);
  require_same_elements(instruction, "dst", dst, role_a, a);
}

void require_elementwise(const Machine& machine, std::string_view instruction, const Tensor& dst,
                         std::string_view role_a, const Tensor& a, std::string_view role_b,
                         const Tensor& b) {
  require_tile(machine, instruction, "dst", dst);
  require_tile(machine, instruction, role_a, a);
  require_tile(machine, instruction, role_b, b);
  require_same_partitions(instruction, role_a, a, role_b, b);
  require_same_elements(instruction, role_a, a, role_b, b);
  require_same_partitions(instruction, "dst", dst, role_a, a);
  require_same_elements(instruction, "dst", dst, role_a, a);
  require_not_both_psum(instruction, role_a, a, role_b, b);
}

void require_lane_operand(std::string_view instruction, std::string_view role,
                          const Operand& operand, const Tensor& data, bool require_float32) {
  const Tensor* tensor = std::get_if<Tensor>(&operand);
  if (tensor == nullptr) {
    return;
  }
  require_space(instruction, role, *tensor, {Space::kSbuf, Space::kPsum});
  if (tensor->partitions() != data.partitions() || tensor->free_size() != 1) {
    refuse("lane-operand", {.rule = fmt::format("`{}` of {} is a number or one value per partition",
                                                role, instruction),
                            .here = fmt::format("`{}` is {}, the data has {} partitions", role,
                                                tensor->describe(), data.partitions()),
                            .limit = fmt::format("shape [{}, 1]", data.partitions())});
  }
  if (require_float32) {
    require_dtype(instruction, role, *tensor, {DType::kFloat32});
  }
}

float lane_value(const Operand& operand, std::int64_t partition) {
  if (const double* number = std::get_if<double>(&operand)) {
    return static_cast<float>(*number);
  }
  const Tensor& tensor = std::get<Tensor>(operand);
  return to_float(tensor.dtype(), tensor.data() + partition * tensor.dim(0).stride_bytes);
}

}  // namespace trena
