"""MX tiles of trn3 (hw.md §3.6) against an oracle of NumPy and ml_dtypes."""

import ml_dtypes
import numpy as np
import pytest

import trena
import trena.nki as nki
import trena.nki.isa as nisa
import trena.nki.language as nl
from trena import errors

GENERATOR = np.random.default_rng(3)
ELEMENT = {"float8_e4m3fn_x4": ml_dtypes.float8_e4m3fn, "float8_e5m2_x4": ml_dtypes.float8_e5m2}
LARGEST_EXPONENT = {"float8_e4m3fn_x4": 8, "float8_e5m2_x4": 15}


def simulate(kernel, *arguments, target="trn3", **keywords):
    return trena.simulate(kernel, target=target)(*arguments, **keywords).outputs


def groups(values):
    """[P, F] as [P/8, 8, F/4, 4]: a group is 8 partitions x 4 neighbours."""
    p, f = values.shape
    return values.reshape(p // 8, 8, f // 4, 4)


def quantize(values, name):
    """(elements as bytes [P, F], scales [P/8, F/4])"""
    exact = values.astype(np.float64)
    largest = np.abs(groups(exact)).max(axis=(1, 3))
    with np.errstate(divide="ignore"):
        exponent = np.where(largest > 0, np.floor(np.log2(largest)) - (LARGEST_EXPONENT[name] - 1), -127)
    exponent = np.maximum(exponent, -127)
    scaled = groups(exact) / 2.0 ** exponent[:, None, :, None]
    return scaled.reshape(values.shape).astype(np.float32).astype(ELEMENT[name]), (exponent + 127).astype(np.uint8)


def in_quadrants(scales, partitions):
    """Scales where the device has them: four rows at the start of each quadrant."""
    if partitions == 32:
        return scales
    placed = np.zeros((partitions, scales.shape[1]), np.uint8)
    for group, row in enumerate(scales):
        placed[group // 4 * 32 + group % 4] = row
    return placed


def load(array, dtype=None):
    tile = nl.ndarray(array.shape, dtype=array.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=array)
    return tile if dtype is None else tile.view(dtype)


def store(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def quantize_kernel(source, name, offset=0):
    p, f = source.shape
    data = nl.ndarray((p, f // 4), dtype=getattr(nl, name), buffer=nl.sbuf)
    scale = nl.ndarray((4 + offset if p == 32 else p, f // 4), dtype=nl.uint8, buffer=nl.sbuf)
    nisa.memset(scale, value=77)
    nisa.quantize_mx(dst=data, src=load(source), dst_scale=scale[offset:])
    return store(data.view(nl.uint8)), store(scale)


@pytest.mark.parametrize("name", list(ELEMENT))
@pytest.mark.parametrize("partitions, offset", [(32, 0), (64, 4), (128, 12)])
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_quantize_mx(name, partitions, offset, dtype):
    spread = 2.0 ** GENERATOR.integers(-6, 7, (partitions, 64))
    source = (GENERATOR.standard_normal((partitions, 64)) * spread).astype(dtype)
    source[:8, :4] = 0  # an empty group has the smallest scale
    data, scale = simulate(quantize_kernel, source, name, offset)
    elements, scales = quantize(source, name)
    np.testing.assert_array_equal(data, elements.view(np.uint8))
    expected = np.full(scale.shape, 77, np.uint8)
    for group, row in enumerate(scales):
        expected[group // 4 * 32 + group % 4 + offset] = row
    np.testing.assert_array_equal(scale, expected)
    assert scale[offset, 0] == 0


def test_the_scale_is_twice_that_of_the_ocp_sample():
    source = np.full((32, 4), 448.0, ml_dtypes.bfloat16)
    data, scale = simulate(quantize_kernel, source, "float8_e4m3fn_x4")
    assert (scale == 127 + 1).all()  # floor(log2 448) - 8 is 0
    assert (data.view(ml_dtypes.float8_e4m3fn).astype(np.float32) == 224).all()


@nki.jit
def product_kernel(stationary, moving, stationary_scale, moving_scale, name, dtype=nl.float32, twice=False):
    a, b = load(stationary, getattr(nl, name)), load(moving, getattr(nl, name))
    sa, sb = load(stationary_scale), load(moving_scale)
    result = nl.ndarray((a.shape[1], b.shape[1]), dtype=dtype, buffer=nl.psum)
    for _ in range(2 if twice else 1):
        nisa.nc_matmul_mx(dst=result, stationary=a, moving=b, stationary_scale=sa, moving_scale=sb)
    return store(nl.copy(result))


def operand(partitions, columns, name):
    if name == "float4_e2m1fn_x4":
        values = GENERATOR.choice([0, 0.5, 1, 1.5, 2, 3, 4, 6], (partitions, columns, 4))
        values *= GENERATOR.choice([-1, 1], values.shape)
        nibbles = values.astype(ml_dtypes.float4_e2m1fn).view(np.uint8).astype(np.uint16) & 15
        packed = sum(nibbles[..., q] << (4 * q) for q in range(4)).astype(np.uint16)
    else:
        elements = GENERATOR.standard_normal((partitions, columns, 4)).astype(ELEMENT[name])
        values = elements.astype(np.float64)
        packed = elements.view(np.uint32)[..., 0]
    scales = GENERATOR.integers(120, 134, (partitions // 8, columns), dtype=np.uint8)
    exact = values * 2.0 ** (np.repeat(scales.astype(np.float64), 8, axis=0)[..., None] - 127)
    return packed, in_quadrants(scales, partitions), exact


@pytest.mark.parametrize("name", ["float8_e4m3fn_x4", "float8_e5m2_x4", "float4_e2m1fn_x4"])
@pytest.mark.parametrize("partitions", [32, 128])
def test_nc_matmul_mx(name, partitions):
    a, sa, exact_a = operand(partitions, 64, name)
    b, sb, exact_b = operand(partitions, 96, name)
    got = simulate(product_kernel, a, b, sa, sb, name)
    expected = np.einsum("kmq,knq->mn", exact_a, exact_b)
    size = np.einsum("kmq,knq->mn", np.abs(exact_a), np.abs(exact_b))
    assert (np.abs(got - expected) <= size * 2.0**-22).all()
    twice = simulate(product_kernel, a, b, sa, sb, name, twice=True)
    np.testing.assert_array_equal(twice, 2 * got)
    small = simulate(product_kernel, a, b, sa, sb, name, dtype=nl.bfloat16)
    np.testing.assert_array_equal(small, got.astype(ml_dtypes.bfloat16))


def test_scales_far_apart_meet_in_the_product():
    ones = np.full((32, 2, 4), 1, ml_dtypes.float8_e4m3fn).view(np.uint32)[..., 0]
    small, large = np.full((4, 2), 0, np.uint8), np.full((4, 2), 254, np.uint8)
    got = simulate(product_kernel, ones, ones, small, large, "float8_e4m3fn_x4")
    assert (got == 128).all()  # 32 x 4 ones, 2^-127 x 2^127
    small[0, 0] = 255
    got = simulate(product_kernel, ones, ones, small, large, "float8_e4m3fn_x4")
    assert np.isnan(got[0]).all() and (got[1] == 128).all()


def refused(kernel, *arguments, target="trn3"):
    with pytest.raises(errors.IllegalInstruction) as caught:
        simulate(kernel, *arguments, target=target)
    return caught.value.id


def test_what_the_hardware_refuses():
    a, sa, _ = operand(128, 64, "float8_e4m3fn_x4")
    b, sb, _ = operand(128, 96, "float8_e4m3fn_x4")
    name = "float8_e4m3fn_x4"
    assert refused(product_kernel, a, b, sa, sb, name, target="trn2") == "not-on-this-machine"
    assert refused(product_kernel, a, b, sa[:64], sb, name) == "mx-layout"
    assert refused(product_kernel, a, b, sa[:, :32], sb, name) == "mx-layout"
    assert refused(product_kernel, a[:, :63], b, sa[:, :63], sb, name) == "mx-layout"
    assert refused(product_kernel, a[:40], b[:40], sa[:40], sb[:40], name) == "mx-layout"
    assert refused(quantize_kernel, np.zeros((128, 8), ml_dtypes.bfloat16), name, 2) == "mx-layout"
    assert refused(quantize_kernel, np.zeros((128, 8), np.float32), name) == "dtype-refused"
