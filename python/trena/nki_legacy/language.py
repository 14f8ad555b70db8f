"""neuronxcc.nki.language: tensors with block dimensions, affine indices, and functions that return tiles."""

from __future__ import annotations

import numpy as _np

from trena import dtypes as _dtypes, errors as _errors
from trena import launch as _launch
from trena.nki import isa as _isa
from trena.nki import language as _current
from trena.nki.language import ds, private_hbm, psum, sbuf, shared_hbm  # noqa: F401
from trena.nki.language import operators as _operators
from trena.nki.objects import PLACES as _PLACES
from trena.nki_legacy.compiler import Allocator as _Allocator
from trena.nki_legacy.index import Affine as _Affine
from trena.nki_legacy.index import Loop as _Loop
from trena.nki_legacy.index import arange, mgrid  # noqa: F401
from trena.nki_legacy.instructions import (
    FLOAT32 as _FLOAT32, TABLE as _TABLE, column as _column, on_sbuf as _on_sbuf, op_of as _op_of,
    operand as _operand, product as _product,
    reduction as _reduction, streaming as _streaming,
)
from trena.nki_legacy.tile import BlockTile as _BlockTile
from trena.nki_legacy.tile import ParDim as _ParDim
from trena.nki_legacy.tile import PendingTile as _PendingTile
from trena.nki_legacy.tile import Tile as _Tile
from trena.nki_legacy.tile import limits_for as _limits_for
from trena.nki_legacy.tile import limits_of as _limits_of
from trena.nki_legacy.tile import move as _move
from trena.nki_legacy.tile import new_tensor as _new_tensor
from trena.nki_legacy.tile import restrict as _restrict
from trena.nki_legacy.tile import rows_of as _rows_of
from trena.nki_legacy.tile import untouched as _untouched

_max, _min, _range = max, min, range  # nl.max and nl.min hide the built-ins below

# The dtypes of this API are NumPy's.
int8, int16, int32 = _np.int8, _np.int16, _np.int32
uint8, uint16, uint32 = _np.uint8, _np.uint16, _np.uint32
float16, float32, bool_ = _np.float16, _np.float32, _np.bool_
bfloat16 = _dtypes.ALL["bfloat16"].dtype
float8_e4m3 = _dtypes.ALL["float8_e4m3"].dtype
float8_e5m2 = _dtypes.ALL["float8_e5m2"].dtype
tfloat32 = _dtypes.ALL["tfloat32"]
hbm = private_hbm


class fp32:
    """Limits of float32."""

    min = -3.4028234663852886e38
    max = 3.4028234663852886e38


tile_size = _current.tile_size
par_dim = _ParDim


# ---- Tensors -----------------------------------------------------------------------------------------


def ndarray(shape, dtype, *, buffer=None, name="", **ignored):
    """A new tensor, unwritten. Dimensions before nl.par_dim count blocks; without it dimension 0 is the partitions."""
    allocator = buffer if isinstance(buffer, _Allocator) else None
    space, role = _PLACES[allocator.region if allocator else buffer or sbuf]
    sizes = tuple(int(n) for n in shape)
    dtype = _dtypes.as_dtype(dtype)
    core = _launch.require("nl.ndarray")
    if space == "hbm":
        return _Tile(core.tensor(space, role, sizes, dtype, name or ""))
    blocks = next((k for k, n in enumerate(shape) if isinstance(n, _ParDim)), 0)

    def make(block):
        address = allocator.address(block, sizes[blocks:], dtype.itemsize) if allocator else None
        label = name + "".join(f"_{k}" for k in block) if name else ""
        tile = _Tile(_new_tensor(sizes[blocks:], dtype, space, address, label))
        tile._fresh = True
        return tile

    return _BlockTile(sizes[:blocks], sizes[blocks:], make, dtype, space) if blocks else make(())


def zeros(shape, dtype, *, buffer=None, name="", **ignored):
    """A new tensor of zeros. In PSUM the zeros are written only if something reads them before a matmul."""
    tile = ndarray(shape, dtype, buffer=buffer, name=name)
    if isinstance(tile, _BlockTile):
        make = tile._make
        tile._make = lambda block: _zeroed(make(block))
        return tile
    return _zeroed(tile)


def _zeroed(tile):
    if tile.space == "psum":
        tile._zero = True
    elif tile.space == "hbm":
        _current._fill_hbm(tile.resolve(), 0)
    else:
        _isa.memset(dst=tile.resolve(), value=0)
    return tile


