"""Element types as NKI names them, and their counterparts in NumPy, ml_dtypes and PyTorch.

One object per type: `str()` is the canonical name, equality and hash agree with that name (so a dtype and
its name are one dictionary key), and NumPy accepts the object wherever it wants a dtype (nki.md §6.3).
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from trena import _core
from trena.errors import UsageError


class dtype(_core.DType):
    """One element type. `name` is canonical; `itemsize` is in bytes; `dtype` is what NumPy stores it in."""

    def __init__(self, name: str, storage: np.dtype):
        super().__init__(name)
        self._name = name
        self._hash = hash(name)
        self._storage = storage

    name = property(lambda self: self._name)
    dtype = property(lambda self: self._storage)
    itemsize = property(lambda self: self._storage.itemsize)

    def __str__(self) -> str:
        return self._name

    __repr__ = __str__

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other) -> bool:
        if other is self:
            return True
        if isinstance(other, str):
            return other == self._name
        counterpart = _counterpart(other)
        return NotImplemented if counterpart is None else counterpart is self

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return from_name, (self._name,)


def _counterpart(other):
    """The element type that a dtype of NumPy, ml_dtypes, PyTorch or JAX stands for; None for other objects.

    Equal as NumPy's own dtypes are equal to such objects: without an equal hash.
    """
    if isinstance(other, dtype):
        return other
    is_scalar_type = isinstance(other, type) and issubclass(other, np.generic)
    foreign = type(other).__module__.partition(".")[0] in ("torch", "jax") and type(other).__name__ != "Tensor"
    if not (isinstance(other, np.dtype) or is_scalar_type or foreign):
        return None
    try:
        return as_dtype(other)
    except UsageError:
        return None


# NKI's name -> what NumPy stores it in. tfloat32 is kept in float32; an x4 element is one field with the bits of
# its four values, so that the dtype's own text says what it is.
_STORAGE = {
    "bool": np.bool_,
    "int8": np.int8,
    "uint8": np.uint8,
    "int16": np.int16,
    "uint16": np.uint16,
    "int32": np.int32,
    "uint32": np.uint32,
    "int64": np.int64,
    "uint64": np.uint64,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "tfloat32": np.float32,
    "float64": np.float64,
    "float8_e4m3": ml_dtypes.float8_e4m3,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e3m4": ml_dtypes.float8_e3m4,
    "float8_e8m0fnu": ml_dtypes.float8_e8m0fnu,
    "float8_e4m3fn_x4": [("float8_e4m3fn_x4", "<u4")],
    "float8_e5m2_x4": [("float8_e5m2_x4", "<u4")],
    "float4_e2m1fn_x4": [("float4_e2m1fn_x4", "<u2")],
}

ALL = {name: dtype(name, np.dtype(storage)) for name, storage in _STORAGE.items()}
for _type in ALL.values():
    _core.register_dtype(_type)

_ALIASES = {"bool_": "bool", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "tf32": "tfloat32"}
_known: dict = dict(ALL)
_known.update({alias: ALL[name] for alias, name in _ALIASES.items()})


def from_name(name: str) -> dtype:
    return ALL[name]


def as_dtype(wanted) -> dtype:
    """The element type meant by an NKI dtype, a name, or a dtype of NumPy, ml_dtypes, PyTorch or JAX."""
    if type(wanted) is dtype:
        return wanted
    wanted = "None" if wanted is None else wanted  # of which NumPy makes float64
    try:
        return _known[wanted]
    except (KeyError, TypeError):
        pass
    found = _foreign(wanted)
    if found is None:
        raise UsageError(
            "a dtype is one of nki.language's element types or its counterpart in NumPy or PyTorch",
            id="unknown-dtype",
            here=f"{wanted!r}",
            limit=", ".join(ALL),
        )
    try:
        _known[wanted] = found
    except TypeError:
        pass
    return found


def _foreign(wanted) -> dtype | None:
    text = str(wanted)
    if text.startswith("torch."):
        return ALL.get(text[len("torch.") :])
    if isinstance(wanted, str):
        return ALL.get(wanted.rsplit(".", 1)[-1])
    try:
        found = np.dtype(wanted)
    except TypeError:
        return None
    return ALL.get(found.names[0] if found.names and len(found.names) == 1 else found.name)


SHORT = {
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "tfloat32": "tf32",
    "float64": "f64",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
}


def short(wanted) -> str:
    """The name as reports print it: bf16, f32, fp8_e4m3 …"""
    name = str(wanted)
    return SHORT.get(name, name.replace("float8", "fp8").replace("float4", "fp4"))
