"""Random numbers: the generator against Marsaglia's definition, and what its numbers are distributed like.

The bits are Trena's own: the vendor names the algorithm, not its constants (hw.md §3.7). Bounds are those of a
chi-squared or normal test at about one in a million, for a fixed seed: they do not fail by chance.
"""

import numpy as np
import pytest

import trena
import trena.nki as nki
import trena.nki.isa as nisa
import trena.nki.language as nl
from trena import errors


def store(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


def seed_tile(seed):
    tile = nl.ndarray((1, 1), nl.uint32)
    nisa.memset(tile, value=seed)
    return tile


def xorwow(state):
    """Marsaglia 2003, p. 5, in Python integers."""
    x, y, z, w, v, d = (int(word) for word in state)
    while True:
        t = x ^ (x >> 2)
        x, y, z, w = y, z, w, v
        v = (v ^ (v << 4) ^ t ^ (t << 1)) & 0xFFFFFFFF
        d = (d + 362437) & 0xFFFFFFFF
        yield (d + v) & 0xFFFFFFFF


@nki.jit
def numbers_from_state(states, count, engine):
    tile = nl.load(states)
    nisa.rand_set_state(src_seeds=tile, engine=engine)
    out = nl.ndarray((states.shape[0], count), nl.uint32)
    nisa.rng(dst=out, engine=engine)
    after = nl.ndarray(states.shape, nl.uint32)
    nisa.rand_get_state(dst=after, engine=engine)
    more = nl.ndarray((states.shape[0], count), nl.uint32)
    nisa.rand_set_state(src_seeds=after, engine=engine)
    nisa.rng(dst=more, engine=engine)
    return store(out), store(more)


def test_gpsimd_follows_the_published_generator():
    states = np.random.default_rng(1).integers(0, 2**32, (128, 6), dtype=np.uint32)
    first, more = trena.simulate(numbers_from_state, target="trn2")(states, 20, nisa.engine.gpsimd).outputs
    for lane in (0, 1, 77, 127):
        generator = xorwow(states[lane])
        expected = [next(generator) for _ in range(40)]
        assert first[lane].tolist() + more[lane].tolist() == expected


def test_the_four_generators_of_a_vector_lane_take_turns():
    states = np.random.default_rng(2).integers(0, 2**32, (128, 24), dtype=np.uint32)
    first, more = trena.simulate(numbers_from_state, target="trn3")(states, 8, nisa.engine.vector).outputs
    for lane in (0, 99):
        generators = [xorwow(states[lane, 6 * k : 6 * k + 6]) for k in range(4)]
        assert first[lane].tolist() == [next(generators[i % 4]) for i in range(8)]
        assert more[lane].tolist() == [next(generators[i % 4]) for i in range(8)]


@nki.jit
def many_numbers(unused, seed, width, dtype=nl.uint32):
    nisa.set_rng_seed(src_seeds=seed_tile(seed))
    out = nl.ndarray((128, width), dtype)
    nisa.rng(dst=out)
    return store(out)


@pytest.mark.parametrize("target", ["trn1", "inf2", "trn2", "trn3"])
def test_every_byte_is_uniform_and_lanes_differ(target):
    found = trena.simulate(many_numbers, target=target)(np.zeros((1, 1), np.float32), 7, 512).outputs
    assert len(np.unique(found[:, 0])) == 128  # no two lanes start alike
    for byte in found.view(np.uint8).reshape(-1, 4).T:
        counts = np.bincount(byte, minlength=256)
        chi_squared = ((counts - byte.size / 256) ** 2 / (byte.size / 256)).sum()
        assert 150 < chi_squared < 375  # 255 degrees of freedom
    bits = np.unpackbits(found.view(np.uint8).ravel())
    assert abs(bits.mean() - 0.5) < 5 / (2 * np.sqrt(bits.size))
    lanes = found.astype(np.float64) / 2**32 - 0.5
    correlation = (lanes[:-1] * lanes[1:]).mean() * 12  # neighbouring lanes
    assert abs(correlation) < 5 / np.sqrt(lanes[1:].size)
    serial = (lanes[:, :-1] * lanes[:, 1:]).mean() * 12  # neighbouring elements
    assert abs(serial) < 5 / np.sqrt(lanes[:, 1:].size)


def test_a_seed_decides_the_numbers_and_another_gives_others():
    nothing = np.zeros((1, 1), np.float32)
    first, again, other = (trena.simulate(many_numbers, target="trn2")(nothing, s, 64).outputs for s in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    assert (first != other).mean() > 0.999


@nki.jit
def uniform(low, high, width, dtype):
    nisa.set_rng_seed(src_seeds=seed_tile(3))
    out = nl.ndarray((128, width), dtype)
    nisa.rand2(dst=out, min=nl.load(low), max=nl.load(high))
    return store(out)


@pytest.mark.parametrize("dtype", [nl.float32, nl.bfloat16])
def test_rand2_fills_the_range_of_each_partition(dtype):
    low = np.linspace(-5, 5, 128, dtype=np.float32).reshape(128, 1)
    high = low + np.linspace(0.5, 9, 128, dtype=np.float32).reshape(128, 1)
    found = np.asarray(trena.simulate(uniform, target="trn3")(low, high, 512, dtype).outputs).astype(np.float64)
    slack = 0 if dtype is nl.float32 else 2.0**-5  # rounding may pass an end that is no bfloat16
    assert (found >= low - slack).all() and (found <= high + slack).all()
    unit = (found - low) / (high - low)
    assert abs(unit.mean() - 0.5) < 5 / np.sqrt(12 * unit.size)
    counts, _ = np.histogram(unit, bins=32, range=(0, 1))
    if dtype is nl.float32:
        assert ((counts - unit.size / 32) ** 2 / (unit.size / 32)).sum() < 80  # 31 degrees of freedom


@nki.jit
def dropped(x, probability):
    out = nl.ndarray(x.shape, x.dtype)
    nisa.dropout(dst=out, data=nl.load(x), prob=nl.load(probability))
    return store(out)


@pytest.mark.parametrize("target", ["trn1", "inf2", "trn2", "trn3"])
def test_dropout_zeroes_with_the_probability_of_the_partition(target):
    x = np.random.default_rng(5).uniform(1, 2, (128, 1024)).astype(np.float32)
    probability = np.linspace(0, 1, 128, dtype=np.float32).reshape(128, 1)
    found = trena.simulate(dropped, target=target)(x, probability).outputs
    assert np.isin(found, [0]).sum() + (found == x).sum() == x.size
    rate = (found == 0).mean(axis=1)
    spread = np.sqrt(probability.ravel() * (1 - probability.ravel()) / x.shape[1])
    assert (abs(rate - probability.ravel()) <= 5 * spread).all()
    assert rate[0] == 0 and rate[-1] == 1


@nki.jit
def language(x):
    return store(nl.dropout(nl.load(x), 0.5)), store(nl.rand((128, 64), nl.float32))


def test_the_functions_of_nki_language():
    x = np.ones((128, 64), np.float32)
    for target in ("trn2", "trn3"):  # rand2 came with v4
        kept, numbers = trena.simulate(language, target=target)(x).outputs
        assert 0.4 < kept.mean() < 0.6
        assert 0.4 < numbers.mean() < 0.6 and numbers.min() >= 0 and numbers.max() <= 1