def full(shape, fill_value, dtype, *, buffer=None, name="", **ignored):
    """A new tensor of one number."""
    tile = ndarray(shape, dtype, buffer=buffer, name=name)
    if tile.space == "hbm":
        _current._fill_hbm(tile.resolve(), fill_value)
    else:
        tile.assign(fill_value)
    return tile


def ones(shape, dtype, *, buffer=None, name="", **ignored):
    """A new tensor of ones."""
    return full(shape, 1, dtype, buffer=buffer, name=name)


def zeros_like(a, dtype=None, *, buffer=None, name="", **ignored):
    """Zeros in the shape of `a`."""
    return zeros(a.shape, dtype or a.nki_dtype, buffer=buffer, name=name)


def empty_like(a, dtype=None, *, buffer=None, name="", **ignored):
    """Unwritten, in the shape of `a`."""
    return ndarray(a.shape, dtype or a.nki_dtype, buffer=buffer, name=name)


def rand(shape, dtype=_np.float32, **ignored):
    """Uniform random numbers in [0, 1)."""
    return _Tile(_current.rand(tuple(int(n) for n in shape), dtype))


def random_seed(seed, *, mask=None, **ignored):
    """Seeds rand."""
    _current.random_seed(seed.resolve() if isinstance(seed, _Tile) else _current.full((1, 1), seed, "uint32"))


def shared_constant(constant, dtype=None, **ignored):
    """HBM that holds an array known before the launch."""
    array = _np.asarray(constant)
    return _Tile(_current.shared_constant(array if dtype is None else array.astype(_dtypes.as_dtype(dtype).dtype)))


def shared_identity_matrix(n, dtype=_np.uint8, **ignored):
    """The identity as a constant in HBM: load it."""
    return shared_constant(_np.eye(n), dtype)


def load(src, *, mask=None, dtype=None, **ignored):
    """A tile with the values of an HBM tensor."""
    limits = _limits_of(mask, src.shape)
    shape = src.shape if len(src.shape) > 1 else src.shape + (1,)  # a vector lies along the partitions
    if limits == []:
        return _untouched(shape, dtype or src.nki_dtype, limits)
    source = src.resolve(limits)
    place = limits if limits is None or len(limits) > 1 else limits + [(0, 1)]
    return _PendingTile(shape, dtype or src.nki_dtype, lambda dst: _move(dst, source), ("sbuf",), place)


def store(dst, value, *, mask=None, **ignored):
    """Writes a tile to an HBM tensor."""
    if not isinstance(value, _Tile):
        value = full(dst.shape, value, dst.nki_dtype)
    limits = _limits_of(mask, dst.shape)
    if limits != []:
        same_rank = value.ndim == dst.ndim
        source = value.resolve(limits if same_rank else _padded(limits, value))
        _move(dst.resolve(limits), source)


def _padded(limits, value):
    """Limits of a 1-D destination for a [1, F] tile."""
    return None if limits is None else [(0, n) for n in value.shape[: value.ndim - len(limits)]] + list(limits)


def load_transpose2d(src, *, mask=None, dtype=None, **ignored):
    """A tile with the transpose of a 2-D HBM tensor."""
    source = src.resolve(_limits_of(mask, src.shape))
    rows, columns = source.shape
    return _PendingTile((columns, rows), dtype or src.nki_dtype, lambda dst: _isa.dma_transpose(dst=dst, src=source),
                        ("sbuf",))


def atomic_rmw(dst, value, op, *, mask=None, **ignored):
    """dst = op(dst, value) in HBM: loaded, combined, stored."""
    limits = _limits_of(mask, dst.shape)
    if limits == []:
        return
    target, addend = dst.resolve(limits), value.resolve(limits)
    old = _new_tensor(target.shape, target.dtype)
    _isa.dma_copy(dst=old, src=target)
    _isa.tensor_tensor(dst=old, data1=old, data2=addend, op=_op_of(op))
    _isa.dma_copy(dst=target, src=old)


# ---- Loops and the grid ------------------------------------------------------------------------------

affine_range = sequential_range = static_range = _Loop


class _Cores:
    """nl.nc(2) * k in a launch grid: that axis is spread over physical cores."""

    def __init__(self, count, times=1):
        self.count, self.times = count, times

    def __mul__(self, other):
        return _Cores(self.count, self.times * int(other))

    __rmul__ = __mul__

    def __int__(self):
        return self.count * self.times


nc = _Cores


def spmd_dim(size, *cores):
    """An axis of the launch grid."""
    return cores[0] * size if cores and isinstance(cores[0], _Cores) else size


def _grid():
    return getattr(_launch.require("nl.program_id").launch, "legacy_grid", ())


