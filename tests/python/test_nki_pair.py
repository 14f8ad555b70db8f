"""Two cores of a pair, registers, gathers: what kernels see of the DMA and of synchronisation."""

import numpy as np
import pytest

import trena
from trena import errors, nki
from trena.nki import isa as nisa
from trena.nki import language as nl


@nki.jit
def swap_halves(x):
    """Each core loads its half and receives the other's."""
    core = nl.program_id(0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    mine = nl.ndarray((4, 8), dtype=x.dtype, buffer=nl.sbuf)
    theirs = nl.ndarray((4, 8), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=mine, src=x[4 * core : 4 * core + 4, :])
    nisa.sendrecv(src=mine, dst=theirs, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=0)
    nisa.dma_copy(dst=out[4 * core : 4 * core + 4, :], src=theirs)
    nisa.core_barrier(data=out, cores=(0, 1))
    return out


def test_sendrecv_and_barrier():
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    run = trena.simulate(swap_halves[2], target="trn2")(x)
    np.testing.assert_array_equal(run.outputs, np.concatenate([x[4:], x[:4]]))


@nki.jit
def lonely_barrier(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    if nl.program_id(0) == 1:
        nisa.core_barrier(data=out, cores=(0, 1))
    return out


def test_a_barrier_nobody_joins_names_both_cores():
    with pytest.raises(errors.Deadlock) as caught:
        trena.simulate(lonely_barrier[2], target="trn2")(np.zeros((2, 2), np.float32))
    assert caught.value.id == "deadlock"
    assert "core 0 has finished" in caught.value.here
    assert "core 1 waits at core_barrier" in caught.value.here and "test_nki_pair.py:" in caught.value.here


@nki.jit
def one_core_fails(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    if nl.program_id(0) == 1:
        raise ValueError("mine")
    nisa.core_barrier(data=out, cores=(0, 1))
    return out


def test_the_error_of_one_core_reaches_the_caller():
    with pytest.raises(ValueError, match="mine"):
        trena.simulate(one_core_fails[2], target="trn2")(np.zeros((2, 2), np.float32))


@nki.jit
def add_until(counts, x):
    """A register loaded from memory bounds a loop; another one counts down a `while`."""
    out = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.shared_hbm)
    cell = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=cell, src=counts)
    left = nisa.register_alloc(cell)
    total = nisa.register_alloc(0)
    while left:
        nisa.register_move(total, total + left)
        nisa.register_move(left, left - 1)
    nisa.register_store(cell, total)
    nisa.dma_copy(dst=out, src=cell)
    return out


def test_registers_steer_the_kernel():
    run = trena.simulate(add_until, target="trn2")(np.array([[4]], np.int32), np.zeros((1, 1), np.int32))
    assert int(run.outputs[0, 0]) == 10


@nki.jit
def gather(table, rows):
    out = nl.ndarray((rows.shape[0], table.shape[1]), dtype=table.dtype, buffer=nl.shared_hbm)
    index = nl.ndarray(rows.shape, dtype=rows.dtype, buffer=nl.sbuf)
    tile = nl.ndarray((rows.shape[0], table.shape[1]), dtype=table.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=index, src=rows)
    width = table.shape[1]
    nisa.dma_copy(
        dst=tile, src=table.ap(pattern=[[width, rows.shape[0]], [1, width]], vector_offset=index, indirect_dim=0)
    )
    nisa.dma_copy(dst=out, src=tile)
    return out


def test_gather_rows():
    table = np.random.default_rng(0).standard_normal((50, 16)).astype(np.float32)
    rows = np.array([[3], [49], [0], [3]], np.uint32)
    run = trena.simulate(gather, target="trn2")(table, rows)
    np.testing.assert_array_equal(run.outputs, table[rows[:, 0]])
    with pytest.raises(errors.OutOfBounds) as caught:
        trena.simulate(gather, target="trn2")(table, np.array([[50]], np.uint32))
    assert "index 50" in caught.value.here and caught.value.limit == "0 to 49"


@nki.jit
def transpose(x):
    out = nl.ndarray((x.shape[1], x.shape[0]), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((x.shape[1], x.shape[0]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_transpose(dst=tile, src=x)
    nisa.dma_copy(dst=out, src=tile, dge_mode=nisa.dge_mode.hwdge, engine=nisa.engine.scalar)
    return out


def test_transpose():
    x = np.random.default_rng(1).standard_normal((48, 96)).astype(np.float32)
    np.testing.assert_array_equal(trena.simulate(transpose, target="trn2")(x).outputs, x.T)


@nki.jit
def sum_in_flight(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_compute(dst=out, srcs=[a, b], reduce_op=nl.add)
    return out


def test_dma_compute():
    a = np.random.default_rng(2).standard_normal((8, 8)).astype(np.float32)
    np.testing.assert_array_equal(trena.simulate(sum_in_flight, target="trn2")(a, a).outputs, a + a)


@nki.jit
def gather_transpose(table, rows):
    """The public example of an index of several columns: flat_indices = indices.T.flatten()."""
    index = nl.ndarray(rows.shape, dtype=rows.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=index, src=rows)
    width, count = table.shape[1], rows.shape[0] * rows.shape[1]
    tile = nl.ndarray((width, count), dtype=table.dtype, buffer=nl.sbuf)
    source = table.ap(pattern=[[width, count], [1, width]], vector_offset=index, indirect_dim=0)
    nisa.dma_transpose(dst=tile, src=source, axes=(1, 0))
    out = nl.ndarray((width, count), dtype=table.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


def test_gather_transpose():
    rng = np.random.default_rng(3)
    table = rng.standard_normal((1000, 128)).astype(np.float16)
    rows = rng.integers(0, 1000, (128, 2)).astype(np.uint32)
    run = trena.simulate(gather_transpose, target="trn2")(table, rows)
    np.testing.assert_array_equal(run.outputs, table[rows.T.flatten()].T)


@nki.jit
def scatter(table, rows, values):
    index = nl.ndarray(rows.shape, dtype=rows.dtype, buffer=nl.sbuf)
    tile = nl.ndarray(values.shape, dtype=values.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=index, src=rows)
    nisa.dma_copy(dst=tile, src=values)
    width = table.shape[1]
    target = table.ap(pattern=[[width, rows.shape[0]], [1, width]], vector_offset=index, indirect_dim=0)
    nisa.dma_copy(dst=target, src=tile, oob_mode=nisa.oob_mode.skip)
    return table


def test_scatter_skips_rows_outside():
    table = np.zeros((6, 3), np.float32)
    values = np.arange(9, dtype=np.float32).reshape(3, 3)
    trena.simulate(scatter, target="trn2")(table, np.array([[4], [6], [0]], np.uint32), values)
    expected = np.zeros((6, 3), np.float32)
    expected[4], expected[0] = values[0], values[2]
    np.testing.assert_array_equal(table, expected)


def test_time_needs_no_values():
    x = np.zeros((8, 8), np.float32)
    timed = trena.simulate(swap_halves[2], target="trn2", time_only=True)(x)
    assert timed.time_ns == trena.simulate(swap_halves[2], target="trn2")(x).time_ns
    with pytest.raises(errors.NotModelled):
        trena.simulate(add_until, target="trn2", time_only=True)(np.array([[4]], np.int32), np.zeros((1, 1), np.int32))
