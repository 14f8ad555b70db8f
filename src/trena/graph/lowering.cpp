#include "trena/graph/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "trena/isa/dma/dma_copy.h"
#include "trena/isa/gpsimd/iota.h"
#include "trena/isa/scalar/activation.h"
#include "trena/isa/tensor/nc_matmul.h"
#include "trena/isa/tensor/nc_transpose.h"
#include "trena/isa/vector/memset.h"
#include "trena/isa/vector/reciprocal.h"
#include "trena/isa/vector/scalar_tensor_tensor.h"
#include "trena/isa/vector/tensor_copy.h"
#include "trena/isa/vector/tensor_copy_predicated.h"
#include "trena/isa/vector/tensor_reduce.h"
#include "trena/isa/vector/tensor_scalar.h"
#include "trena/isa/vector/tensor_tensor.h"
#include "trena/memory/rows.h"

namespace trena {
namespace {

// Softmax and loss hold four float32 rows, and the next tile's beside them.
constexpr std::int64_t kRowBytesPerElement = 2 * 4 * 4;

// An int64 that int32 cannot hold would change its value without a word.
void require_int32_range(const Tensor& low, const Tensor& high) {
  std::int32_t low_word = 0;
  std::int32_t high_word = 0;
  std::vector<std::size_t> offsets;
  for_each_run(low, [&](std::size_t offset, std::size_t) { offsets.push_back(offset); });
  std::size_t i = 0;
  low.buffer()->storage->settle();
  const std::byte* bytes = low.buffer()->storage->data();
  for_each_run(high, [&](std::size_t offset, std::size_t) {
    std::memcpy(&low_word, bytes + offsets[i++], sizeof(low_word));
    std::memcpy(&high_word, bytes + offset, sizeof(high_word));
    if (high_word != (low_word < 0 ? -1 : 0)) {
      const std::int64_t value =
          (static_cast<std::int64_t>(high_word) << 32) | static_cast<std::uint32_t>(low_word);
      throw Error(ErrorKind::kNotModelled, "int64-range",
                  {.rule = "the core has no 64-bit integers: int64 is narrowed to int32",
                   .here = fmt::format("the value {}", value),
                   .limit = "-2147483648 to 2147483647",
                   .device = "the upper 32 bits are lost"});
    }
  });
}

}  // namespace

Lowering::Lowering(Program& program, std::string_view op) : program_(program), op_(op) {}

Lowering::~Lowering() {
  try {
    program_.settle();
  } catch (...) {
    // Whoever wants to know settles first.
  }
}

NestLimits Lowering::limits() const {
  NestLimits limits;
  limits.partitions = machine().core.sbuf.partitions;
  limits.row_elements = machine().core.sbuf.usable_bytes() / kRowBytesPerElement;
  return limits;
}

std::int64_t Lowering::product_columns() const {
  const Core& core = machine().core;
  const auto bank_floats =
      core.psum.bank_bytes / static_cast<std::int64_t>(size_bytes(DType::kFloat32));
  return std::min(core.tensor.max_moving_columns, bank_floats);
}

Tensor Lowering::make_tile(Space space, DType dtype, std::span<const std::int64_t> shape) {
  BufferRequest request;
  request.space = space;
  request.dtype = dtype;
  request.shape = shape;
  request.name = op_;
  return program_.make_tensor(0, request);
}

Tensor Lowering::sbuf(DType dtype, std::span<const std::int64_t> shape) {
  return make_tile(Space::kSbuf, dtype, shape);
}

Tensor Lowering::sbuf(DType dtype, std::initializer_list<std::int64_t> shape) {
  return make_tile(Space::kSbuf, dtype, std::span(shape.begin(), shape.size()));
}

Tensor Lowering::psum(DType dtype, std::initializer_list<std::int64_t> shape) {
  return make_tile(Space::kPsum, dtype, std::span(shape.begin(), shape.size()));
}

template <typename Arguments>
void Lowering::append(Arguments arguments) {
  auto instruction = make_instruction(std::move(arguments));
  instruction->label = op_;
  program_.append(0, std::move(instruction));
}

void Lowering::dma_copy(const Tensor& dst, const Tensor& src) {
  append(DmaCopy{dst, src, DmaRequest{}});
}

void Lowering::tensor_copy(const Tensor& dst, const Tensor& src) {
  append(TensorCopy{dst, src, std::nullopt});
}

void Lowering::nc_matmul(const Tensor& dst, const Tensor& stationary, const Tensor& moving,
                         bool accumulate) {
  MatmulOptions options;
  options.accumulate = accumulate;
  append(NcMatmul{dst, stationary, moving, options});
}

void Lowering::nc_transpose(const Tensor& dst, const Tensor& data) {
  append(NcTranspose{dst, data, std::nullopt});
}

void Lowering::memset(const Tensor& dst, double value) {
  const bool integer = info(dst.dtype()).is_integer;
  append(Memset{dst, integer ? MemsetValue(static_cast<std::int64_t>(value)) : MemsetValue(value),
                std::nullopt});
}

void Lowering::tensor_tensor(const Tensor& dst, const Tensor& a, AluOp op, const Tensor& b) {
  append(TensorTensor{dst, a, b, op, std::nullopt});
}

void Lowering::tensor_scalar(const Tensor& dst, const Tensor& data, AluOp op0,
                             const Operand& operand0) {
  append(TensorScalar{dst, data, ScalarStep{op0, operand0, false}, std::nullopt, std::nullopt});
}

void Lowering::tensor_scalar(const Tensor& dst, const Tensor& data, AluOp op0,
                             const Operand& operand0, AluOp op1, const Operand& operand1) {
  append(TensorScalar{dst, data, ScalarStep{op0, operand0, false}, ScalarStep{op1, operand1, false},
                      std::nullopt});
}

void Lowering::reduce_free(const Tensor& dst, AluOp op, const Tensor& data) {
  std::vector<std::int64_t> axes;
  for (int axis = 1; axis < data.rank(); ++axis) {
    axes.push_back(axis);
  }
  append(TensorReduce{dst, op, data, std::move(axes), false});
}

void Lowering::iota(const Tensor& dst) {
  append(Iota{dst, AffinePattern{{{1, dst.free_size()}}, 0, 0}});
}

void Lowering::scalar_tensor_tensor(const Tensor& dst, const Tensor& data, AluOp op0,
                                    const Operand& operand0, AluOp op1, const Tensor& b) {
  append(ScalarTensorTensor{dst, data, ScalarStep{op0, operand0, false}, op1, b, false});
}

void Lowering::copy_predicated(const Tensor& dst, const Tensor& src, const Tensor& predicate) {
  std::vector<Dim> dims;
  for (int axis = 0; axis < predicate.rank(); ++axis) {
    dims.push_back(predicate.dim(axis));
  }
  // A bool is a byte of 0 or 1, which is what the instruction asks for.
  const Tensor bytes = predicate.with(DType::kUint8, predicate.offset_bytes(), dims);
  append(TensorCopyPredicated{dst, src, bytes, false});
}

void Lowering::reciprocal(const Tensor& dst, const Tensor& data) { append(Reciprocal{dst, data}); }

void Lowering::activation(const Tensor& dst, MathFunction function, const Tensor& data) {
  append(Activation{dst, function, ActivationInput{data, std::nullopt, 1.0}, Reduction{}});
}

void Lowering::activation_sum(const Tensor& dst, MathFunction function, const Tensor& data,
                              const Tensor& sum) {
  append(
      activation_reduce(dst, function, ActivationInput{data, std::nullopt, 1.0}, AluOp::kAdd, sum));
}

Tensor Lowering::reduce_tile(AluOp op, const Tensor& tile) {
  const std::int64_t partitions = tile.partitions();
  Tensor rows = sbuf(DType::kFloat32, {partitions, 1});
  reduce_free(rows, op, tile);
  if (partitions == 1) {
    return rows;
  }
  // Where the array transposes by multiplying, one Inf would poison the others (hw.md §3.2): there
  // the vector engine moves a quadrant at a time.
  const bool exact = machine().legality.matmul_transpose_exact;
  const std::int64_t step = exact ? partitions : machine().core.sbuf.quadrant_partitions;
  const Tensor turned = psum(DType::kFloat32, {1, partitions});
  for (std::int64_t first = 0; first < partitions; first += step) {
    const std::int64_t count = std::min(step, partitions - first);
    nc_transpose(columns_of(turned, first, count), rows_of(rows, first, count));
  }
  Tensor total = sbuf(DType::kFloat32, {1, 1});
  reduce_free(total, op, turned);
  return total;
}

Tensor Lowering::load(const Tensor& source) {
  Tensor tile = sbuf(source.dtype(), source.shape());
  dma_copy(tile, source);
  return tile;
}

Tensor Lowering::load(const NestTile& tile, std::size_t index, const HbmView& source) {
  if (source.dtype != DType::kInt64) {
    return load(tile.in(source, index));
  }
  const Tensor low = tile.in(source.low_words(), index);
  require_int32_range(low, tile.in(source.high_words(), index));
  return load(low);
}

void Lowering::store(const HbmView& destination, std::int64_t offset_bytes,
                     std::span<const Dim> dims, const Tensor& value) {
  if (destination.dtype != DType::kInt64) {
    dma_copy(destination.tile(offset_bytes, dims), value);
    return;
  }
  dma_copy(destination.low_words().tile(offset_bytes, dims), value);
  const Tensor sign = sbuf(DType::kInt32, value.shape());
  tensor_scalar(sign, value, AluOp::kLess, 0.0F, AluOp::kMultiply, -1.0F);
  dma_copy(destination.high_words().tile(offset_bytes, dims), sign);
}

void Lowering::store(const NestTile& tile, std::size_t index, const HbmView& destination,
                     const Tensor& value) {
  std::vector<Dim> dims;
  for (const NestDim& dim : tile.dims) {
    dims.push_back({dim.size, dim.strides_bytes[index]});
  }
  store(destination, tile.offsets_bytes[index], dims, value);
}

Tensor columns_of(const Tensor& tile, std::int64_t first, std::int64_t count) {
  const Dim columns = tile.dim(1);
  return tile.with(tile.dtype(), tile.offset_bytes() + first * columns.stride_bytes,
                   std::array{tile.dim(0), Dim{count, columns.stride_bytes}});
}

Tensor rows_of(const Tensor& tile, std::int64_t first, std::int64_t count) {
  const Dim rows = tile.dim(0);
  std::vector<Dim> dims = {{count, rows.stride_bytes}};
  for (int axis = 1; axis < tile.rank(); ++axis) {
    dims.push_back(tile.dim(axis));
  }
  return tile.with(tile.dtype(), tile.offset_bytes() + first * rows.stride_bytes, dims);
}

}  // namespace trena