def program_id(axis):
    """Index of this instance along an axis of the launch grid."""
    position = getattr(_launch.require("nl.program_id").launch, "legacy_position", ())
    return position[axis] if position else 0


def num_programs(axes=None):
    """Instances along some axes, or in all."""
    grid = _grid()
    chosen = _range(len(grid)) if axes is None else (axes,) if isinstance(axes, int) else axes
    return int(_np.prod([grid[a] for a in chosen if a < len(grid)], initial=1))


def program_ndim():
    """Axes of the launch grid."""
    return len(_grid())


def device_print(prefix, x, *, mask=None, **ignored):
    """Prints the values a tile has now."""
    print(prefix, _launch.to_array(x.resolve(_limits_of(mask, x.shape))) if isinstance(x, _Tile) else x)


# ---- Functions on tiles ------------------------------------------------------------------------------


def _is_column(small, large):
    return small[0] == large[0] and _np.prod(small[1:]) == 1 < _np.prod(large[1:])


def elementwise(op, x, y, dtype=None, mask=None, engine=_isa.unknown_engine):
    """x op y. Free axes of size 1 are repeated; one side may be a number."""
    if not isinstance(x, _Tile) or not isinstance(y, _Tile):
        return _with_number(op, x, y, dtype, mask)
    shape = _common_shape(x.shape, y.shape)
    dtype = dtype or _operators.result_dtype(x.resolve(), y.resolve(), None)
    limits = _limits_for(mask, x, y, shape=shape)
    if limits == []:
        return _untouched(shape, dtype, limits)
    if not _dtypes.as_dtype(dtype).is_integer and engine == _isa.unknown_engine:
        if _is_column(y.shape, x.shape):
            return _streaming(_isa.tensor_scalar, x, dtype, limits, op0=op, operand0=_column(y, limits))
        if _is_column(x.shape, y.shape):
            return _streaming(_isa.tensor_scalar, y, dtype, limits, op0=op, operand0=_column(x, limits), reverse0=True)
    left, right = _spread(x, shape, limits), _spread(y, shape, limits)
    if x.space == y.space == "psum":  # the two inputs may not both be there (nki.md §5.3-18)
        staged = _new_tensor(right.shape, right.dtype)
        _isa.tensor_copy(dst=staged, src=right)
        right = staged
    return _PendingTile(shape, dtype, lambda dst: _isa.tensor_tensor(dst=dst, data1=left, data2=right, op=op,
                                                                     engine=engine),
                        limits=limits)


def _common_shape(*shapes):
    """Partitions first: a tile of fewer free axes has those behind its partitions repeated, as _spread does."""
    rank = _max(len(shape) for shape in shapes)
    return tuple(_np.broadcast_shapes(*((shape[0], *(1,) * (rank - len(shape)), *shape[1:]) for shape in shapes)))


def _with_number(op, x, y, dtype, mask):
    if isinstance(x, _Tile):
        return _streaming(_isa.tensor_scalar, x, dtype, _limits_for(mask, x), op0=op, operand0=y)
    return _streaming(_isa.tensor_scalar, y, dtype, _limits_for(mask, y), op0=op, operand0=x, reverse0=True)


def _spread(tile, shape, limits):
    """The tensor of a tile as `shape`, cut to limits."""
    if tile.shape == shape:
        return tile.resolve(limits)
    view = tile.resolve()
    while view.ndim < len(shape):
        view = view.expand_dim(1)
    if view.shape[0] != shape[0]:
        view = _current._spread_partitions(view, shape[0], view.dtype)
    for axis, size in enumerate(shape):
        if axis > 0 and view.shape[axis] != size:
            view = view.broadcast(axis, size)
    return _restrict(view, limits)


def combine_into(target, name, x, y):
    """target = x op y, written where target lies: what `t[...] += y` does."""
    tile = elementwise(_TABLE[name], x, y, target.nki_dtype)
    target.assign(tile)


class _Function(_operators.Operator):
    """A function of this API that is an operator too."""


def _binary(name):
    return lambda x, y, *, dtype=None, mask=None, **ignored: elementwise(_TABLE[name], x, y, dtype, mask)


def _comparison(name):
    return lambda x, y, *, dtype=_np.bool_, mask=None, **ignored: elementwise(_TABLE[name], x, y, dtype, mask)


def _unary(name):
    return lambda x, *, dtype=None, mask=None, **ignored: _streaming(_isa.activation, x, dtype, _limits_for(mask, x),
                                                                     op=_TABLE[name])


