"""nl.add, nl.exp …: one object that is an operator for an instruction and a function on tiles (nki.md §5.2-16).

As an operator it is `_core.Operator`. Called, it makes an SBUF tile and emits the instructions that fill it;
the choice of engine is Trena's where the vendor documents none.
"""

from __future__ import annotations

import functools
import types

import numpy as np

from trena import _core, argument_types, dtypes
from trena import launch as _launch
from trena.errors import Error, UsageError

from trena.nki import isa as _isa  # its missing instructions say "not modelled"
_float32 = dtypes.ALL["float32"]
_int32 = dtypes.ALL["int32"]


def guarded(function, name):
    """The function, with errors of Python that only say where an unsuitable argument went wrong as one of ours."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            if isinstance(error, Error):  # some of ours are also Python's
                raise
            named = argument_types.translate(error) if isinstance(error, TypeError) else None
            if named is not None:
                raise named from None
            raise UsageError("an argument has a type and a value that the function takes", id="argument-type",
                             here=f"{name}: {error}") from error

    return call


def guard_functions(module: dict, label: str, but=()) -> None:
    """Guards each public function that this module defines, as `label`.name; not those that call the kernel's own."""
    for name, value in list(module.items()):
        own = isinstance(value, types.FunctionType) and value.__module__ == module["__name__"]
        if own and name[0] != "_" and name not in but:
            module[name] = guarded(value, f"{label}.{name}")


class Operator(_core.Operator):
    """Equality and hash follow the name."""

    def __init__(self, name: str, call, doc: str):
        super().__init__(name)
        self.__name__ = self.__qualname__ = name
        self.__doc__ = doc
        self._call = guarded(call, f"nl.{name}")

    def __call__(self, *args, **kwargs):
        return self._call(*args, **kwargs)

    def __eq__(self, other):
        return self is other or (isinstance(other, Operator) and other.name == self.name)

    def __hash__(self):
        return hash(self.name)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return _find, (self.__name__,)


def _find(name):
    return TABLE[name]


# ---- What the composites share -----------------------------------------------------------------------


def tile(shape, dtype, space="sbuf"):
    """A new tile of the running kernel."""
    return _launch.require("nki.language").tensor(space, "local", tuple(shape), dtypes.as_dtype(dtype))


def is_tile(value) -> bool:
    return isinstance(value, _core.Tensor)


def result_dtype(x, y, dtype):
    """dtype= when given; else the type both operands fit in; numbers do not count."""
    if dtype is not None:
        return dtypes.as_dtype(dtype)
    tiles = [v for v in (x, y) if is_tile(v)]
    first = tiles[0].dtype
    if len(tiles) == 1 or tiles[1].dtype == first:
        return first
    try:
        return dtypes.as_dtype(np.promote_types(first.dtype, tiles[1].dtype.dtype))
    except (TypeError, UsageError):
        return _float32


def same_shape(x, y, name):
    if tuple(x.shape) != tuple(y.shape):
        raise UsageError(
            "a binary function of nki.language takes two tiles of equal shape, or a tile and a number",
            id="shape-mismatch", here=f"nl.{name}: {list(x.shape)} and {list(y.shape)}",
            fix="broadcast the smaller one as a view, or use tensor_scalar for [P, 1]",
        )


def elementwise(op, x, y, dtype=None):
    """dst = x op y with any device operator; one side may be a number."""
    if is_tile(x) and is_tile(y):
        same_shape(x, y, op.name)
        dst = tile(x.shape, result_dtype(x, y, dtype))
        _isa.tensor_tensor(dst=dst, data1=x, data2=y, op=op)
    elif is_tile(x):
        dst = tile(x.shape, result_dtype(x, y, dtype))
        _isa.tensor_scalar(dst=dst, data=x, op0=op, operand0=y)
    elif is_tile(y):
        dst = tile(y.shape, result_dtype(x, y, dtype))
        _isa.tensor_scalar(dst=dst, data=y, op0=op, operand0=x, reverse0=True)
    else:
        raise UsageError("at least one side is a tile", id="tile-expected", here=f"nl.{op.name}({x!r}, {y!r})")
    return dst


def activate(op, x, dtype=None):
    dst = tile(x.shape, x.dtype if dtype is None else dtype)
    _isa.activation(dst=dst, op=op, data=x)
    return dst


def scale(x, op, number, dtype=None, reverse=False):
    dst = tile(x.shape, x.dtype if dtype is None else dtype)
    _isa.tensor_scalar(dst=dst, data=x, op0=op, operand0=number, reverse0=reverse)
    return dst


def cast(x, dtype, space="sbuf"):
    dst = tile(x.shape, dtype, space)
    _isa.tensor_copy(dst=dst, src=x)
    return dst


# ---- Functions that are no single operator -----------------------------------------------------------


