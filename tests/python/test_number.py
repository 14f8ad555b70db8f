"""Casts against ml_dtypes and NumPy: every 8- and 16-bit pattern both ways, and every rounding midpoint."""

import numpy as np
import pytest

ml_dtypes = pytest.importorskip("ml_dtypes")
_core = pytest.importorskip("trena._core")

FLOATS = [
    "float16",
    "bfloat16",
    "float8_e4m3",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e3m4",
    "float8_e8m0fnu",
]
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32"]


def numpy_type(name):
    """tfloat32 lives in 32 bits, as float32 does."""
    return np.dtype(getattr(ml_dtypes, name, "float32" if name == "tfloat32" else name))


def bits_type(name):
    return np.dtype(f"u{numpy_type(name).itemsize}")


def cast(array, source, destination):
    result = _core.cast_bytes(np.ascontiguousarray(array).view(np.uint8), source, destination)
    return np.frombuffer(result, bits_type(destination))


def every_pattern(name):
    kind = bits_type(name)
    return np.arange(2 ** (8 * kind.itemsize), dtype=np.uint32).astype(kind)


def float32_patterns():
    """Every upper half of a float32 with lower halves on, below and above the midpoints of every format."""
    high = np.arange(65536, dtype=np.uint32) << 16
    low = [0, 1, 0x0FFF, 0x1000, 0x1001, 0x2000, 0x3000, 0x7FFF, 0x8000, 0x8001, 0xFFFF]
    return np.concatenate([high | np.uint32(bits) for bits in low]).view(np.float32)


@pytest.mark.parametrize("name", FLOATS + INTEGERS[:4])
def test_every_code_decodes(name):
    codes = every_pattern(name)
    with np.errstate(invalid="ignore"):
        expected = codes.view(numpy_type(name)).astype(np.float32)
    got = cast(codes, name, "float32").view(np.float32)
    nan = np.isnan(expected)
    assert (np.isnan(got) == nan).all()
    assert (np.signbit(got[nan]) == np.signbit(expected[nan])).all()
    assert (got[~nan].view(np.uint32) == expected[~nan].view(np.uint32)).all()


@pytest.mark.parametrize("name", FLOATS)
def test_every_rounding(name):
    values = float32_patterns()
    if name == "float8_e8m0fnu":
        # ml_dtypes rounds float32 denormals up; Trena to the nearer power of two.
        values = values[np.abs(values) >= 2.0**-126]
    with np.errstate(over="ignore", invalid="ignore"):
        reference = values.astype(numpy_type(name))
        nan = np.isnan(reference.astype(np.float32))
    got = cast(values, "float32", name)
    with np.errstate(invalid="ignore"):
        assert (np.isnan(got.view(numpy_type(name)).astype(np.float32)) == nan).all()
    assert (got[~nan] == reference.view(bits_type(name))[~nan]).all()


@pytest.mark.parametrize("name", INTEGERS)
def test_floats_become_integers(name):
    values = float32_patterns()
    limits = np.iinfo(name)
    with np.errstate(invalid="ignore"):
        whole = np.nan_to_num(np.rint(values.astype(np.float64)), nan=0, posinf=1e300, neginf=-1e300)
    expected = np.clip(whole, limits.min, limits.max).astype(name)
    assert (cast(values, "float32", name).view(name) == expected).all()


def test_tfloat32_keeps_ten_bits():
    values = float32_patterns()
    values = values[np.isfinite(values)]
    bits = values.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x0FFF + ((bits >> 13) & 1)) & ~np.uint64(0x1FFF)
    assert (cast(values, "float32", "tfloat32") == rounded.astype(np.uint32)).all()


def test_every_fp4_code_means_what_ml_dtypes_says():
    codes = every_pattern("uint16")
    if not hasattr(_core, "unpack_x4"):
        pytest.skip("this build has no unpack_x4")
    got = np.frombuffer(_core.unpack_x4(codes.view(np.uint8), "float4_e2m1fn_x4"), np.float32)
    digits = np.stack([(codes >> shift) & 15 for shift in (0, 4, 8, 12)], 1).astype(np.uint8)
    expected = digits.view(ml_dtypes.float4_e2m1fn).astype(np.float32).ravel()
    assert (got.view(np.uint32) == expected.view(np.uint32)).all()
