"""Kernels as people also write them: Python's own means around tiles, odd arguments, and what is refused by name."""

import contextlib
import dataclasses
import functools
import warnings

import numpy as np
import pytest

import trena.nki as nki
import trena.nki.isa as nisa
import trena.nki.language as nl
from trena import errors

GENERATOR = np.random.default_rng(11)


def normal(*shape):
    return GENERATOR.standard_normal(shape).astype(np.float32)


def loaded(source):
    tile = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=source)
    return tile


def stored(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def identity(x):
    return stored(loaded(x))


# ---- Python around tiles -----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Pair:
    left: object
    right: object
    more: tuple = ()
    operator: object = nl.add


def columns(x, width):
    for start in range(0, x.shape[1], width):
        yield slice(start, start + width), loaded(x[:, start:start + width])


@contextlib.contextmanager
def held(x):
    yield loaded(x)


class Sum:
    def __init__(self, shape):
        self.tile = nl.ndarray(shape, dtype="float32", buffer=nl.sbuf)
        nisa.memset(self.tile, value=0.0)

    def __iadd__(self, other):
        nisa.tensor_tensor(dst=self.tile, data1=self.tile, data2=other, op=nl.add)
        return self


def dataclass_kernel(pair):
    total = loaded(pair.left)
    for term in (pair.right, *pair.more):
        nisa.tensor_tensor(dst=total, data1=total, data2=loaded(term), op=pair.operator)
    return stored(total)


def generator_kernel(x, width=16, *, function=nl.square):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for where, tile in columns(x, width):
        nisa.activation(dst=tile, op=function, data=tile)
        nisa.dma_copy(dst=out[:, where], src=tile)
    return out


def recursive_kernel(x):
    def tree(first, past):
        if past - first == 1:
            return loaded(x[:, first:past])
        middle = (first + past) // 2
        return nl.add(tree(first, middle), tree(middle, past))

    with held(x) as whole:
        return stored(tree(0, 8)), {"whole": [stored(whole)]}, None


def loops_kernel(x):
    total, j = Sum((128, 16)), 0
    for i in nl.affine_range(2):
        total += loaded(x[:, nl.ds(16 * i, 16)])
    for i in nl.static_range(0, 4, 2):
        total += loaded(x[:, 16 * i:16 * (i + 1)])
    while j < x.shape[1]:
        total += loaded(x[:, j:j + 16])
        j += np.int64(16)
    return stored(total.tile)


def test_python_around_tiles():
    x, y = normal(128, 64), normal(128, 64)
    np.testing.assert_allclose(nki.jit(dataclass_kernel)(Pair(x, y, (x, y))), 2 * (x + y), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(nki.jit(dataclass_kernel)(Pair(x, y, operator=nl.maximum)), np.maximum(x, y))
    np.testing.assert_allclose(nki.jit(generator_kernel)(x, width=32), x * x, rtol=1e-6)
    np.testing.assert_array_equal(nki.jit(generator_kernel)(x, function=nl.relu), np.maximum(x, 0))
    total, names, nothing = nki.jit(recursive_kernel)(x)
    np.testing.assert_allclose(total[:, 0], x[:, :8].sum(1), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(names["whole"][0], x)
    assert nothing is None
    tiles = x.reshape(128, 4, 16)
    np.testing.assert_allclose(nki.jit(loops_kernel)(x), tiles.sum(1) + tiles[:, :2].sum(1) + tiles[:, ::2].sum(1),
                               rtol=1e-5, atol=1e-5)


class Model:
    def __init__(self, factor):
        self.factor = factor

    def scaled(self, x):
        tile = loaded(x)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=self.factor)
        return stored(tile)

    def __call__(self, x):
        return self.scaled(x)

    kernel = nki.jit(scaled)


def test_what_may_be_a_kernel():
    x = normal(128, 8)
    model = Model(3.0)
    partial = functools.partial(lambda x, factor: Model(factor).scaled(x), factor=2.0)
    for kernel, factor in ((model.kernel, 3), (nki.simulate(model.kernel), 3), (nki.jit(model), 3),
                           (nki.jit(model.scaled), 3), (nki.jit(partial), 2), (nki.simulate(partial), 2)):
        np.testing.assert_allclose(kernel(x), factor * x, rtol=1e-6)
        assert repr(kernel)


# ---- Arguments ---------------------------------------------------------------------------------------


def test_layouts_of_arrays():
    x = normal(128, 64)
    for array in (np.asfortranarray(x), x[:, ::-1], x[::2], np.broadcast_to(x[:1], x.shape), x.astype(">f4"),
                  (100 * x).astype(">i2")):
        result = identity(array)
        assert result.dtype.isnative
        np.testing.assert_array_equal(result, array)


def test_in_place_in_the_other_byte_order():
    @nki.jit
    def kernel(x):
        tile = loaded(x)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)
        nisa.dma_copy(dst=x, src=tile)

    x = normal(128, 8)
    swapped = x.astype(">f4")
    kernel(swapped)
    np.testing.assert_array_equal(swapped, x + 1)


# ---- Views of nothing, and what is refused by name -----------------------------------------------------


def test_a_view_of_nothing_may_be_made():
    @nki.jit
    def kernel(x, out):
        rows = x.shape[0] // 2  # one row and two cores: the first has none
        first, count = (0, rows) if nl.program_id(0) == 0 else (rows, x.shape[0] - rows)
        mine, target = x[nl.ds(first, count)], out[first:first + count]
        assert mine.shape == (count, x.shape[1])
        for row in range(mine.shape[0]):
            nisa.dma_copy(dst=target[row:row + 1], src=loaded(mine[row:row + 1]))

    x, out = normal(1, 16), np.zeros((1, 16), np.float32)
    kernel[2](x, out)
    np.testing.assert_array_equal(out, x)


KEPT = []


def keeps(tile):
    KEPT.append(tile)
    return tile


@pytest.mark.parametrize(
    ("act", "id"),
    [
        (lambda tile: nisa.tensor_copy(dst=tile[:, 4:4], src=tile[:, 4:4]), "out-of-bounds"),
        (lambda tile: nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=tile[0:0]), "out-of-bounds"),
        (lambda tile: nl.exp(tile[:, 0:0]), "tensor-shape"),
        (lambda tile: tile.slice(1, 3, 3), "out-of-bounds"),
        (lambda tile: nl.ndarray((1 << 32, 1 << 32), dtype=nl.float32, buffer=nl.hbm), "hbm-capacity"),
        (lambda tile: nl.ndarray((128, 1 << 32, 1 << 32), dtype=nl.float32, buffer=nl.sbuf), "sbuf-capacity"),
        (lambda tile: nl.ndarray((128, 8), dtype=None, buffer=nl.sbuf), "unknown-dtype"),
        (lambda tile: nl.affine_range(1.5), "argument-type"),
        (lambda tile: nl.affine_range("3"), "argument-type"),
        (lambda tile: tile + tile, "tensor-operator"),
        (lambda tile: 2.0 * tile, "tensor-operator"),
        (lambda tile: -tile, "tensor-operator"),
        (lambda tile: tile > 0, "tensor-operator"),
        (lambda tile: tile[:, np.arange(4)], "index-type"),
        (lambda tile: tile[:, 0.0:4.0], "index-type"),
        (lambda tile: tile[:, None], "index-type"),
        (lambda tile: nisa.tensor_copy(dst=tile, src=KEPT[0]), "foreign-tensor"),
        (lambda tile: nisa.tensor_copy(dst=KEPT[0], src=tile), "foreign-tensor"),
    ],
)
def test_refused_by_name(act, id):
    @nki.jit
    def kernel(x):
        act(loaded(x))

    @nki.jit
    def other(x):
        KEPT[:] = [keeps(loaded(x)) for _ in range(9)][-1:]

    other(normal(128, 8))
    with pytest.raises(errors.Error) as caught:
        kernel(normal(128, 8))
    assert caught.value.id == id


def test_kernels_that_have_not_run():
    def generator(x):
        yield stored(loaded(x))

    async def coroutine(x):
        return stored(loaded(x))

    for function in (generator, coroutine):
        with pytest.raises(errors.UsageError) as caught:
            nki.jit(function)(normal(128, 8))
        assert caught.value.id == "kernel-generator"


def test_torch_tensors_of_other_kinds():
    torch = pytest.importorskip("torch")
    ones = torch.ones(128, 8)
    assert torch.equal(identity(torch._neg_view(ones)), -ones)
    assert torch.equal(identity(torch.complex(ones, 2 * ones).conj().imag), -2 * ones)
    for tensor in (ones.to("meta"), ones.to_sparse()):
        with pytest.raises(errors.UsageError) as caught:
            identity(tensor)
        assert caught.value.id == "argument-type"


def test_bounds_of_loops():
    assert [list(nl.affine_range(*bounds)) for bounds in ((2.0,), (np.int64(1), 3), (5, 0, -2))] == [
        [0, 1], [1, 2], [5, 3, 1]]


def test_an_output_on_the_chip_draws_a_warning():
    with pytest.warns(UserWarning, match="nl.sbuf"):
        nki.jit(loaded)(normal(128, 8))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        identity(normal(128, 8))
