"""What legacy instructions share: operators, operands, results."""

from __future__ import annotations

from trena import dtypes
from trena.errors import UsageError
from trena.nki import isa as _isa
from trena.nki.language import operators as _operators
from trena.nki_legacy.tile import MatmulTile, PendingTile, Tile, limits_for, limits_of, new_tensor, rows_of, untouched

TABLE = _operators.TABLE
FLOAT32 = dtypes.ALL["float32"]

# NumPy functions that older kernels pass as operators (nki.md §5.2-16).
_NUMPY_NAMES = {
    "amax": "maximum", "max": "maximum", "amin": "minimum", "min": "minimum", "sum": "add", "prod": "multiply",
    "absolute": "abs", "true_divide": "divide", "float_power": "power", "bitwise_not": "invert",
}


def op_of(op):
    """The operator meant by an NKI or NumPy function."""
    if op is None or isinstance(op, _operators.Operator):
        return op
    name = getattr(op, "__name__", str(op))
    name = _NUMPY_NAMES.get(name, name)
    if name not in TABLE:
        raise UsageError("an operator is a function of nki.language or its counterpart in NumPy", id="operator-unknown",
                         here=f"op={op!r}")
    return TABLE[name]


def operand(value, limits=None):
    """A number as it is; a tile as a tensor, its rows cut as the result's."""
    if not isinstance(value, Tile):
        return None if value is None else float(value) if isinstance(value, bool) else value
    if limits:
        limits = [limits[0]] + [(0, size) for size in value.shape[1:]]
    return value.resolve(limits or None)


def column(value, limits=None):
    """A [P, 1] operand of tensor_scalar or activation: float32, as the engines want it."""
    tensor = operand(value, limits)
    if not isinstance(value, Tile) or tensor.dtype == FLOAT32 or tensor.dtype.is_integer:
        return tensor
    wide = new_tensor(tensor.shape, FLOAT32)
    _isa.tensor_copy(dst=wide, src=tensor)
    return wide


def on_sbuf(tile: Tile, limits=None):
    """The tensor of `tile`, copied out of PSUM when it is there."""
    tensor = tile.resolve(limits)
    if tile.space != "psum":
        return tensor
    staged = new_tensor(tensor.shape, tensor.dtype)
    _isa.tensor_copy(dst=staged, src=tensor)
    return staged


def result(shape, dtype, mask, emit, spaces=("sbuf", "psum")):
    """A pending result. `emit(dst, limits)` gets the limits that the mask leaves of `shape`."""
    limits = limits_of(mask, shape)
    return PendingTile(shape, dtype, lambda dst: emit(dst, limits), spaces, limits)


def streaming(instruction, data, dtype, limits, **arguments):
    """dst = instruction(data=…): result in the shape of `data`, of which `limits` (from limits_for) are computed."""
    if limits == []:
        return untouched(data.shape, dtype or data.nki_dtype, limits)
    source = data.resolve(limits)
    return PendingTile(data.shape, dtype or data.nki_dtype, lambda dst: instruction(dst=dst, data=source, **arguments),
                       limits=limits)


def reduction(op, data, axis, dtype, mask, negate=False, keepdims=False):
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    axes = tuple(sorted(a % data.ndim for a in axes))
    limits = limits_for(mask, data)
    shape = _operators.reduced_shape(data, axes, keepdims)
    kept = rows_of(limits, shape)
    if limits == []:
        return untouched(shape, dtype or data.nki_dtype, limits)
    source = data.resolve(limits)
    order = [d for d in range(data.ndim) if d not in axes] + list(axes)
    if order != list(range(data.ndim)) and not keepdims:  # the engine reduces the innermost axes of a pattern
        source, axes = source.permute(tuple(order)), tuple(range(data.ndim - len(axes), data.ndim))
    return PendingTile(
        shape, dtype or data.nki_dtype,
        lambda dst: _isa.tensor_reduce(dst=dst, op=op_of(op), data=source, axis=axes, negate=negate, keepdims=keepdims),
        limits=kept,
    )


def product(stationary: Tile, moving: Tile, mask=None, **hints):
    """stationary.T @ moving in PSUM; the mask cuts each operand by the indices it was made with."""
    left = on_sbuf(stationary, _own_limits(mask, stationary))
    right = on_sbuf(moving, _own_limits(mask, moving))
    skip = 2 if "perf_mode" in hints else 1  # double row: the pairs are part of the contraction
    rows, columns = left.shape[skip], right.shape[skip:]
    shape = (stationary.shape[skip],) + tuple(moving.shape[skip:])
    limits = None if mask is None else [(0, rows)] + [(0, n) for n in columns]
    return MatmulTile(shape, FLOAT32, lambda dst: _isa.nc_matmul(dst=dst, stationary=left, moving=right, **hints),
                      ("psum",), limits)


def _own_limits(mask, tile):
    if mask is None or isinstance(mask, bool):
        return None
    axes = tile.axes()
    limits = mask.limits(tile.shape, axes)
    if axes is None:  # a whole tile: only its partition axis is certain to be meant
        limits = [limits[0]] + [(0, n) for n in tile.shape[1:]]
    return limits
