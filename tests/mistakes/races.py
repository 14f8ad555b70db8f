"""Two cores on one tensor, and meetings that one of them misses."""

import numpy as np
from table import Mistake, hbm, loaded, numbers, sbuf

from trena.nki import isa as nisa
from trena.nki import language as nl


def exchange(x, middle, data):
    core, out = nl.program_id(0), hbm(*x.shape)
    mine, other = slice(64 * core, 64 * core + 64), slice(64 - 64 * core, 128 - 64 * core)
    nisa.dma_copy(dst=middle[mine, :], src=loaded(x[mine, :]))  # WITH
    if data is not None:
        nisa.core_barrier(data=middle if data == "middle" else out, cores=(0, 1))
    tile = sbuf(64, x.shape[1])
    nisa.dma_copy(dst=tile, src=middle[other, :])  # MISTAKE
    nisa.dma_copy(dst=out[mine, :], src=tile)
    return out


def exchange_without(x, middle):
    return exchange(x, middle, None)


def exchange_with(x, middle):
    return exchange(x, middle, "middle")


def exchange_other_tensor(x, middle):
    """The barrier waits for `out`, but it is `middle` that both touch."""
    return exchange(x, middle, "out")


def rows(x, overlap):
    core, out = nl.program_id(0), hbm(*x.shape)
    first = 64 * core - overlap * core
    tile = loaded(x[first : first + 64 + overlap, :])
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=1.0 + core)
    nisa.dma_copy(dst=out[first : first + 64 + overlap, :], src=tile)  # MISTAKE
    return out


def rows_wrong(x):
    return rows(x, 1)


def rows_right(x):
    return rows(x, 0)


def alike(x):
    """Not a mistake: both cores do all of the work."""
    out = hbm(*x.shape)
    for k in range(4):
        nisa.dma_copy(dst=out[32 * k : 32 * (k + 1), :], src=loaded(x[32 * k : 32 * (k + 1), :]))
    return out


def chosen_rows(x, rows):
    """Not a mistake: the index vectors of the two cores name different rows."""
    core, out, tile = nl.program_id(0), hbm(256, 16), loaded(x[0:4, :])
    nisa.dma_copy(dst=out[128 * core : 128 * (core + 1), :], src=loaded(x))
    target = out.ap(pattern=[[16, 4], [1, 16]], offset=core * 128 * 16, vector_offset=loaded(rows), indirect_dim=0)
    nisa.dma_copy(dst=target, src=tile)
    return out


def scatter(x, middle, rows, apart):
    """Each core puts its rows where its index vector says."""
    core, tile = nl.program_id(0), loaded(x[0:4, :])
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0 + core)
    target = middle.ap(pattern=[[16, 4], [1, 16]], offset=apart * core * 16, vector_offset=loaded(rows), indirect_dim=0)
    nisa.dma_copy(dst=target, src=tile)  # MISTAKE
    return middle


def scatter_wrong(x, middle, rows):
    return scatter(x, middle, rows, 3)


def scatter_right(x, middle, rows):
    return scatter(x, middle, rows, 4)


def early_reuse(x, middle, again):
    """Core 0 fills `middle` for core 1 twice; the second time it must know that core 1 has read the first."""
    core, out = nl.program_id(0), hbm(2, *x.shape)
    for step in range(2):
        if core == 0:
            tile = loaded(x)
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=float(step))
            nisa.dma_copy(dst=middle, src=tile)  # WITH
        nisa.core_barrier(data=middle, cores=(0, 1))
        if core == 1:
            half = sbuf(64, x.shape[1])
            for rows in (slice(0, 64), slice(64, 128)):
                nisa.dma_copy(dst=half, src=middle[rows, :])  # MISTAKE
                nisa.dma_copy(dst=out[step, rows, :], src=half)
        if again:
            nisa.core_barrier(data=middle, cores=(0, 1))
    return out


def early_reuse_wrong(x, middle):
    return early_reuse(x, middle, False)


def early_reuse_right(x, middle):
    return early_reuse(x, middle, True)


