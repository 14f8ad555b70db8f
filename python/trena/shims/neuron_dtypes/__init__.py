"""neuron_dtypes as kernel libraries use it: casts between NumPy arrays of the device's element types."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from trena import dtypes as _dtypes

globals().update({name: dtype.dtype for name, dtype in _dtypes.ALL.items()})

# x4 type -> the type of each of its four values, and its bits.
_PACKED = {
    "float8_e4m3fn_x4": (ml_dtypes.float8_e4m3fn, 8),
    "float8_e5m2_x4": (ml_dtypes.float8_e5m2, 8),
    "float4_e2m1fn_x4": (ml_dtypes.float4_e2m1fn, 4),
}


def static_cast(x, dtype):
    """`x` in another element type. To an x4 type the last axis shrinks by four, from one it grows by four."""
    x = np.asarray(x)
    source, target = _dtypes.as_dtype(x.dtype).name, _dtypes.as_dtype(dtype)
    if source == target.name:
        return x
    if source in _PACKED:
        x = _unpack(x, source)
    if target.name in _PACKED:
        return _pack(x, target.name)
    return x.astype(target.dtype)


def _pack(x, name):
    element, bits = _PACKED[name]
    values = np.ascontiguousarray(np.asarray(x, np.float32).astype(element)).view(np.uint8)
    if bits == 4:
        values = (values[..., 0::2] & 15) | (values[..., 1::2] << 4)
    return np.ascontiguousarray(values).view(_dtypes.ALL[name].dtype)


def _unpack(x, name):
    element, bits = _PACKED[name]
    values = np.ascontiguousarray(x).view(np.uint8)
    if bits == 4:
        values = np.stack([values & 15, values >> 4], axis=-1).reshape(*values.shape[:-1], -1)
    return values.view(element).astype(np.float32)


def sizeinbytes(dtype) -> int:
    """Bytes of one element."""
    return _dtypes.as_dtype(dtype).itemsize


def finfo(dtype):
    """Limits of a floating-point type; of its values for an x4 type."""
    known = _dtypes.as_dtype(dtype)
    return ml_dtypes.finfo(_PACKED[known.name][0] if known.name in _PACKED else known.dtype)


def is_float_type(dtype) -> bool:
    """Is it a floating-point type?"""
    return _dtypes.as_dtype(dtype).is_float