def _on_part(function, operands, dtype, mask):
    """function(*operands) of what a mask leaves, in a tile of the full shape."""
    tiles = [t for t in operands if isinstance(t, _Tile)]
    shape = _common_shape(*(t.shape for t in tiles))
    limits = _limits_for(mask, *tiles, shape=shape)
    if limits == []:
        return _untouched(shape, dtype or tiles[0].nki_dtype, limits)
    tensors = [_spread(t, shape, limits) if isinstance(t, _Tile) else t for t in operands]
    return _in_full(function(*tensors, dtype=dtype), shape, limits)


def _in_full(part, shape, limits):
    """A tile of the full shape of which `part` is what `limits` leave."""
    if limits is None or tuple(part.shape) == tuple(shape):
        return _Tile(part)
    return _PendingTile(shape, part.dtype, lambda dst: _isa.tensor_copy(dst=dst, src=part), limits=limits)


def _over_free_axes(function, x, axis, dtype, mask, **keywords):
    """function(x, axis) of the rows that a mask leaves: the result has all rows."""
    limits = _limits_for(mask, x)
    if limits == []:
        shape = _operators.reduced_shape(x, axis, keywords.get("keepdims", False))
        return _untouched(shape, dtype or x.nki_dtype, limits)
    part = function(x.resolve(limits), axis, dtype, **keywords)
    shape = (x.shape[0], *part.shape[1:])
    return _in_full(part, shape, _rows_of(limits, shape))


def _composed(name):
    """A function of the current API on whole tiles."""
    function = getattr(_current, name)

    def call(*operands, dtype=None, mask=None, **ignored):
        return _on_part(function, operands, dtype, mask)

    return call


_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or",
                "logical_xor")
for _name in _operators._BINARY:
    _call = _comparison(_name) if _name in _COMPARISONS else _binary(_name)
    globals()[_name] = _Function(_name, _call, _TABLE[_name].__doc__)
for _name in _operators._UNARY:
    globals()[_name] = _Function(_name, _unary(_name), _TABLE[_name].__doc__)
for _name in ("reciprocal", "negative", "abs", "invert", "logical_not", "floor", "ceil", "trunc", "mod",
              "fmod",
              "sin", "cos", "tan"):
    globals()[_name] = _Function(_name, _composed(_name), _TABLE[_name].__doc__)


def _divide(x, y, *, dtype=None, mask=None, **ignored):
    """x / y; by a column as a product with the reciprocals of its few elements."""
    if not isinstance(y, _Tile):
        return multiply(x, 1.0 / y, dtype=dtype, mask=mask)
    if not (isinstance(x, _Tile) and _is_column(y.shape, x.shape)):
        return _composed("divide")(x, y, dtype=dtype, mask=mask)
    limits = _limits_for(mask, x, y)
    dtype = dtype or _operators.result_dtype(x.resolve(), y.resolve(), None)
    if limits == []:
        return _untouched(x.shape, dtype, limits)
    divisor = _operand(y, limits)
    inverse = _new_tensor(divisor.shape, _FLOAT32)
    _isa.reciprocal(dst=inverse, data=divisor)
    return _streaming(_isa.tensor_scalar, x, dtype, limits, op0=_TABLE["multiply"], operand0=inverse)


divide = _Function("divide", _divide, _TABLE["divide"].__doc__)


def copy(src, *, mask=None, dtype=None, **ignored):
    """A copy on the chip, cast when dtype is given."""
    from trena.nki_legacy import isa

    return isa.tensor_copy(src, mask=mask, dtype=dtype)


def static_cast(input_data, dtype):
    """A copy in another dtype; arrays of the host stay there (scripts cast their inputs with it)."""
    if isinstance(input_data, (_np.ndarray, _np.generic)):
        return input_data.astype(_dtypes.as_dtype(dtype).dtype)
    return copy(input_data, dtype=dtype)


def _reducing(name, operator_name):
    def call(x, axis, *, dtype=None, mask=None, keepdims=False, **ignored):
        return _reduction(_TABLE[operator_name], x, axis, dtype, mask, keepdims=keepdims)

    function = _Function(operator_name, call, _operators.REDUCTIONS[name].__doc__)
    function.__name__ = name
    return function


for _name, _operator in (("sum", "add"), ("max", "maximum"), ("min", "minimum"), ("prod", "multiply"),
                         ("all", "logical_and")):
    globals()[_name] = _reducing(_name, _operator)


def _axes(axis):
    return axis if isinstance(axis, int) else tuple(axis)


def mean(x, axis, *, dtype=None, mask=None, keepdims=False, **ignored):
    """Arithmetic mean over free axes."""
    return _over_free_axes(_current.mean, x, _axes(axis), dtype, mask, keepdims=keepdims)