def lonely(x, cores):
    out = hbm(*x.shape)
    if nl.program_id(0) in cores:
        nisa.core_barrier(data=out, cores=(0, 1))  # MISTAKE
    if nl.program_id(0) == 0:
        nisa.dma_copy(dst=out, src=loaded(x))
    return out


def lonely_wrong(x):
    return lonely(x, (1,))


def lonely_right(x):
    return lonely(x, (0, 1))


def swap(x, pipe, rows):
    core, out = nl.program_id(0), hbm(*x.shape)
    mine, theirs = loaded(x[64 * core : 64 * core + 64, :]), sbuf(64, x.shape[1])
    other = 1 - core
    mine, theirs = mine[0 : rows(core), :], theirs[0 : rows(core), :]
    nisa.sendrecv(src=mine, dst=theirs, send_to_rank=other, recv_from_rank=other, pipe_id=pipe(core))  # MISTAKE
    nisa.dma_copy(dst=out[64 * core : 64 * core + rows(core), :], src=theirs)
    return out


def swap_pipes_wrong(x):
    return swap(x, lambda core: core, lambda core: 64)


def swap_sizes_wrong(x):
    return swap(x, lambda core: 0, lambda core: 64 - 32 * core)


def swap_right(x):
    return swap(x, lambda core: 0, lambda core: 64)


def crossed(x, first):
    """One core meets at a barrier where the other one sends."""
    core, out = nl.program_id(0), hbm(*x.shape)
    mine, theirs, other = loaded(x[64 * core : 64 * core + 64, :]), sbuf(64, x.shape[1]), 1 - nl.program_id(0)
    if first(core):
        nisa.core_barrier(data=out, cores=(0, 1))  # MISTAKE
    nisa.sendrecv(src=mine, dst=theirs, send_to_rank=other, recv_from_rank=other, pipe_id=0)
    if not first(core):
        nisa.core_barrier(data=out, cores=(0, 1))
    nisa.dma_copy(dst=out[64 * core : 64 * core + 64, :], src=theirs)
    return out


def crossed_wrong(x):
    return crossed(x, lambda core: core == 0)


def crossed_right(x):
    return crossed(x, lambda core: True)


def divergent(x, shape):
    core = nl.program_id(0)
    out = nl.ndarray(shape(core), dtype=nl.float32, buffer=nl.shared_hbm)  # MISTAKE
    nisa.dma_copy(dst=out[0:64, :], src=loaded(x[64 * core : 64 * core + 64, :])) if core == 0 else None
    return out


def divergent_wrong(x):
    return divergent(x, lambda core: (64 + core, 16))


def divergent_right(x):
    return divergent(x, lambda core: (64, 16))


X = numbers(128, 16)
MIDDLE = 1000 * numbers(128, 16)
MISTAKES = [
    Mistake("core-race", exchange_without, exchange_with, (X, MIDDLE), cores=2),
    Mistake("core-race", exchange_without, exchange_with, (X, MIDDLE), cores=2, time_only=True),
    Mistake("core-race", exchange_other_tensor, exchange_with, (X, MIDDLE), cores=2),
    Mistake("core-race", rows_wrong, rows_right, (X,), cores=2),
    Mistake("core-race", rows_wrong, alike, (X,), cores=2),
    Mistake("core-race", rows_wrong, chosen_rows, (X,), (X, np.array([[3], [1], [0], [2]], np.uint32)), cores=2),
    Mistake("core-race", scatter_wrong, scatter_right, (X, MIDDLE, np.array([[3], [1], [0], [2]], np.uint32)), cores=2),
    Mistake("core-race", early_reuse_wrong, early_reuse_right, (X, MIDDLE), cores=2),
    Mistake("deadlock", lonely_wrong, lonely_right, (X,), cores=2),
    Mistake("deadlock", swap_pipes_wrong, swap_right, (X,), cores=2),
    Mistake("sendrecv-mismatch", swap_sizes_wrong, swap_right, (X,), cores=2),
    Mistake("deadlock", crossed_wrong, crossed_right, (X,), cores=2),
    Mistake("lnc-divergence", divergent_wrong, divergent_right, (X,), cores=2),
]
