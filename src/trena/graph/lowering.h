// One operator on its way to instructions: makes tiles, appends the instructions that NKI kernels
// use (isa/*), and frees the host bytes of its tiles when the operator is done (their values are
// dead then; the Program keeps the tensors, which is all that placement and time need).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trena/core/program.h"
#include "trena/graph/hbm_view.h"
#include "trena/graph/nest.h"
#include "trena/number/vector_math.h"

namespace trena {

class Lowering {
 public:
  // `op` ("aten.addmm") becomes the label of every instruction.
  Lowering(Program& program, std::string_view op);
  // The values are there afterwards: PyTorch may read or free its tensors as soon as an operator
  // returns.
  ~Lowering();
  Lowering(const Lowering&) = delete;
  Lowering& operator=(const Lowering&) = delete;

  const Machine& machine() const { return program_.machine(); }
  NestLimits limits() const;
  // Columns of one product: its float32 result fills one bank of PSUM.
  std::int64_t product_columns() const;

  // A tile's bytes are used again once nothing names it.
  Tensor sbuf(DType dtype, std::span<const std::int64_t> shape);
  Tensor sbuf(DType dtype, std::initializer_list<std::int64_t> shape);
  Tensor psum(DType dtype, std::initializer_list<std::int64_t> shape);

  // Instructions, as in nki.isa.
  void dma_copy(const Tensor& dst, const Tensor& src);
  void tensor_copy(const Tensor& dst, const Tensor& src);
  void memset(const Tensor& dst, double value);
  void iota(const Tensor& dst);  // 0, 1, 2 … along the free axis of every partition
  void nc_matmul(const Tensor& dst, const Tensor& stationary, const Tensor& moving,
                 bool accumulate);
  void nc_transpose(const Tensor& dst, const Tensor& data);
  void tensor_tensor(const Tensor& dst, const Tensor& a, AluOp op, const Tensor& b);
  void tensor_scalar(const Tensor& dst, const Tensor& data, AluOp op0, const Operand& operand0);
  void tensor_scalar(const Tensor& dst, const Tensor& data, AluOp op0, const Operand& operand0,
                     AluOp op1, const Operand& operand1);
  // (data op0 operand0) op1 b
  void scalar_tensor_tensor(const Tensor& dst, const Tensor& data, AluOp op0,
                            const Operand& operand0, AluOp op1, const Tensor& b);
  // dst where `predicate` is not 0 becomes src
  void copy_predicated(const Tensor& dst, const Tensor& src, const Tensor& predicate);
  void reciprocal(const Tensor& dst, const Tensor& data);
  void activation(const Tensor& dst, MathFunction function, const Tensor& data);
  // The same, and the sum of every row into `sum` [P, 1].
  void activation_sum(const Tensor& dst, MathFunction function, const Tensor& data,
                      const Tensor& sum);
  // All of the free axis into one value per partition: dst is [P, 1].
  void reduce_free(const Tensor& dst, AluOp op, const Tensor& data);
  // All of a float32 tile into one value [1, 1]: along the free axis, then the partitions through a
  // transpose.
  Tensor reduce_tile(AluOp op, const Tensor& tile);

  // A tile of HBM in SBUF; int64 arrives as int32.
  Tensor load(const NestTile& tile, std::size_t index, const HbmView& source);
  // A tile of HBM with any dimensions (partition first).
  Tensor load(const Tensor& source);
  // Stores a tile, int32 into int64 with its sign. `offset_bytes` counts from the start of
  // `destination`.
  void store(const HbmView& destination, std::int64_t offset_bytes, std::span<const Dim> dims,
             const Tensor& value);
  void store(const NestTile& tile, std::size_t index, const HbmView& destination,
             const Tensor& value);
  // What a result for `dtype` is computed in.
  static DType tile_dtype(DType dtype) { return dtype == DType::kInt64 ? DType::kInt32 : dtype; }

 private:
  Tensor make_tile(Space space, DType dtype, std::span<const std::int64_t> shape);
  template <typename Arguments>
  void append(Arguments arguments);

  Program& program_;
  std::string op_;
};

// Columns [first, first + count) and partitions [0, partitions) of a 2-D tile.
Tensor columns_of(const Tensor& tile, std::int64_t first, std::int64_t count);
Tensor rows_of(const Tensor& tile, std::int64_t first, std::int64_t count);

}  // namespace trena