def divide(x, y, dtype=None):
    if not is_tile(y):
        return scale(x, TABLE["multiply"], 1.0 / y, result_dtype(x, y, dtype))
    inverse = tile(y.shape, _float32)
    _isa.reciprocal(dst=inverse, data=y)
    return elementwise(TABLE["multiply"], x, inverse, result_dtype(x, y, dtype))


def reciprocal(x, dtype=None):
    dst = tile(x.shape, x.dtype if dtype is None else dtype)
    _isa.reciprocal(dst=dst, data=x)
    return dst


def copy(x, dtype=None):
    return cast(x, x.dtype if dtype is None else dtype)


def negative(x, dtype=None):
    return scale(x, TABLE["multiply"], -1.0, dtype)


def absolute(x, dtype=None):
    return activate(TABLE["abs"], x, dtype)


def invert(x, dtype=None):
    return scale(x, TABLE["bitwise_xor"], -1 if x.dtype.name.startswith("int") else 2 ** (8 * x.dtype.itemsize) - 1,
                 dtype)


def logical_not(x, dtype=None):
    return scale(x, TABLE["equal"], 0.0, dtype)


def _rounded(x):
    """x rounded to an integer (half to even), kept in float32: the cast on the way out does it."""
    return cast(cast(x, _int32), _float32)


def _corrected(x, comparison, correction, dtype):
    """Rounding to nearest and then one step where it went the wrong way; |x| below 2^31."""
    nearest = _rounded(x)
    wrong = elementwise(TABLE[comparison], nearest, x, _float32)
    return elementwise(TABLE[correction], nearest, wrong, x.dtype if dtype is None else dtype)


def floor(x, dtype=None):
    return _corrected(x, "greater", "subtract", dtype)


def ceil(x, dtype=None):
    return _corrected(x, "less", "add", dtype)


def trunc(x, dtype=None):
    magnitude = floor(absolute(x, _float32))
    sign = activate(TABLE["sign"], x, _float32)
    return elementwise(TABLE["multiply"], magnitude, sign, x.dtype if dtype is None else dtype)


def _remainder(x, y, rounding, dtype):
    whole = rounding(divide(x, y, _float32))
    product = elementwise(TABLE["multiply"], whole, y, _float32)
    return elementwise(TABLE["subtract"], x, product, result_dtype(x, y, dtype))


def _full_like(number, like):
    dst = tile(like.shape, _float32)
    _isa.memset(dst=dst, value=float(number))
    return dst


def mod(x, y, dtype=None):
    return _remainder(x if is_tile(x) else _full_like(x, y), y, floor, dtype)


def fmod(x, y, dtype=None):
    return _remainder(x if is_tile(x) else _full_like(x, y), y, trunc, dtype)


def _wrapped_angle(x, shift):
    """x + shift brought into [-pi, pi], where the sine table is valid (hw.md §3.5)."""
    turns = scale(x, TABLE["add"], shift + np.pi, _float32)
    remainder = mod(turns, 2 * np.pi, _float32)
    return scale(remainder, TABLE["subtract"], np.pi, _float32)


def sin(x, dtype=None):
    return activate(TABLE["sin"], _wrapped_angle(x, 0.0), x.dtype if dtype is None else dtype)


def cos(x, dtype=None):
    return activate(TABLE["sin"], _wrapped_angle(x, np.pi / 2), x.dtype if dtype is None else dtype)


def tan(x, dtype=None):
    return divide(sin(x, _float32), cos(x, _float32), x.dtype if dtype is None else dtype)


# ---- Reductions --------------------------------------------------------------------------------------


def reduced_shape(x, axis, keepdims):
    axes = {a % x.ndim for a in ((axis,) if isinstance(axis, int) else tuple(axis))}
    shape = tuple(1 if k in axes else n for k, n in enumerate(x.shape) if keepdims or k not in axes)
    return shape if len(shape) > 1 else (shape[0], 1)  # a tile has a free axis


def reduce(op, x, axis, dtype=None, keepdims=False, negate=False):
    dst = tile(reduced_shape(x, axis, keepdims), x.dtype if dtype is None else dtype)
    axis = (axis % x.ndim,) if isinstance(axis, int) else tuple(a % x.ndim for a in axis)
    _isa.tensor_reduce(dst=dst, op=op, data=x, axis=axis, negate=negate, keepdims=keepdims)
    return dst


def _reduction(operator_name):
    def call(x, axis, dtype=None, keepdims=False):
        return reduce(TABLE[operator_name], x, axis, dtype, keepdims)

    return call


# ---- The table ---------------------------------------------------------------------------------------


def _binary(name):
    return lambda x, y, dtype=None: elementwise(TABLE[name], x, y, dtype)


