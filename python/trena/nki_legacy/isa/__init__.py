"""neuronxcc.nki.isa: instructions that return tiles. Rules, values and costs are those of trena.nki.isa."""

from __future__ import annotations

from trena import dtypes
from trena.errors import NotModelled
from trena.nki import isa as _isa
from trena.nki.isa import (  # noqa: F401  the same enums
    dge_mode, dma_engine, engine, get_nc_version, gpsimd_engine, nc_version, oob_mode, reduce_cmd, scalar_engine,
    tensor_engine, unknown_engine, vector_engine,
)
from trena.nki.language import operators as _operators
from trena.nki_legacy.index import Affine, Mask
from trena.nki_legacy.instructions import (
    FLOAT32, column, on_sbuf, op_of, operand, product, reduction, result, streaming,
)
from trena.nki_legacy.tile import PendingTile, limits_for, limits_of, rows_of, untouched

FLOAT32_MIN = -3.4028234663852886e38


class _Fp32:
    """nisa.fp32.min: the most negative float32."""

    min = FLOAT32_MIN


fp32 = _Fp32()


def nc_matmul(stationary, moving, *, is_stationary_onezero=False, is_moving_onezero=False, is_transpose=False,
              tile_position=(), tile_size=(), perf_mode=None, mask=None, **ignored):
    """stationary[K, M].T @ moving[K, N] in PSUM; `psum[...] += nc_matmul(…)` accumulates."""
    fast = {"perf_mode": _isa.matmul_perf_mode.double_row} if perf_mode not in (None, "none") else {}
    return product(stationary, moving, mask, is_stationary_onezero=is_stationary_onezero,
                   is_moving_onezero=is_moving_onezero, is_transpose=is_transpose, tile_position=tuple(tile_position),
                   tile_size=tuple(tile_size), **fast)


def nc_transpose(data, *, mask=None, dtype=None, engine=unknown_engine, **ignored):
    """data.T: by the tensor engine into PSUM, or by the vector engine for 32 x 32."""
    source = data.resolve(limits_of(mask, data.shape))
    small = max(source.shape[0], _free(source)) <= 32
    by_vector = engine == vector_engine or (engine == unknown_engine and small)
    if not by_vector and data.space == "psum":
        source = on_sbuf(data)
    chosen = vector_engine if by_vector else tensor_engine
    shape = (_free(source), source.shape[0])
    return PendingTile(shape, dtype or data.nki_dtype,
                       lambda dst: _isa.nc_transpose(dst=dst, data=source, engine=chosen),
                       ("sbuf", "psum") if by_vector else ("psum",))


def _free(tensor):
    count = 1
    for n in tensor.shape[1:]:
        count *= n
    return count


def activation(op, data, *, bias=None, scale=1.0, reduce_op=None, reduce_res=None, reduce_cmd=reduce_cmd.idle,
               mask=None,
               dtype=None, **ignored):
    """op(scale * data + bias) on the scalar engine."""
    limits = limits_for(mask, data, bias)
    extra = {}
    if bias is not None:
        extra["bias"] = operand(bias, limits)
    if reduce_op is not None:
        extra.update(reduce_op=op_of(reduce_op), reduce_cmd=reduce_cmd)
        if reduce_res is not None:
            extra["reduce_res"] = operand(reduce_res, limits)
    return streaming(_isa.activation, data, dtype, limits, op=op_of(op), scale=column(scale, limits), **extra)


def activation_reduce(op, data, *, reduce_op, reduce_res, bias=None, scale=1.0, mask=None, dtype=None, **ignored):
    """activation, and its sum along the free axis into reduce_res."""
    limits = limits_for(mask, data, bias)
    extra = {} if bias is None else {"bias": operand(bias, limits)}
    tile = streaming(_isa.activation_reduce, data, dtype, limits, op=op_of(op), reduce_op=op_of(reduce_op),
                     reduce_res=operand(reduce_res, limits), scale=column(scale, limits), **extra)
    return _now(tile)


def _now(tile):
    """For instructions with a second result: emitted at once, so that the other one is written too."""
    tile.resolve()
    return tile


def tensor_reduce(op, data, axis, *, mask=None, dtype=None, negate=False, keepdims=False, **ignored):
    """data reduced over its last free axes."""
    return reduction(op, data, axis, dtype, mask, negate, keepdims)


def tensor_partition_reduce(op, data, *, mask=None, dtype=None, **ignored):
    """data reduced over partitions: [1, F]."""
    source = data.resolve(limits_of(mask, data.shape))
    return PendingTile((1,) + tuple(data.shape[1:]), dtype or data.nki_dtype,
                       lambda dst: _isa.tensor_partition_reduce(dst=dst, op=op_of(op), data=source))


