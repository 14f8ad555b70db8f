// nki.isa: one line per instruction, in the alphabetical order of the public API. Documentation
// lives in python/trena/nki/isa.py; rules, values and costs in src/trena/isa/.
#include <fmt/format.h>

#include "bindings.h"
#include "objects.h"
#include "trena/isa/gpsimd/affine_select.h"
#include "trena/isa/gpsimd/gather.h"
#include "trena/isa/gpsimd/iota.h"
#include "trena/isa/gpsimd/search.h"
#include "trena/isa/gpsimd/tensor_partition_reduce.h"
#include "trena/isa/scalar/activate2.h"
#include "trena/isa/scalar/activation.h"
#include "trena/isa/tensor/nc_matmul.h"
#include "trena/isa/tensor/nc_matmul_mx.h"
#include "trena/isa/tensor/nc_transpose.h"
#include "trena/isa/vector/bn_stats.h"
#include "trena/isa/vector/exponential.h"
#include "trena/isa/vector/memset.h"
#include "trena/isa/vector/nc_stream_shuffle.h"
#include "trena/isa/vector/quantize_mx.h"
#include "trena/isa/vector/random.h"
#include "trena/isa/vector/reciprocal.h"
#include "trena/isa/vector/scalar_tensor_tensor.h"
#include "trena/isa/vector/select.h"
#include "trena/isa/vector/tensor_copy.h"
#include "trena/isa/vector/tensor_copy_predicated.h"
#include "trena/isa/vector/tensor_reduce.h"
#include "trena/isa/vector/tensor_scalar.h"
#include "trena/isa/vector/tensor_scalar_cumulative.h"
#include "trena/isa/vector/tensor_scalar_reduce.h"
#include "trena/isa/vector/tensor_tensor.h"
#include "trena/isa/vector/tensor_tensor_scan.h"
#include "trena/isa/vector/top8.h"

