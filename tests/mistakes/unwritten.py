"""Bytes that are read, or returned, though nobody wrote them: of every kind of type."""

from table import Mistake, hbm, loaded, numbers, sbuf, stored

from trena.nki import isa as nisa
from trena.nki import language as nl


def accumulator_wrong(x):
    tile, total = loaded(x), sbuf(128, 512)
    nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)  # MISTAKE
    return stored(total)


def accumulator_right(x):
    tile, total = loaded(x), sbuf(128, 512)
    nisa.memset(dst=total, value=0.0)
    nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
    return stored(total)


def half(x, dtype, columns):
    tile, result = sbuf(128, 64, dtype=dtype), sbuf(128, 64, dtype=dtype)
    nisa.memset(dst=tile[:, 0:columns], value=1)
    nisa.tensor_copy(dst=result, src=tile)  # MISTAKE
    return stored(result)


def integer_wrong(x):
    return half(x, nl.int32, 63)


def integer_right(x):
    return half(x, nl.int32, 64)


def byte_wrong(x):
    return half(x, nl.uint8, 63)


def byte_right(x):
    return half(x, nl.uint8, 64)


def partition_wrong(x):
    tile, result = sbuf(128, 512), sbuf(128, 1)
    nisa.dma_copy(dst=tile[0:127, :], src=x[0:127, :])
    nisa.tensor_reduce(dst=result, data=tile, op=nl.maximum, axis=1)  # MISTAKE
    return stored(result)


def partition_right(x):
    tile, result = sbuf(128, 512), sbuf(128, 1)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_reduce(dst=result, data=tile, op=nl.maximum, axis=1)
    return stored(result)


def packed(x, columns):
    tile = sbuf(32, 16, dtype=nl.float8_e4m3fn_x4)
    bits = tile.view(nl.uint8)
    nisa.memset(dst=bits[:, 0:columns], value=0)
    out = hbm(32, 16, dtype=nl.float8_e4m3fn_x4)
    nisa.dma_copy(dst=out, src=tile)  # MISTAKE
    return out


def packed_wrong(x):
    return packed(x, 63)


def packed_right(x):
    return packed(x, 64)


def rows(x, count):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)  # MISTAKE
    for k in range(count):
        nisa.dma_copy(dst=out[32 * k : 32 * (k + 1), :], src=loaded(x[32 * k : 32 * (k + 1), :]))
    return out


def output_wrong(x):
    return rows(x, 3)


def output_right(x):
    return rows(x, 4)


X = numbers(128, 512)
MISTAKES = [
    Mistake("unwritten-read", accumulator_wrong, accumulator_right, (X,)),
    Mistake("unwritten-read", accumulator_wrong, accumulator_right, (X,), time_only=True),
    Mistake("unwritten-read", integer_wrong, integer_right, (X,)),
    Mistake("unwritten-read", byte_wrong, byte_right, (X,)),
    Mistake("unwritten-read", partition_wrong, partition_right, (X,)),
    Mistake("unwritten-read", partition_wrong, partition_right, (X,), time_only=True),
    Mistake("unwritten-read", packed_wrong, packed_right, (X,), target="trn3"),
    Mistake("output-unwritten", output_wrong, output_right, (X,)),
]