def _binary_or_column(name):
    """The vendor gives these a [P, 1] tile on the right, as tensor_scalar takes it, though it gives it to no other."""
    def call(x, y, dtype=None):
        if is_tile(x) and is_tile(y) and tuple(y.shape) == (x.shape[0], 1) and x.ndim == 2:
            return scale(x, TABLE[name], y, result_dtype(x, y, dtype))
        return elementwise(TABLE[name], x, y, dtype)

    return call


def _unary(name):
    return lambda x, dtype=None: activate(TABLE[name], x, dtype)


_BINARY = {
    "add": "x + y", "subtract": "x - y", "multiply": "x * y", "maximum": "the larger of x and y",
    "minimum": "the smaller of x and y", "abs_max": "x where |x| > |y|, else y", "abs_min": "x where |x| < |y|, else y",
    "power": "x to the power of y", "equal": "1 where x == y, else 0",
    "not_equal": "1 where x != y, else 0", "less": "1 where x < y, else 0", "less_equal": "1 where x <= y, else 0",
    "greater": "1 where x > y, else 0", "greater_equal": "1 where x >= y, else 0",
    "bitwise_and": "x & y on raw bits", "bitwise_or": "x | y on raw bits", "bitwise_xor": "x ^ y on raw bits",
    "left_shift": "x << y on raw bits", "right_shift": "x >> y, filling with zeros",
    "logical_and": "x and y as truth values",
    "logical_or": "x or y as truth values", "logical_xor": "exactly one of x and y as truth values",
}
_UNARY = {
    "exp": "e to the power of x", "log": "natural logarithm", "sqrt": "square root", "rsqrt": "1 / sqrt(x)",
    "tanh": "hyperbolic tangent", "sigmoid": "1 / (1 + exp(-x))", "relu": "max(x, 0)", "gelu": "x times the normal CDF",
    "gelu_apprx_sigmoid": "x * sigmoid(1.702 x)", "gelu_apprx_tanh": "GELU by its tanh approximation",
    "gelu_dx": "derivative of gelu", "gelu_apprx_sigmoid_dx": "derivative of gelu_apprx_sigmoid",
    "silu": "x * sigmoid(x)", "silu_dx": "derivative of silu", "softplus": "log(1 + exp(x))",
    "mish": "x * tanh(softplus(x))", "erf": "error function", "erf_dx": "derivative of erf",
    "arctan": "inverse tangent", "square": "x * x", "sign": "-1, 0 or 1",
}
_COMPOSED = {
    "divide": (divide, "x / y: the reciprocal of y, multiplied"), "reciprocal": (reciprocal, "1 / x"),
    "copy": (copy, "a copy on SBUF, cast when dtype= is given"), "negative": (negative, "-x"), "abs": (absolute, "|x|"),
    "invert": (invert, "~x on raw bits"), "logical_not": (logical_not, "1 where x is 0, else 0"),
    "floor": (floor, "the integer below"), "ceil": (ceil, "the integer above"),
    "trunc": (trunc, "the integer towards 0"),
    "mod": (mod, "x - floor(x / y) * y"), "fmod": (fmod, "x - trunc(x / y) * y"), "sin": (sin, "sine of any angle"),
    "cos": (cos, "cosine of any angle"), "tan": (tan, "tangent of any angle"),
}


def _no_call(name):
    def call(*args, **kwargs):
        raise UsageError(f"nl.{name} is an operator of instructions, not a function", id="operator-not-callable",
                         here=f"nl.{name}(…)")

    return call


TABLE: dict[str, Operator] = {}
for _name, _text in _BINARY.items():
    TABLE[_name] = Operator(_name, _binary(_name), f"{_text}, element by element.")
for _name in ("abs_max", "abs_min"):
    TABLE[_name] = Operator(_name, _binary_or_column(_name), f"{_BINARY[_name]}, element by element.")
for _name, _text in _UNARY.items():
    TABLE[_name] = Operator(_name, _unary(_name), f"{_text}, element by element (ScalarE).")
for _name, (_function, _text) in _COMPOSED.items():
    TABLE[_name] = Operator(_name, _function, f"{_text}, element by element.")
for _name in ("average", "bypass", "prelu"):
    TABLE[_name] = Operator(_name, _no_call(_name), "Operator of instructions.")


class _Reduction(Operator):
    """nl.max is a function on tiles; as an operator it stands for maximum (older kernels)."""

    def __init__(self, python_name, operator_name, doc):
        super().__init__(operator_name, _reduction(operator_name), doc)
        self.__name__ = self.__qualname__ = python_name


REDUCTIONS = {
    "sum": _Reduction("sum", "add", "Sum over free axes."),
    "max": _Reduction("max", "maximum", "Maximum over free axes."),
    "min": _Reduction("min", "minimum", "Minimum over free axes."),
    "prod": _Reduction("prod", "multiply", "Product over free axes."),
    "all": _Reduction("all", "logical_and", "1 where every element along free axes is non-zero."),
}