namespace trena::bindings {
namespace {

using Name = std::optional<std::string>;

// axis=1 or axis=(1, 2).
using Axes = std::variant<std::int64_t, std::vector<std::int64_t>>;
std::vector<std::int64_t> axes_of(const Axes& axis) {
  const auto* one = std::get_if<std::int64_t>(&axis);
  return one != nullptr ? std::vector<std::int64_t>{*one}
                        : std::get<std::vector<std::int64_t>>(axis);
}

// tile_position=(row, column), or () for none.
std::optional<std::array<std::int64_t, 2>> pair_of(nb::handle pair, std::string_view role) {
  if (pair.is_none() || nb::len(pair) == 0) {
    return std::nullopt;
  }
  if (nb::len(pair) != 2) {
    throw Error(ErrorKind::kUsage, "matmul-tiling",
                {.rule = std::string(role) + " is a pair (row, column)",
                 .here = nb::cast<std::string>(nb::repr(pair))});
  }
  return std::array<std::int64_t, 2>{nb::cast<std::int64_t>(pair[0]),
                                     nb::cast<std::int64_t>(pair[1])};
}

MatmulPerfMode perf_mode_of(nb::handle mode) {
  if (mode.is_none()) {
    return MatmulPerfMode::kNone;
  }
  const auto name = nb::cast<std::string>(nb::getattr(mode, "name"));
  if (name == "none" || name == "double_row") {
    return name == "none" ? MatmulPerfMode::kNone : MatmulPerfMode::kDoubleRow;
  }
  throw_not_modelled("nc_matmul perf_mode " + name);
}

// The arguments reduce_op, reduce_cmd and reduce_res.
Reduction reduction(const Operator* op, std::optional<AluOp> otherwise, ReduceCommand command,
                    const std::optional<Tensor>& result) {
  return {op != nullptr ? std::optional(alu_of(*op, "reduce_op")) : otherwise, command, result,
          std::nullopt};
}

// [[step, count], …] of iota and affine_select.
using Steps = std::vector<std::pair<std::int64_t, std::int64_t>>;

// `operand` may be left out where the operator has no use for one.
ScalarStep scalar_step(const Operator& op, std::string_view op_role,
                       const std::optional<Operand>& operand, std::string_view operand_role,
                       bool reverse) {
  const AluOp alu = alu_of(op, op_role);
  if (!operand && !is_unary(alu)) {
    throw Error(ErrorKind::kUsage, "operand-missing",
                {.rule = "an operator of two values needs an operand",
                 .here = fmt::format("{}=nl.{}, {}=None", op_role, name(alu), operand_role),
                 .fix = fmt::format("pass {}=", operand_role)});
  }
  return {alu, operand.value_or(0.0), reverse};
}

}  // namespace

void bind_nki_isa(nb::module_& module) {
  nb::enum_<ReduceCommand>(module, "reduce_cmd")
      .value("idle", ReduceCommand::kIdle)
      .value("reset", ReduceCommand::kReset)
      .value("reduce", ReduceCommand::kReduce)
      .value("reset_reduce", ReduceCommand::kResetReduce)
      .value("load_reduce", ReduceCommand::kLoadReduce);
  nb::module_ isa = module.def_submodule("isa");
  bind_nki_dma(module, isa);
  isa.def(
      "activate2",
      [](const Tensor& dst, const Operator& op, const Tensor& data, const Operand& imm0,
         const Operand& imm1, const Operator& op0, const Operator& op1, const Operand& relu_param,
         bool reverse0, bool reverse1, const Operator* reduce_op,
         const std::optional<Tensor>& reduce_res, ReduceCommand reduce_cmd, const Name& name) {
        return emit(Activate2{dst, function_of(op, "op"), data,
                              ScalarStep{alu_of(op0, "op0"), imm0, reverse0},
                              ScalarStep{alu_of(op1, "op1"), imm1, reverse1}, relu_param,
                              reduction(reduce_op, std::nullopt, reduce_cmd, reduce_res)},
                    name);
      },
      "dst"_a, "op"_a, "data"_a, "imm0"_a, "imm1"_a, "op0"_a, "op1"_a, "relu_param"_a = 0.0,
      "reverse0"_a = false, "reverse1"_a = false, "reduce_op"_a.none() = nb::none(),
      "reduce_res"_a = nb::none(), "reduce_cmd"_a = ReduceCommand::kIdle, "name"_a = nb::none());
  isa.def(
      "activation",
      [](const Tensor& dst, const Operator& op, const Tensor& data,
         const std::optional<Operand>& bias, const Operand& scale, const Operator* reduce_op,
         const std::optional<Tensor>& reduce_res, ReduceCommand reduce_cmd, const Name& name) {
        return emit(Activation{dst, function_of(op, "op"), ActivationInput{data, bias, scale},
                               reduction(reduce_op, std::nullopt, reduce_cmd, reduce_res)},
                    name);
      },
      "dst"_a, "op"_a, "data"_a, "bias"_a = nb::none(), "scale"_a = 1.0,
      "reduce_op"_a.none() = nb::none(), "reduce_res"_a = nb::none(),
      "reduce_cmd"_a = ReduceCommand::kIdle, "name"_a = nb::none());
  isa.def(
      "activation_reduce",
      [](const Tensor& dst, const Operator& op, const Tensor& data, const Operator& reduce_op,
         const std::optional<Tensor>& reduce_res, const std::optional<Operand>& bias,
         const Operand& scale, const Name& name) {
        return emit(
            activation_reduce(dst, function_of(op, "op"), ActivationInput{data, bias, scale},
                              alu_of(reduce_op, "reduce_op"), reduce_res),
            name);
      },
      "dst"_a, "op"_a, "data"_a, "reduce_op"_a, "reduce_res"_a.none(), "bias"_a = nb::none(),
      "scale"_a = 1.0, "name"_a = nb::none());
  isa.def(
      "affine_select",
      [](const Tensor& dst, const Steps& pattern, std::int64_t channel_multiplier,
         const Tensor& on_true_tile, double on_false_value, const Operator* cmp_op,
         std::int64_t offset, const Name& name) {
        return emit(AffineSelect{dst, AffinePattern{pattern, offset, channel_multiplier},
                                 on_true_tile, static_cast<float>(on_false_value),
                                 cmp_op != nullptr ? alu_of(*cmp_op, "cmp_op") : AluOp::kEqual},
                    name);
      },
      "dst"_a, "pattern"_a, "channel_multiplier"_a, "on_true_tile"_a, "on_false_value"_a,
      "cmp_op"_a.none() = nb::none(), "offset"_a = 0, "name"_a = nb::none());
  isa.def(
      "bn_aggr",
      [](const Tensor& dst, const Tensor& data, const Name& name) {
        return emit(BnAggregate{dst, data}, name);
      },
      "dst"_a, "data"_a, "name"_a = nb::none());
  isa.def(
      "bn_stats",
      [](const Tensor& dst, const Tensor& data, const Name& name) {
        return emit(BnStats{dst, data}, name);
      },
      "dst"_a, "data"_a, "name"_a = nb::none());
  isa.def(
      "dropout",
      [](const Tensor& dst, const Tensor& data, const Operand& prob, const Name& name) {
        return emit(Dropout{dst, data, prob}, name);
      },
      "dst"_a, "data"_a, "prob"_a, "name"_a = nb::none());
  isa.def(
      "exponential",
      [](const Tensor& dst, const Tensor& src, const Operand& max_value,
         const std::optional<Tensor>& reduce_res, ReduceCommand reduce_cmd,
         const Operand& reduce_init, const Name& name) {
        Reduction reduction{AluOp::kAdd, reduce_cmd, reduce_res, std::nullopt};
        const double* number = std::get_if<double>(&reduce_init);
        if (reduce_cmd == ReduceCommand::kLoadReduce || number == nullptr || *number != 0.0) {
          reduction.initial = reduce_init;  // 0.0 stands for "not given"
        }
        return emit(Exponential{dst, src, max_value, std::move(reduction)}, name);
      },
      "dst"_a, "src"_a, "max_value"_a = 0.0, "reduce_res"_a = nb::none(),
      "reduce_cmd"_a = ReduceCommand::kIdle, "reduce_init"_a = 0.0, "name"_a = nb::none());
  isa.def(
      "iota",
      [](const Tensor& dst, const Steps& pattern, std::int64_t offset,
         std::int64_t channel_multiplier, const Name& name) {
        return emit(Iota{dst, AffinePattern{pattern, offset, channel_multiplier}}, name);
      },
      "dst"_a, "pattern"_a, "offset"_a = 0, "channel_multiplier"_a = 0, "name"_a = nb::none());
  isa.def(
      "local_gather",
      [](const Tensor& dst, const Tensor& src_buffer, const Tensor& index,
         std::int64_t num_elem_per_idx, std::optional<std::int64_t> num_valid_indices,
         const Name& name) {
        return emit(LocalGather{dst, src_buffer, index, num_elem_per_idx, num_valid_indices}, name);
      },
      "dst"_a, "src_buffer"_a, "index"_a, "num_elem_per_idx"_a = 1,
      "num_valid_indices"_a = nb::none(), "name"_a = nb::none());
  isa.def(
      "max8",
      [](const Tensor& dst, const Tensor& src, const Name& name) {
        return emit(Max8{dst, src}, name);
      },
      "dst"_a, "src"_a, "name"_a = nb::none());
  isa.def(
      "memset",
      [](const Tensor& dst, MemsetValue value, EngineChoice engine, const Name& name) {
        return emit(Memset{dst, value, request(engine)}, name);
      },
      "dst"_a, "value"_a, "engine"_a = EngineChoice::kUnknown, "name"_a = nb::none());
  isa.def(
      "nc_find_index8",
      [](const Tensor& dst, const Tensor& data, const Tensor& vals, const Name& name) {
        return emit(NcFindIndex8{dst, data, vals}, name);
      },
      "dst"_a, "data"_a, "vals"_a, "name"_a = nb::none());
  isa.def(
      "nc_match_replace8",
      [](const Tensor& dst, const Tensor& data, const Tensor& vals, double imm,
         const std::optional<Tensor>& dst_idx, const Name& name) {
        return emit(NcMatchReplace8{dst, data, vals, static_cast<float>(imm), dst_idx}, name);
      },
      "dst"_a, "data"_a, "vals"_a, "imm"_a, "dst_idx"_a = nb::none(), "name"_a = nb::none());
  isa.def(
      "nc_matmul",
      [](const Tensor& dst, const Tensor& stationary, const Tensor& moving,
         bool is_stationary_onezero, bool is_moving_onezero, bool is_transpose,
         std::optional<bool> accumulate, nb::handle tile_position, nb::handle tile_size,
         nb::handle perf_mode, const Name& name) {
        const MatmulOptions options{.stationary_onezero = is_stationary_onezero,
                                    .moving_onezero = is_moving_onezero,
                                    .transpose = is_transpose,
                                    .accumulate = accumulate,
                                    .tile_position = pair_of(tile_position, "tile_position"),
                                    .tile_size = pair_of(tile_size, "tile_size"),
                                    .perf_mode = perf_mode_of(perf_mode)};
        return emit(NcMatmul{dst, stationary, moving, options}, name);
      },
      "dst"_a, "stationary"_a, "moving"_a, "is_stationary_onezero"_a = false,
      "is_moving_onezero"_a = false, "is_transpose"_a = false, "accumulate"_a = nb::none(),
      "tile_position"_a = nb::none(), "tile_size"_a = nb::none(), "perf_mode"_a = nb::none(),
      "name"_a = nb::none());
  isa.def(
      "nc_matmul_mx",
      [](const Tensor& dst, const Tensor& stationary, const Tensor& moving,
         const Tensor& stationary_scale, const Tensor& moving_scale, nb::handle tile_position,
         nb::handle tile_size, std::optional<bool> accumulate, const Name& name) {
        const MatmulMxOptions options{.tile_position = pair_of(tile_position, "tile_position"),
                                      .tile_size = pair_of(tile_size, "tile_size"),
                                      .accumulate = accumulate};
        return emit(NcMatmulMx{dst, stationary, moving, stationary_scale, moving_scale, options},
                    name);
      },
      "dst"_a, "stationary"_a, "moving"_a, "stationary_scale"_a, "moving_scale"_a,
      "tile_position"_a = nb::none(), "tile_size"_a = nb::none(), "accumulate"_a = nb::none(),
      "name"_a = nb::none());
  isa.def(
      "nc_n_gather",
      [](const Tensor& dst, const Tensor& data, const Tensor& indices, const Name& name) {
        return emit(NcNGather{dst, data, indices}, name);
      },
      "dst"_a, "data"_a, "indices"_a, "name"_a = nb::none());
  isa.def(
      "nc_stream_shuffle",
      [](const Tensor& dst, const Tensor& src, std::vector<std::int64_t> shuffle_mask,
         const Name& name) {
        return emit(NcStreamShuffle{dst, src, std::move(shuffle_mask)}, name);
      },
      "dst"_a, "src"_a, "shuffle_mask"_a, "name"_a = nb::none());
  isa.def(
      "nc_transpose",
      [](const Tensor& dst, const Tensor& data, EngineChoice engine, const Name& name) {
        return emit(NcTranspose{dst, data, request(engine)}, name);
      },
      "dst"_a, "data"_a, "engine"_a = EngineChoice::kUnknown, "name"_a = nb::none());
  isa.def(
      "nonzero_with_count",
      [](const Tensor& dst, const Tensor& src, std::int64_t index_offset, std::int64_t padding_val,
         const Name& name) {
        return emit(NonzeroWithCount{dst, src, index_offset, padding_val}, name);
      },
      "dst"_a, "src"_a, "index_offset"_a = 0, "padding_val"_a = -1, "name"_a = nb::none());
  isa.def(
      "quantize_mx",
      [](const Tensor& dst, const Tensor& src, const Tensor& dst_scale, const Name& name) {
        return emit(QuantizeMx{dst, src, dst_scale}, name);
      },
      "dst"_a, "src"_a, "dst_scale"_a, "name"_a = nb::none());
  isa.def(
      "rand2",
      [](const Tensor& dst, const Operand& min, const Operand& max, const Name& name) {
        return emit(Rand2{dst, min, max}, name);
      },
      "dst"_a, "min"_a, "max"_a, "name"_a = nb::none());
  isa.def(
      "rand_get_state",
      [](const Tensor& dst, EngineChoice engine, const Name& name) {
        return emit(RandGetState{dst, request(engine)}, name);
      },
      "dst"_a, "engine"_a = EngineChoice::kGpsimd, "name"_a = nb::none());
  isa.def(
      "rand_set_state",
      [](const Tensor& src_seeds, EngineChoice engine, const Name& name) {
        return emit(RandSetState{src_seeds, request(engine)}, name);
      },
      "src_seeds"_a, "engine"_a = EngineChoice::kGpsimd, "name"_a = nb::none());
  isa.def(
      "range_select",
      [](const Tensor& dst, const Tensor& on_true_tile, const Operator& comp_op0,
         const Operator& comp_op1, const Tensor& bound0, const Tensor& bound1,
         ReduceCommand reduce_cmd, const std::optional<Tensor>& reduce_res,
         const Operator* reduce_op, std::int64_t range_start, double on_false_value,
         const Name& name) {
        return emit(
            RangeSelect{dst, on_true_tile,
                        IndexRange{alu_of(comp_op0, "comp_op0"), alu_of(comp_op1, "comp_op1"),
                                   bound0, bound1, range_start},
                        static_cast<float>(on_false_value),
                        reduction(reduce_op, AluOp::kMaximum, reduce_cmd, reduce_res)},
            name);
      },
      "dst"_a, "on_true_tile"_a, "comp_op0"_a, "comp_op1"_a, "bound0"_a, "bound1"_a,
      "reduce_cmd"_a = ReduceCommand::kResetReduce, "reduce_res"_a = nb::none(),
      "reduce_op"_a.none() = nb::none(), "range_start"_a = 0,
      "on_false_value"_a = static_cast<double>(RangeSelect::kFill), "name"_a = nb::none());
  isa.def(
      "reciprocal",
      [](const Tensor& dst, const Tensor& data, const Name& name) {
        return emit(Reciprocal{dst, data}, name);
      },
      "dst"_a, "data"_a, "name"_a = nb::none());
  isa.def(
      "rng",
      [](const Tensor& dst, EngineChoice engine, const Name& name) {
        return emit(Rng{dst, request(engine)}, name);
      },
      "dst"_a, "engine"_a = EngineChoice::kVector, "name"_a = nb::none());
  isa.def(
      "scalar_tensor_tensor",
      [](const Tensor& dst, const Tensor& data, const Operator& op0, const Operand& operand0,
         const Operator& op1, const Tensor& operand1, bool reverse0, bool reverse1,
         const Name& name) {
        return emit(
            ScalarTensorTensor{dst, data, ScalarStep{alu_of(op0, "op0"), operand0, reverse0},
                               alu_of(op1, "op1"), operand1, reverse1},
            name);
      },
      "dst"_a, "data"_a, "op0"_a, "operand0"_a, "op1"_a, "operand1"_a, "reverse0"_a = false,
      "reverse1"_a = false, "name"_a = nb::none());
  isa.def(
      "select_reduce",
      [](const Tensor& dst, const Tensor& predicate, const Tensor& on_true, const Operand& on_false,
         const std::optional<Tensor>& reduce_res, ReduceCommand reduce_cmd,
         const Operator* reduce_op, bool reverse_pred, const Name& name) {
        return emit(SelectReduce{dst, predicate, on_true, on_false,
                                 reduction(reduce_op, AluOp::kMaximum, reduce_cmd, reduce_res),
                                 reverse_pred},
                    name);
      },
      "dst"_a, "predicate"_a, "on_true"_a, "on_false"_a, "reduce_res"_a = nb::none(),
      "reduce_cmd"_a = ReduceCommand::kIdle, "reduce_op"_a.none() = nb::none(),
      "reverse_pred"_a = false, "name"_a = nb::none());
  isa.def(
      "sequence_bounds",
      [](const Tensor& dst, const Tensor& segment_ids, const Name& name) {
        return emit(SequenceBounds{dst, segment_ids}, name);
      },
      "dst"_a, "segment_ids"_a, "name"_a = nb::none());
  isa.def(
      "set_rng_seed",
      [](const Tensor& src_seeds, const Name& name) { return emit(SetRngSeed{src_seeds}, name); },
      "src_seeds"_a, "name"_a = nb::none());
  isa.def(
      "tensor_copy",
      [](const Tensor& dst, const Tensor& src, EngineChoice engine, const Name& name) {
        return emit(TensorCopy{dst, src, request(engine)}, name);
      },
      "dst"_a, "src"_a, "engine"_a = EngineChoice::kUnknown, "name"_a = nb::none());
  // aws-neuron/nki-samples of February 2026 names a type here, which no published signature has.
  isa.def(
      "tensor_copy",
      [](const Tensor& dst, const Tensor& src, nb::handle dtype, EngineChoice engine,
         const Name& name) {
        if (dtype_from(dtype) != dst.dtype()) {
          warn(
              "tensor_copy casts to the type of dst, not to dtype=, which is not in its signature");
        }
        return emit(TensorCopy{dst, src, request(engine)}, name);
      },
      "dst"_a, "src"_a, nb::kw_only(), "dtype"_a, "engine"_a = EngineChoice::kUnknown,
      "name"_a = nb::none());
  isa.def(
      "tensor_copy_predicated",
      [](const Tensor& dst, const Operand& src, const Tensor& predicate, bool reverse_pred,
         const Name& name) {
        return emit(TensorCopyPredicated{dst, src, predicate, reverse_pred}, name);
      },
      "dst"_a, "src"_a, "predicate"_a, "reverse_pred"_a = false, "name"_a = nb::none());
  isa.def(
      "tensor_partition_reduce",
      [](const Tensor& dst, const Operator& op, const Tensor& data, const Name& name) {
        return emit(TensorPartitionReduce{dst, alu_of(op, "op"), data}, name);
      },
      "dst"_a, "op"_a, "data"_a, "name"_a = nb::none());
  isa.def(
      "tensor_reduce",
      [](const Tensor& dst, const Operator& op, const Tensor& data, const Axes& axis, bool negate,
         bool /*keepdims*/, const Name& name) {
        return emit(TensorReduce{dst, alu_of(op, "op"), data, axes_of(axis), negate}, name);
      },
      "dst"_a, "op"_a, "data"_a, "axis"_a, "negate"_a = false, "keepdims"_a = false,
      "name"_a = nb::none());
  isa.def(
      "tensor_scalar",
      [](const Tensor& dst, const Tensor& data, const Operator& op0,
         const std::optional<Operand>& operand0, bool reverse0, const Operator* op1,
         const std::optional<Operand>& operand1, bool reverse1, EngineChoice engine,
         const Name& name) {
        std::optional<ScalarStep> second;
        if (op1 != nullptr) {
          second = scalar_step(*op1, "op1", operand1, "operand1", reverse1);
        }
        return emit(TensorScalar{dst, data, scalar_step(op0, "op0", operand0, "operand0", reverse0),
                                 std::move(second), request(engine)},
                    name);
      },
      "dst"_a, "data"_a, "op0"_a, "operand0"_a.none(), "reverse0"_a = false,
      "op1"_a.none() = nb::none(), "operand1"_a = nb::none(), "reverse1"_a = false,
      "engine"_a = EngineChoice::kUnknown, "name"_a = nb::none());
  isa.def(
      "tensor_scalar_cumulative",
      [](const Tensor& dst, const Tensor& src, const Operator& op0, const Operator& op1,
         const Operand& imm0, const std::optional<Operand>& imm1, ReduceCommand reduce_cmd,
         const Name& name) {
        return emit(
            TensorScalarCumulative{dst, src, alu_of(op0, "op0"), imm0,
                                   Reduction{alu_of(op1, "op1"), reduce_cmd, std::nullopt, imm1}},
            name);
      },
      "dst"_a, "src"_a, "op0"_a, "op1"_a, "imm0"_a, "imm1"_a = nb::none(),
      "reduce_cmd"_a = ReduceCommand::kResetReduce, "name"_a = nb::none());
  isa.def(
      "tensor_scalar_reduce",
      [](const Tensor& dst, const Tensor& data, const Operator& op0,
         const std::optional<Operand>& operand0, const Operator& reduce_op,
         const std::optional<Tensor>& reduce_res, bool reverse0, ReduceCommand reduce_cmd,
         const std::optional<Operand>& reduce_init, bool reduce_res_negate, const Name& name) {
        Reduction reduction{alu_of(reduce_op, "reduce_op"), reduce_cmd, reduce_res, reduce_init};
        return emit(
            TensorScalarReduce{dst, data, scalar_step(op0, "op0", operand0, "operand0", reverse0),
                               std::move(reduction), reduce_res_negate},
            name);
      },
      "dst"_a, "data"_a, "op0"_a, "operand0"_a.none(), "reduce_op"_a, "reduce_res"_a = nb::none(),
      "reverse0"_a = false, "reduce_cmd"_a = ReduceCommand::kResetReduce,
      "reduce_init"_a = nb::none(), "reduce_res_negate"_a = false, "name"_a = nb::none());
  isa.def(
      "tensor_tensor",
      [](const Tensor& dst, const Tensor& data1, const Tensor& data2, const Operator& op,
         EngineChoice engine, const Name& name) {
        return emit(TensorTensor{dst, data1, data2, alu_of(op, "op"), request(engine)}, name);
      },
      "dst"_a, "data1"_a, "data2"_a, "op"_a, "engine"_a = EngineChoice::kUnknown,
      "name"_a = nb::none());
  isa.def(
      "tensor_tensor_scan",
      [](const Tensor& dst, const Tensor& data0, const Tensor& data1, const Operand& initial,
         const Operator& op0, const Operator& op1, bool reverse0, bool reverse1, const Name& name) {
        return emit(TensorTensorScan{dst, data0, data1, initial,
                                     ScanOperators{alu_of(op0, "op0"), alu_of(op1, "op1"), reverse0,
                                                   reverse1}},
                    name);
      },
      "dst"_a, "data0"_a, "data1"_a, "initial"_a, "op0"_a, "op1"_a, "reverse0"_a = false,
      "reverse1"_a = false, "name"_a = nb::none());
  isa.def(
      "topk",
      [](const Tensor& val_dst, const Tensor& idx_dst, const Tensor& src, std::int64_t n,
         const Name& name) { return emit(TopK{val_dst, idx_dst, src, n}, name); },
      "val_dst"_a, "idx_dst"_a, "src"_a, "n"_a, "name"_a = nb::none());
}

}  // namespace trena::bindings
