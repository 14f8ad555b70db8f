"""The instructions of vector, scalar and GpSimd against NumPy, ml_dtypes and torch, over types and shapes."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trena.nki as nki
import trena.nki.isa as nisa
import trena.nki.language as nl

DTYPES = {
    "float32": np.float32, "bfloat16": ml_dtypes.bfloat16, "float16": np.float16, "float8_e5m2": ml_dtypes.float8_e5m2,
    "int8": np.int8, "uint8": np.uint8, "int16": np.int16, "int32": np.int32,
}
settings.register_profile("isa", deadline=None, max_examples=25)
settings.load_profile("isa")


def run(body, *arrays, out, target="trn2"):
    """body(dst, *tiles) on SBUF tiles; `out` is (shape, dtype name)."""
    shape, dtype = out

    @nki.jit
    def kernel(*tensors):
        tiles = []
        for tensor in tensors:
            tile = nl.ndarray(tensor.shape, dtype=tensor.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=tensor)
            tiles.append(tile)
        dst = nl.ndarray(shape, dtype=getattr(nl, dtype), buffer=nl.sbuf)
        body(dst, *tiles)
        result = nl.ndarray(shape, dtype=getattr(nl, dtype), buffer=nl.shared_hbm)
        nisa.dma_copy(dst=result, src=dst)
        return result

    return np.asarray(nki.simulate(kernel)(*arrays))


def cast(values, dtype):
    """float32 to the type as the hardware does: nearest even, integers saturate."""
    target = DTYPES[dtype]
    if np.issubdtype(target, np.integer):
        limits = np.iinfo(target)
        return np.clip(np.rint(values.astype(np.float64)), limits.min, limits.max).astype(target)
    return values.astype(np.float32).astype(target)


def numbers(seed, shape, dtype):
    generator = np.random.default_rng(seed)
    if np.issubdtype(DTYPES[dtype], np.integer):
        return generator.integers(0, 100, shape).astype(DTYPES[dtype])
    return generator.uniform(-50, 50, shape).astype(DTYPES[dtype])


tiles = st.tuples(st.sampled_from([1, 7, 32, 128]), st.sampled_from([1, 2, 17, 100, 700]))
dtypes = st.sampled_from(sorted(DTYPES))
seeds = st.integers(0, 1000)


@given(tiles, dtypes, dtypes, dtypes, st.sampled_from(["add", "subtract", "multiply", "maximum", "minimum"]), seeds)
def test_tensor_tensor(shape, left, right, result, name, seed):
    a, b = numbers(seed, shape, left), numbers(seed + 1, shape, right)
    found = run(lambda dst, x, y: nisa.tensor_tensor(dst=dst, data1=x, data2=y, op=getattr(nl, name),
                                                     engine=nisa.engine.vector),
                a, b, out=(shape, result))
    expected = getattr(np, name)(a.astype(np.float32), b.astype(np.float32))
    np.testing.assert_array_equal(found, cast(expected, result))


@given(tiles, dtypes, dtypes, st.booleans(), st.booleans(), seeds)
def test_tensor_scalar(shape, source, result, reverse0, reverse1, seed):
    data = numbers(seed, shape, source)
    lane = np.random.default_rng(seed).uniform(-2, 2, (shape[0], 1)).astype(np.float32)
    found = run(lambda dst, x, y: nisa.tensor_scalar(dst=dst, data=x, op0=nl.subtract, operand0=y, reverse0=reverse0,
                                                     op1=nl.subtract, operand1=3.25, reverse1=reverse1),
                data, lane, out=(shape, result))
    x = data.astype(np.float32)
    between = lane - x if reverse0 else x - lane
    expected = np.float32(3.25) - between if reverse1 else between - np.float32(3.25)
    np.testing.assert_array_equal(found, cast(expected, result))


@given(st.sampled_from([1, 32, 128]), st.sampled_from([(3, 4, 5), (1, 2, 40), (6, 1, 33)]), st.integers(1, 3), dtypes,
       st.booleans(), seeds)
def test_tensor_reduce(partitions, free, count, source, negate, seed):
    data = numbers(seed, (partitions, *free), source)
    axes = tuple(range(4 - count, 4))
    shape = data.shape[:4 - count] if count < 3 else (partitions, 1)
    for name, numpy in (("maximum", np.max), ("minimum", np.min), ("add", np.sum)):
        found = run(lambda dst, x: nisa.tensor_reduce(dst=dst, op=getattr(nl, name), data=x, axis=axes, negate=negate),
                    data, out=(shape, "float32"))
        expected = numpy(data.astype(np.float64), axis=axes).reshape(shape) * (-1 if negate else 1)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4 if name == "add" else 0)


FUNCTIONS = ("abs", "erf", "exp", "gelu", "mish", "relu", "sigmoid", "sign", "silu", "softplus", "square", "tanh")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_activation_against_torch(name):
    torch = pytest.importorskip("torch")
    data = np.random.default_rng(3).uniform(-4, 4, (128, 60)).astype(np.float32)
    bias = np.random.default_rng(4).uniform(-1, 1, (128, 1)).astype(np.float32)
    found = run(lambda dst, x, b: nisa.activation(dst=dst, op=getattr(nl, name), data=x, bias=b, scale=0.5), data, bias,
                out=(data.shape, "float32"))
    argument = data * np.float32(0.5) + bias
    function = getattr(torch, name, None) or getattr(torch.nn.functional, name)
    expected = function(torch.from_numpy(argument.astype(np.float64))).numpy()
    np.testing.assert_allclose(found, expected, rtol=3e-7, atol=1e-9)


@given(st.sampled_from([1, 40, 513]), seeds)
def test_softmax_in_five_instructions(columns, seed):
    data = numbers(seed, (64, columns), "float32") / 10

    def body(dst, x):
        top, total = (nl.ndarray((64, 1), dtype=nl.float32, buffer=nl.sbuf) for _ in range(2))
        nisa.tensor_reduce(dst=top, op=nl.maximum, data=x, axis=1, negate=True)
        nisa.activation(dst=x, op=nl.exp, data=x, bias=top, reduce_op=nl.add, reduce_res=total,
                        reduce_cmd=nisa.reduce_cmd.reset_reduce)
        nisa.reciprocal(dst=total, data=total)
        nisa.tensor_scalar(dst=dst, data=x, op0=nl.multiply, operand0=total)

    exponentials = np.exp(data.astype(np.float64) - data.max(axis=1, keepdims=True))
    expected = exponentials / exponentials.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(run(body, data, out=(data.shape, "float32")), expected, rtol=2e-6)


@given(st.sampled_from([1, 5, 300]), seeds)
def test_scan_is_a_linear_recurrence(columns, seed):
    decay = np.random.default_rng(seed).uniform(0, 1, (16, columns)).astype(np.float32)
    value = numbers(seed, (16, columns), "float32")
    found = run(lambda dst, a, b: nisa.tensor_tensor_scan(dst=dst, data0=a, data1=b, initial=0.0, op0=nl.multiply,
                                                          op1=nl.add),
                decay, value, out=(decay.shape, "float32"))
    state, expected = np.zeros(16, np.float32), np.empty_like(value)
    for i in range(columns):
        state = decay[:, i] * state + value[:, i]
        expected[:, i] = state
    np.testing.assert_array_equal(found, expected)


@given(st.lists(st.one_of(st.integers(0, 31), st.just(255)), min_size=32, max_size=32), st.sampled_from([32, 64, 128]))
def test_stream_shuffle(mask, partitions):
    data = np.arange(partitions * 3, dtype=np.int32).reshape(partitions, 3)
    kept = -data

    def body(dst, x, y):
        nisa.tensor_copy(dst=dst, src=y)
        nisa.nc_stream_shuffle(dst=dst, src=x, shuffle_mask=mask)

    expected = kept.copy()
    for p in range(partitions):
        if mask[p % 32] != 255:
            expected[p] = data[p // 32 * 32 + mask[p % 32]]
    np.testing.assert_array_equal(run(body, data, kept, out=(data.shape, "int32")), expected)


@given(st.integers(-5, 5), st.integers(-3, 3), st.integers(-20, 20),
       st.sampled_from(["equal", "not_equal", "greater", "greater_equal", "less", "less_equal"]))
def test_affine_select(step, multiplier, offset, name):
    data = numbers(1, (32, 24), "bfloat16")
    found = run(lambda dst, x: nisa.affine_select(dst=dst, pattern=[[step, 24]], channel_multiplier=multiplier,
                                                  on_true_tile=x,
                                                  on_false_value=-1.5, cmp_op=getattr(nl, name), offset=offset),
                data, out=(data.shape, "float32"))
    value = offset + multiplier * np.arange(32)[:, None] + step * np.arange(24)[None, :]
    np.testing.assert_array_equal(found, np.where(getattr(np, name)(value, 0), data.astype(np.float32),
                                                  np.float32(-1.5)))


def test_top_k_in_three_instructions():
    data = np.random.default_rng(5).permutation(128 * 200).reshape(128, 200).astype(np.float32)

    def body(dst, x):
        for first in range(0, 24, 8):
            top = dst[:, first:first + 8]
            nisa.max8(dst=top, src=x)
            nisa.nc_match_replace8(dst=x, data=x, vals=top, imm=-1.0)

    expected = -np.sort(-data, axis=1)[:, :24]
    np.testing.assert_array_equal(run(body, data, out=((128, 24), "float32")), expected)


def test_batch_norm_statistics():
    data = numbers(9, (128, 300), "float32")

    def body(dst, x):
        parts = nl.ndarray((128, 12), dtype=nl.float32, buffer=nl.sbuf)
        nisa.bn_stats(dst=parts[:, 0:6], data=x[:, 0:101])
        nisa.bn_stats(dst=parts[:, 6:12], data=x[:, 101:300])
        nisa.bn_aggr(dst=dst, data=parts)

    found = run(body, data, out=((128, 2), "float32"))
    np.testing.assert_allclose(found[:, 0], data.mean(axis=1), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found[:, 1], data.var(axis=1), rtol=1e-5)


@pytest.mark.parametrize("name, expected", [
    ("bitwise_and", np.bitwise_and), ("bitwise_or", np.bitwise_or), ("bitwise_xor", np.bitwise_xor),
    ("left_shift", np.left_shift), ("right_shift", np.right_shift),
])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_bitvec_operators(name, expected, dtype):
    data = np.random.default_rng(6).integers(0, np.iinfo(dtype).max, (64, 33), dtype=dtype)
    found = run(lambda dst, x: nisa.tensor_scalar(dst=dst, data=x, op0=getattr(nl, name), operand0=3), data,
                out=(data.shape, np.dtype(dtype).name))
    np.testing.assert_array_equal(found, expected(data, dtype(3)))