def tensor_tensor(data1, data2, op, *, dtype=None, mask=None, engine=unknown_engine, **ignored):
    """data1 op data2."""
    from trena.nki_legacy import language

    return language.elementwise(op_of(op), data1, data2, dtype, mask, engine)


def tensor_tensor_scan(data0, data1, initial, op0, op1, reverse0=False, reverse1=False, *, dtype=None, mask=None,
                       **ignored):
    """Running state along the free axis: s = (data0 op0 s) op1 data1."""
    limits = limits_for(mask, data0, data1)
    first, second, start = data0.resolve(limits), data1.resolve(limits), operand(initial, limits)
    return PendingTile(data0.shape, dtype or data0.nki_dtype, lambda dst: _isa.tensor_tensor_scan(
        dst=dst, data0=first, data1=second, initial=start, op0=op_of(op0), op1=op_of(op1), reverse0=reverse0,
        reverse1=reverse1), limits=limits)


def scalar_tensor_tensor(*, data, op0, operand0, op1, operand1, reverse0=False, reverse1=False, dtype=None, mask=None,
                         **ignored):
    """(data op0 operand0) op1 operand1, operand1 a tile."""
    limits = limits_for(mask, data, operand0, operand1)
    return streaming(_isa.scalar_tensor_tensor, data, dtype, limits, op0=op_of(op0), operand0=column(operand0, limits),
                     op1=op_of(op1), operand1=operand1.resolve(limits), reverse0=reverse0, reverse1=reverse1)


def tensor_scalar(data, op0, operand0, reverse0=False, op1=None, operand1=None, reverse1=False, *, dtype=None,
                  mask=None,
                  engine=unknown_engine, **ignored):
    """(data op0 operand0) op1 operand1, operands numbers or [P, 1]."""
    limits = limits_for(mask, data, operand0, operand1)
    return streaming(_isa.tensor_scalar, data, dtype, limits, op0=op_of(op0), operand0=column(operand0, limits),
                     reverse0=reverse0, op1=op_of(op1), operand1=column(operand1, limits), reverse1=reverse1,
                     engine=engine)


def tensor_scalar_reduce(*, data, op0, operand0, reduce_op, reduce_res, reverse0=False, dtype=None, mask=None,
                         **ignored):
    """tensor_scalar with one operator, and its reduction along the free axis into reduce_res."""
    limits = limits_for(mask, data, operand0)
    return _now(streaming(_isa.tensor_scalar_reduce, data, dtype, limits, op0=op_of(op0),
                          operand0=column(operand0, limits),
                          reduce_op=op_of(reduce_op), reduce_res=operand(reduce_res, limits), reverse0=reverse0))


def tensor_scalar_cumulative(*, src, dst=None, op0, op1, imm0, imm1=None, reduce_cmd=reduce_cmd.reset_reduce, mask=None,
                             dtype=None, **ignored):
    """src op0 imm0, and a running reduction by op1 along the free axis."""
    source, extra = src.resolve(), {}
    if imm1 is not None and reduce_cmd == _isa.reduce_cmd.load_reduce:  # else there is nothing to load
        extra = {"imm1": column(imm1)}
    tile = PendingTile(src.shape, dtype or src.nki_dtype, lambda out: _isa.tensor_scalar_cumulative(
        dst=out, src=source, op0=op_of(op0), op1=op_of(op1), imm0=column(imm0), reduce_cmd=reduce_cmd, **extra))
    if dst is not None:
        dst.assign(tile)
    return _now(tile)


def tensor_copy(src, *, mask=None, dtype=None, engine=unknown_engine, **ignored):
    """A copy on the chip."""
    limits = limits_for(mask, src)
    if limits == []:
        return untouched(src.shape, dtype or src.nki_dtype, limits)
    source = src.resolve(limits)
    return PendingTile(src.shape, dtype or src.nki_dtype,
                       lambda dst: _isa.tensor_copy(dst=dst, src=source, engine=engine), limits=limits)


def tensor_copy_predicated(*, src, dst, predicate, reverse_pred=False, mask=None, dtype=None, **ignored):
    """dst = src where predicate is not zero."""
    limits = limits_of(mask, dst.shape)
    if limits != []:
        _isa.tensor_copy_predicated(dst=dst.resolve(limits), src=operand(src, limits),
                                    predicate=_truth(predicate.resolve(limits)), reverse_pred=reverse_pred)


