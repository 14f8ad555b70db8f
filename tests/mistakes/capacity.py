"""More than the memories hold, and places outside them."""

from table import Mistake, loaded, numbers, psum, sbuf, stored

from trena.nki import isa as nisa
from trena.nki import language as nl


def partitions_wrong(x):
    tile = nl.ndarray((256, 64), dtype=nl.float32, buffer=nl.sbuf)  # MISTAKE
    nisa.dma_copy(dst=tile, src=x)
    return stored(tile)


def partitions_right(x):
    tile = sbuf(128, 128)
    nisa.dma_copy(dst=tile, src=x.reshape((128, 128)))
    return stored(tile)


def one_tensor_wrong(x):
    tile = nl.ndarray((128, 60_000), dtype=nl.float32, buffer=nl.sbuf)  # MISTAKE
    nisa.memset(dst=tile, value=0.0)
    return stored(loaded(x))


def one_tensor_right(x):
    tile = sbuf(128, 40_000)
    nisa.memset(dst=tile, value=0.0)
    return stored(loaded(x))


def banks(x, count):
    tile = loaded(x)
    sums = [psum(128, 512) for _ in range(count)]
    for total in sums:
        nisa.nc_matmul(dst=total, stationary=tile[:, 0:128], moving=tile)  # MISTAKE
    result = sbuf(128, 512)
    for total in sums:
        nisa.tensor_copy(dst=result, src=total)
    return stored(result)


def banks_wrong(x):
    return banks(x, 9)


def banks_right(x):
    return banks(x, 8)


def bank_crossing_wrong(x):
    tile, total = loaded(x), psum(128, 1024)
    nisa.nc_matmul(dst=total[:, 256:768], stationary=tile[:, 0:128], moving=tile)  # MISTAKE
    result = sbuf(128, 512)
    nisa.tensor_copy(dst=result, src=total[:, 256:768])
    return stored(result)


def bank_crossing_right(x):
    tile, total = loaded(x), psum(128, 1024)
    nisa.nc_matmul(dst=total[:, 512:1024], stationary=tile[:, 0:128], moving=tile)
    result = sbuf(128, 512)
    nisa.tensor_copy(dst=result, src=total[:, 512:1024])
    return stored(result)


def address_wrong(x):
    tile = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf, address=(0, 212_000))  # MISTAKE
    nisa.dma_copy(dst=tile, src=x)
    return stored(tile)


def address_right(x):
    return stored(loaded(x, address=(0, 128_000)))


def address_partition_wrong(x):
    tile = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.sbuf, address=(96, 0))  # MISTAKE
    nisa.dma_copy(dst=tile, src=x[0:64, :])
    return stored(tile)


def address_partition_right(x):
    return stored(loaded(x[0:64, :], address=(64, 0)))


def bank_start_wrong(x):
    tile, result = loaded(x), sbuf(128, 64)
    total = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.psum, address=(0, 1024))  # MISTAKE
    nisa.nc_matmul(dst=total, stationary=tile[:, 0:128], moving=tile[:, 0:64])
    nisa.tensor_copy(dst=result, src=total)
    return stored(result)


def bank_start_right(x):
    tile, total, result = loaded(x), psum(128, 64, address=(0, 2048)), sbuf(128, 64)
    nisa.nc_matmul(dst=total, stationary=tile[:, 0:128], moving=tile[:, 0:64])
    nisa.tensor_copy(dst=result, src=total)
    return stored(result)


X = numbers(128, 512)
MISTAKES = [
    Mistake("partition-limit", partitions_wrong, partitions_right, (numbers(256, 64),)),
    Mistake("sbuf-capacity", one_tensor_wrong, one_tensor_right, (X,)),
    Mistake("psum-capacity", banks_wrong, banks_right, (X,)),
    Mistake("psum-bank-overflow", bank_crossing_wrong, bank_crossing_right, (X,)),
    Mistake("sbuf-capacity", address_wrong, address_right, (X,)),
    Mistake("address-partition", address_partition_wrong, address_partition_right, (X,)),
    Mistake("psum-bank-start", bank_start_wrong, bank_start_right, (X,)),
]