def var(x, axis, *, dtype=None, mask=None, **ignored):
    """Variance over the free axes."""
    return _over_free_axes(_current.var, x, _axes(axis), dtype, mask)


def softmax(x, axis, *, dtype=None, compute_dtype=None, mask=None, **ignored):
    """exp(x - max) / sum over the free axes."""
    return _on_part(lambda part, dtype: _current.softmax(part, _axes(axis), dtype), [x], dtype, mask)


def rms_norm(x, w, axis, n, epsilon=1e-06, *, dtype=None, compute_dtype=None, mask=None, **ignored):
    """x / sqrt(sum(x²) / n + epsilon) * w."""
    def normed(part, weights, dtype):
        return _current.rms_norm(part, weights, _axes(axis), n, epsilon, dtype, compute_dtype)

    return _on_part(normed, [x, w], dtype, mask)


def where(condition, x, y, *, dtype=None, mask=None, **ignored):
    """x where the condition is not zero, else y."""
    def chosen(*tensors, dtype):
        return _current.where(*map(_packed, tensors), dtype=dtype)

    return _on_part(chosen, [condition, x, y], dtype, mask)


def _packed(tensor):
    """Without repeated elements, which a destination must not have."""
    repeats = _operators.is_tile(tensor) and 0 in [s for s, n in zip(tensor.strides, tensor.shape) if n > 1]
    return _operators.cast(tensor, tensor.dtype) if repeats else tensor


def dropout(x, rate, *, dtype=None, mask=None, **ignored):
    """x with elements zeroed with probability rate."""
    from trena.nki_legacy import isa

    return isa.dropout(x, rate, mask=mask, dtype=dtype)


def expand_dims(data, axis):
    """A view with a new axis of size 1."""
    return data.expand_dims(axis)


def broadcast_to(src, *, shape, **ignored):
    """A tile of that shape with axes of size 1 repeated."""
    shape = tuple(int(n) for n in shape)
    limits = _limits_for(None, src) if src.shape[0] == shape[0] else None
    if limits == []:
        return _untouched(shape, src.nki_dtype, limits)
    part = src.resolve(limits)
    return _in_full(_current.broadcast_to(part, (part.shape[0] if limits else shape[0], *shape[1:])), shape,
                    _rows_of(limits, shape))


def transpose(x, *, dtype=None, mask=None, **ignored):
    """The transpose of a 2-D tile."""
    from trena.nki_legacy import isa

    return isa.nc_transpose(x, dtype=dtype, mask=mask)


def matmul(x, y, *, transpose_x=False, mask=None, **ignored):
    """x @ y in PSUM; transpose_x=True: x is already [K, M]."""
    if not transpose_x:
        x = copy(_Tile(_transposed(x)))
        x.resolve()
    return _product(x, y, mask)


def _transposed(x):
    source = _on_sbuf(x)
    dst = _new_tensor((source.shape[1], source.shape[0]), source.dtype, "psum")
    _isa.nc_transpose(dst=dst, data=source, engine=_isa.tensor_engine)
    return dst


def gather_flattened(data, indices, *, mask=None, dtype=None, **ignored):
    """dst[p, i] = data[p, indices[p, i]]."""
    source, rows = data.resolve(), indices.resolve()
    return _PendingTile(indices.shape, dtype or data.nki_dtype,
                        lambda dst: _isa.nc_n_gather(dst=dst, data=source, indices=rows))


def loop_reduce(x, op, loop_indices, *, dtype=None, mask=None, **ignored):
    """The reduction of `x` over the iterations of loops; complete when they have ended."""
    core = _launch.require("nl.loop_reduce")
    indices = loop_indices if isinstance(loop_indices, (list, tuple)) else [loop_indices]
    outermost = _min(index.loop.serial for index in indices) if indices else 0
    sums = core.launch.__dict__.setdefault("loop_sums", {})
    key = (*_errors.users_line(), outermost)
    if key not in sums:
        sums[key] = copy(x, dtype=dtype)
        sums[key].resolve()
    else:
        combine_into(sums[key], _op_of(op).name, sums[key], x)
    return sums[key]


def gemm_moving_grid():
    """Indices of the moving operand of a product."""
    return mgrid[0 : tile_size.pmax, 0 : tile_size.gemm_moving_fmax]


def finfo(dtype):
    """Limits of a floating-point dtype."""
    import ml_dtypes

    return ml_dtypes.finfo(_dtypes.as_dtype(dtype).dtype)


_operators.guard_functions(globals(), "nl")