def _truth(predicate):
    """A predicate as the engine wants it: a bool is a byte of 0 or 1."""
    return predicate.view(dtypes.ALL["uint8"]) if predicate.dtype.name == "bool" else predicate


def reciprocal(data, *, dtype=None, mask=None, **ignored):
    """1 / data."""
    return streaming(_isa.reciprocal, data, dtype, limits_for(mask, data))


def memset(shape, value, dtype, *, mask=None, engine=unknown_engine, **ignored):
    """A tile of one number."""
    return result(shape, dtype, mask, lambda dst, limits: _isa.memset(dst=dst, value=value, engine=engine))


def dma_copy(*, dst, src, mask=None, dst_rmw_op=None, oob_mode=oob_mode.error, dge_mode=dge_mode.unknown, **ignored):
    """dst = src by DMA; dst_rmw_op=nl.add adds to what is there."""
    if dst_rmw_op is not None:
        from trena.nki_legacy import language

        return language.atomic_rmw(dst, src, dst_rmw_op, mask=mask)
    limits = limits_of(mask, dst.shape)
    if limits != []:
        _isa.dma_copy(dst=dst.resolve(limits), src=src.resolve(limits), oob_mode=oob_mode, dge_mode=dge_mode)
    return dst


def dma_transpose(src, *, axes=None, mask=None, dtype=None, **ignored):
    """src with its axes reversed, by DMA."""
    source = src.resolve(limits_of(mask, src.shape))
    order = tuple(axes) if axes else tuple(reversed(range(source.ndim)))
    return PendingTile(tuple(source.shape[a] for a in order), dtype or src.nki_dtype,
                       lambda dst: _isa.dma_transpose(dst=dst, src=source, axes=order), ("sbuf",))


def _affine_pattern(expression: Affine):
    """offset, multiplier per partition and [[step, count], …] of an index expression."""
    rank = max(2, expression.rank)
    steps, sizes = [0] * rank, [1] * rank
    for axis, coefficient in expression.terms.items():
        dim = axis.dim + rank - axis.rank
        steps[dim] += coefficient
        sizes[dim] = axis.size
    pattern = [[steps[d], sizes[d]] for d in range(1, rank)]
    return expression.offset, steps[0], pattern, tuple(sizes)


def iota(expr, dtype, *, mask=None, **ignored):
    """The values of an index expression as a tile."""
    offset, multiplier, pattern, shape = _affine_pattern(expr)
    return result(shape, dtype, mask, lambda dst, limits: _isa.iota(
        dst=dst, pattern=pattern, offset=offset, channel_multiplier=multiplier))


def affine_select(pred, on_true_tile, on_false_value, *, mask=None, dtype=None, **ignored):
    """on_true_tile where an affine condition of the indices holds, else a number."""
    from trena.nki_legacy.instructions import TABLE

    if not isinstance(pred, Mask) or len(pred.conditions) != 1:
        raise NotModelled("affine_select takes one comparison", id="not-modelled", here="pred=…")
    offset, multiplier, pattern, _ = _affine_pattern(pred.conditions[0])
    pattern = [[step, size] for (step, _), size in zip(pattern, on_true_tile.shape[1:])]
    source = on_true_tile.resolve()
    return PendingTile(on_true_tile.shape, dtype or on_true_tile.nki_dtype, lambda dst: _isa.affine_select(
        dst=dst, pattern=pattern, channel_multiplier=multiplier, on_true_tile=source, on_false_value=on_false_value,
        cmp_op=TABLE["greater_equal"], offset=offset))


def _per_row(data, width, dtype, mask, emit):
    """A result of `width` elements per partition; emit(dst, source) gets the rows to compute."""
    limits = limits_for(mask, data)
    if limits == []:
        return untouched((data.shape[0], width), dtype, limits)
    source = data.resolve(limits)
    return PendingTile((data.shape[0], width), dtype, lambda dst: emit(dst, source),
                       limits=rows_of(limits, (data.shape[0], width)))


def bn_stats(data, *, mask=None, dtype=None, **ignored):
    """Statistics of even and odd elements: [P, 6]."""
    return _per_row(data, 6, dtype or FLOAT32, mask, lambda dst, source: _isa.bn_stats(dst=dst, data=source))


def bn_aggr(data, *, mask=None, dtype=None, **ignored):
    """Mean and variance of bn_stats results: [P, 2]."""
    return _per_row(data, 2, dtype or FLOAT32, mask, lambda dst, source: _isa.bn_aggr(dst=dst, data=source))


