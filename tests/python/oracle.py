"""What NumPy and ml_dtypes say an element type does: the other side of the tests of instructions."""

import ml_dtypes
import numpy as np


def host_type(name):
    """The NumPy type of an NKI element type; Trainium's float8_e4m3 is the IEEE-like one of ml_dtypes."""
    if name == "tfloat32":
        return np.dtype(np.float32)
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def rounded(values, name):
    """Float32 (or exact integers) into an element type: nearest even; integers saturate, NaN becomes 0."""
    kind = host_type(name)
    values = np.asarray(values)
    if kind.kind in "iu" and values.dtype.kind == "f":
        whole = np.nan_to_num(np.rint(values.astype(np.float64)), nan=0.0, posinf=np.inf, neginf=-np.inf)
        return np.clip(whole, np.iinfo(kind).min, np.iinfo(kind).max).astype(kind)
    if kind.kind == "b":
        return values != 0
    if kind.kind in "iu":
        return values.astype(kind)
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float32).astype(kind)


def as_wide(values, name):
    """What an engine sees: float32; 32-bit integers stay exact for those that keep them."""
    values = np.asarray(values)
    return values if name in ("int32", "uint32") else values.astype(np.float32)
