"""Ranks of one process: values against NumPy, time against the ring's closed form."""

import numpy as np
import pytest

import trena
from trena import errors, nki
from trena.nki import collectives
from trena.nki import isa as nisa
from trena.nki import language as nl


@nki.jit
def mean_of_ranks(x):
    """Adds the rank's number, then sums over all four ranks."""
    rank = collectives.rank_id()
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    mine = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=float(rank))
    nisa.dma_copy(dst=mine, src=tile)
    collectives.all_reduce([mine], [out], collectives.ReplicaGroup([[0, 1, 2, 3]]), nl.add)
    return out


def test_all_reduce_of_four_ranks():
    inputs = [np.random.default_rng(k).standard_normal((8, 16)).astype(np.float32) for k in range(4)]
    runs = trena.simulate_ranks(mean_of_ranks, target="trn2", ranks_per_chip=1)([(x,) for x in inputs])
    parts = [x + np.float32(k) for k, x in enumerate(inputs)]
    expected = ((parts[0] + parts[1]) + parts[2]) + parts[3]
    for run in runs:
        np.testing.assert_array_equal(run.outputs, expected)
    # 6 steps of at least 1.5 us on the first row of the torus (hardware/fabrics/neuronlink3_torus.toml).
    assert runs[0].time_us > 9


@nki.jit
def alone(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    collectives.all_reduce([x], [out], collectives.ReplicaGroup([[0, 1]]), nl.add)
    return out


def test_a_launch_of_its_own_is_one_rank():
    with pytest.raises(errors.UsageError) as caught:
        trena.simulate(alone, target="trn2")(np.zeros((2, 2), np.float32))
    assert caught.value.id == "collective-group"


@nki.jit
def one_stays_away(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    if collectives.rank_id() != 1:
        collectives.all_reduce([x], [out], collectives.ReplicaGroup([[0, 1, 2]]), nl.maximum)
    return out


def test_a_rank_that_stays_away_is_a_deadlock():
    x = np.zeros((2, 2), np.float32)
    with pytest.raises(errors.Deadlock) as caught:
        trena.simulate_ranks(one_stays_away, target="trn2")([(x,), (x,), (x,)])
    assert "rank 1 has finished" in caught.value.here
    assert "rank 2 waits at all_reduce" in caught.value.here