def dropout(data, prob, *, mask=None, dtype=None, **ignored):
    """data with elements zeroed with probability prob."""
    return streaming(_isa.dropout, data, dtype, limits_for(mask, data), prob=operand(prob))


def max8(*, src, mask=None, dtype=None, **ignored):
    """The eight largest values per partition."""
    return _per_row(src, 8, dtype or src.nki_dtype, mask, lambda dst, source: _isa.max8(dst=dst, src=source))


def nc_find_index8(*, data, vals, mask=None, dtype=None, **ignored):
    """Where each of eight values first occurs."""
    wanted = operand(vals, limits_for(mask, data, vals))
    return _per_row(data, vals.shape[1], dtype or dtypes.ALL["uint32"], mask,
                    lambda dst, source: _isa.nc_find_index8(dst=dst, data=source, vals=wanted))


def nc_match_replace8(*, data, vals, imm, dst_idx=None, mask=None, dtype=None, **ignored):
    """data with the first occurrence of each of eight values replaced."""
    return _now(streaming(_isa.nc_match_replace8, data, dtype, limits_for(mask, data), vals=vals.resolve(), imm=imm,
                          dst_idx=None if dst_idx is None else dst_idx.resolve()))


def nc_stream_shuffle(src, dst, shuffle_mask, *, dtype=None, mask=None, **ignored):
    """Moves partitions within quadrants."""
    limits = limits_of(mask, dst.shape)
    _isa.nc_stream_shuffle(dst=dst.resolve(limits), src=src.resolve(limits), shuffle_mask=list(shuffle_mask))


def local_gather(src_buffer, index, num_elem_per_idx=1, num_valid_indices=None, *, mask=None, **ignored):
    """Gathers along the free axis by index."""
    source, rows = src_buffer.resolve(), index.resolve()
    count = num_valid_indices or index.shape[1] * 16
    shape = (src_buffer.shape[0], count, num_elem_per_idx) if num_elem_per_idx > 1 else (src_buffer.shape[0], count)
    return PendingTile(shape, src_buffer.nki_dtype, lambda dst: _isa.local_gather(
        dst=dst, src_buffer=source, index=rows, num_elem_per_idx=num_elem_per_idx, num_valid_indices=num_valid_indices))


def sequence_bounds(*, segment_ids, dtype=None, **ignored):
    """First and one past the last position of each segment: [1, 2, n]."""
    source = segment_ids.resolve()
    return PendingTile((1, 2, segment_ids.shape[-1]), dtype or segment_ids.nki_dtype,
                       lambda dst: _isa.sequence_bounds(dst=dst, segment_ids=source))


def range_select(*, on_true_tile, comp_op0, comp_op1, bound0, bound1, reduce_cmd=reduce_cmd.idle, reduce_res=None,
                 reduce_op=None, range_start=0, on_false_value=FLOAT32_MIN, mask=None, dtype=None, **ignored):
    """on_true_tile where both comparisons of the element's index hold."""
    from trena.nki_legacy.instructions import TABLE

    source = on_true_tile.resolve(limits_of(mask, on_true_tile.shape))
    extra = {} if reduce_res is None else {"reduce_res": reduce_res.resolve(), "reduce_cmd": reduce_cmd}
    return _now(PendingTile(on_true_tile.shape, dtype or on_true_tile.nki_dtype, lambda dst: _isa.range_select(
        dst=dst, on_true_tile=source, comp_op0=op_of(comp_op0), comp_op1=op_of(comp_op1), bound0=bound0.resolve(),
        bound1=bound1.resolve(), reduce_op=op_of(reduce_op) or TABLE["maximum"], range_start=range_start,
        on_false_value=on_false_value, **extra)))


def select_reduce(*, dst, predicate, on_true, on_false, reduce_res=None, reduce_cmd=reduce_cmd.idle, reduce_op=None,
                  reverse_pred=False, mask=None, dtype=None, **ignored):
    """dst = on_true where predicate is set, else on_false."""
    from trena.nki_legacy.instructions import TABLE

    extra = {} if reduce_res is None else {"reduce_res": reduce_res.resolve(), "reduce_cmd": reduce_cmd}
    _isa.select_reduce(dst=dst.resolve(), predicate=_truth(predicate.resolve()), on_true=on_true.resolve(),
                       on_false=operand(on_false), reduce_op=op_of(reduce_op) or TABLE["maximum"],
                       reverse_pred=reverse_pred, **extra)


_operators.guard_functions(globals(), "nisa")
