"""Slices, patterns and run-time indices outside their tensor."""

import numpy as np
from table import Mistake, hbm, loaded, numbers, sbuf, stored

from trena.nki import isa as nisa
from trena.nki import language as nl


def slice_wrong(x):
    tile = sbuf(128, 128)
    nisa.dma_copy(dst=tile, src=x[:, 448:576])  # MISTAKE
    return stored(tile)


def slice_right(x):
    tile = sbuf(128, 128)
    nisa.dma_copy(dst=tile, src=x[:, 384:512])
    return stored(tile)


def last_tile(x, step):
    out = hbm(*x.shape)
    for k in range(4):
        tile = loaded(x[:, 128 * k : 128 * (k + 1)])
        nisa.dma_copy(dst=out[:, step * k : step * k + 128], src=tile)  # MISTAKE
    return out


def last_tile_wrong(x):
    return last_tile(x, 129)


def last_tile_right(x):
    return last_tile(x, 128)


def pattern_wrong(x):
    tile = sbuf(128, 64)
    nisa.dma_copy(dst=tile, src=x.ap(pattern=[[512, 128], [8, 64]], offset=16))  # MISTAKE
    return stored(tile)


def pattern_right(x):
    tile = sbuf(128, 64)
    nisa.dma_copy(dst=tile, src=x.ap(pattern=[[512, 128], [8, 64]], offset=0))
    return stored(tile)


def gather(table, rows):
    index, tile = loaded(rows), sbuf(rows.shape[0], table.shape[1])
    width = table.shape[1]
    source = table.ap(pattern=[[width, rows.shape[0]], [1, width]], vector_offset=index, indirect_dim=0)
    nisa.dma_copy(dst=tile, src=source)  # MISTAKE
    return stored(tile)


def scatter(table, rows):
    out, index, tile = hbm(*table.shape), loaded(rows), sbuf(rows.shape[0], table.shape[1])
    nisa.dma_copy(dst=out, src=table)
    nisa.memset(dst=tile, value=1.0)
    width = table.shape[1]
    target = out.ap(pattern=[[width, rows.shape[0]], [1, width]], vector_offset=index, indirect_dim=0)
    nisa.dma_copy(dst=target, src=tile)  # MISTAKE
    return out


def chosen_column(x, where):
    index, tile = loaded(where), sbuf(128, 1)
    nisa.dma_copy(dst=tile, src=x.select(1, index))  # MISTAKE
    return stored(tile)


X = numbers(128, 512)
TABLE = numbers(50, 16)
MISTAKES = [
    Mistake("out-of-bounds", slice_wrong, slice_right, (X,)),
    Mistake("out-of-bounds", last_tile_wrong, last_tile_right, (X,)),
    Mistake("out-of-bounds", pattern_wrong, pattern_right, (X,)),
    Mistake("out-of-bounds", gather, gather, (TABLE, np.array([[3], [50], [0]], np.uint32)),
            (TABLE, np.array([[3], [49], [0]], np.uint32))),
    Mistake("out-of-bounds", scatter, scatter, (TABLE, np.array([[3], [-1], [0]], np.int32)),
            (TABLE, np.array([[3], [1], [0]], np.int32))),
    Mistake("out-of-bounds", chosen_column, chosen_column, (X, np.array([[512]], np.int32)),
            (X, np.array([[511]], np.int32))),
]
