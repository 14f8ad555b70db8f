"""Tensors that the kernel placed itself, and memory that came in twice."""

import numpy as np
from table import Mistake, loaded, numbers, psum, sbuf, stored

from trena.nki import isa as nisa
from trena.nki import language as nl


def alive(x, offset):
    first, second, result = sbuf(128, 64, address=(0, 0)), sbuf(128, 64, address=(0, offset)), sbuf(128, 64)
    nisa.dma_copy(dst=first, src=x[:, 0:64])
    nisa.dma_copy(dst=second, src=x[:, 64:128])  # WITH
    nisa.tensor_tensor(dst=result, data1=first, data2=second, op=nl.subtract)  # MISTAKE
    return stored(result)


def alive_wrong(x):
    return alive(x, 252)


def alive_right(x):
    return alive(x, 256)


def rotated(x, buffers):
    tiles = []
    for k in range(4):
        tile = sbuf(128, 64, address=(0, 1024 + 256 * (k % buffers)))
        nisa.dma_copy(dst=tile, src=x[:, 64 * k : 64 * (k + 1)])  # WITH
        tiles.append(tile)
    result = sbuf(128, 64)
    nisa.tensor_copy(dst=result, src=tiles[0])  # MISTAKE
    for tile in tiles[2:]:
        nisa.tensor_tensor(dst=result, data1=result, data2=tile, op=nl.add)
    return stored(result)


def rotated_wrong(x):
    return rotated(x, 3)


def rotated_right(x):
    return rotated(x, 4)


def partitions_wrong(x):
    low, high, result = sbuf(64, 32, address=(0, 0)), sbuf(64, 32, address=(32, 64)), sbuf(64, 32)
    nisa.memset(dst=low, value=1.0)
    nisa.memset(dst=high[0:32, :], value=2.0)  # WITH
    nisa.tensor_copy(dst=result, src=low)  # MISTAKE
    return stored(result)


def partitions_right(x):
    low, high, result = sbuf(64, 32, address=(0, 0)), sbuf(64, 32, address=(64, 64)), sbuf(64, 32)
    nisa.memset(dst=low, value=1.0)
    nisa.memset(dst=high[0:32, :], value=2.0)
    nisa.tensor_copy(dst=result, src=low)
    return stored(result)


def banks(x, second):
    tile, result = loaded(x), sbuf(128, 64)
    a, b = psum(128, 64, address=(0, 0)), psum(128, 64, address=(0, second))
    nisa.nc_matmul(dst=a, stationary=tile[:, 0:128], moving=tile[:, 0:64])
    nisa.nc_matmul(dst=b, stationary=tile[:, 0:128], moving=tile[:, 64:128])  # WITH
    nisa.tensor_copy(dst=result, src=a)  # MISTAKE
    nisa.tensor_tensor(dst=result, data1=result, data2=b, op=nl.add)
    return stored(result)


def banks_wrong(x):
    return banks(x, 0)


def banks_right(x):
    return banks(x, 2048)


def second_name_wrong(x):
    tile = sbuf(128, 512, address=(0, 4096))
    again = sbuf(128, 512, address=(0, 4096))
    nisa.dma_copy(dst=tile, src=x)  # WITH
    return stored_from(again)


def stored_from(tile):
    result = sbuf(128, 512)
    nisa.activation(dst=result, op=nl.exp, data=tile)  # MISTAKE
    return stored(result)


def second_name_right(x):
    tile = sbuf(128, 512, address=(0, 4096))
    nisa.dma_copy(dst=tile, src=x)
    return stored_from(tile)


def second_type_wrong(x):
    bits, result = sbuf(128, 512, dtype=nl.uint32, address=(0, 0)), sbuf(128, 512)
    values = sbuf(128, 512, address=(0, 0))
    nisa.memset(dst=bits, value=0x3F800000)  # WITH
    nisa.activation(dst=result, op=nl.exp, data=values)  # MISTAKE
    return stored(result)


def second_type_right(x):
    bits, result = sbuf(128, 512, dtype=nl.uint32, address=(0, 0)), sbuf(128, 512)
    values = bits.view(nl.float32)
    nisa.memset(dst=bits, value=0x3F800000)
    nisa.activation(dst=result, op=nl.exp, data=values)
    return stored(result)


def steered(x, row, name):
    """A register that chooses a row, loaded from a tile that a DMA fills."""
    tile, again = (sbuf(1, 1, dtype=nl.uint32, address=(0, 0)) for _ in range(2))
    nisa.dma_copy(dst=tile, src=row)  # WITH
    register = nisa.register_alloc()
    nisa.register_load(register, again if name == "again" else tile)  # MISTAKE
    result = sbuf(1, 512)
    nisa.dma_copy(dst=result, src=x.ap(pattern=[[512, 1], [1, 512]], scalar_offset=register, indirect_dim=0))
    return stored(result)


def steered_wrong(x, row):
    return steered(x, row, "again")


def steered_right(x, row):
    return steered(x, row, "tile")


def twice(x, out):
    low, high = loaded(x[0:64, :]), sbuf(64, 512)
    nisa.dma_copy(dst=out[64:128, :], src=low)  # WITH
    nisa.dma_copy(dst=high, src=x[64:128, :])  # MISTAKE
    return stored(high)


def self_copy_wrong(x):
    out = stored(loaded(x))
    nisa.dma_copy(dst=out[1:128, :], src=out[0:127, :])  # MISTAKE
    return out


def self_copy_right(x):
    out = stored(loaded(x))
    other = stored(loaded(x))
    nisa.dma_copy(dst=out[1:128, :], src=other[0:127, :])
    return out


def last_rows(x, rows):
    """Two tiles take turns at one address; the second one may be smaller."""
    for k in range(2):
        tile = sbuf(64, 64, address=(0, 512))
        count = 64 if k == 0 else rows
        nisa.dma_copy(dst=tile[0:count, :], src=x[64 * k : 64 * k + count, 0:64])  # WITH
        result = sbuf(64, 64)
        nisa.tensor_copy(dst=result, src=tile)  # MISTAKE
    return stored(result)


def last_rows_wrong(x):
    return last_rows(x, 63)


def last_rows_right(x):
    return last_rows(x, 64)


X = numbers(128, 512)
ONCE = numbers(128, 512)
MISTAKES = [
    Mistake("address-overlap", alive_wrong, alive_right, (X,)),
    Mistake("address-overlap", rotated_wrong, rotated_right, (X,)),
    Mistake("address-overlap", partitions_wrong, partitions_right, (X,)),
    Mistake("address-overlap", banks_wrong, banks_right, (X,)),
    Mistake("address-stale", last_rows_wrong, last_rows_right, (X,)),
    Mistake("data-race", second_name_wrong, second_name_right, (X,)),
    Mistake("data-race", second_type_wrong, second_type_right, (X,)),
    Mistake("register-race", steered_wrong, steered_right, (X, np.array([[5]], np.uint32))),
    Mistake("data-race", twice, twice, (ONCE, ONCE), (ONCE, np.zeros_like(ONCE))),
    Mistake("self-overlap", self_copy_wrong, self_copy_right, (X,)),
]
