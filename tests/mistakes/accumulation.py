"""Sums in PSUM."""

from table import Mistake, loaded, numbers, psum, sbuf, stored

from trena.nki import isa as nisa
from trena.nki import language as nl


def copied(total):
    result = sbuf(*total.shape)
    nisa.tensor_copy(dst=result, src=total)
    return stored(result)


def product(total, tile, k, **options):
    nisa.nc_matmul(dst=total, stationary=tile[:, 0:128], moving=tile[:, 64 * k : 64 * (k + 1)], **options)


def no_first_wrong(x):
    tile, total = loaded(x), psum(128, 64)
    for k in range(4):
        part = tile[:, 64 * k : 64 * (k + 1)]
        nisa.nc_matmul(dst=total, stationary=tile[:, 0:128], moving=part, accumulate=True)  # MISTAKE
    return copied(total)


def no_first_right(x):
    tile, total = loaded(x), psum(128, 64)
    for k in range(4):
        product(total, tile, k, accumulate=k > 0)
    return copied(total)


def half_first_wrong(x):
    tile, total = loaded(x), psum(128, 128)
    product(total[:, 0:64], tile, 0, accumulate=False)
    nisa.nc_matmul(dst=total, stationary=tile[:, 0:128], moving=tile[:, 0:128], accumulate=True)  # MISTAKE
    return copied(total)


def half_first_right(x):
    tile, total = loaded(x), psum(128, 128)
    product(total[:, 0:64], tile, 0, accumulate=False)
    product(total[:, 64:128], tile, 1, accumulate=False)
    nisa.nc_matmul(dst=total, stationary=tile[:, 0:128], moving=tile[:, 0:128], accumulate=True)
    return copied(total)


def memset_wrong(x):
    tile, total = loaded(x), psum(128, 64)
    nisa.memset(dst=total, value=0.0)  # WITH
    for k in range(4):
        nisa.nc_matmul(dst=total, stationary=tile[:, 0:128], moving=tile[:, 0:64], accumulate=True)  # MISTAKE
    return copied(total)


def memset_right(x):
    tile, total = loaded(x), psum(128, 64)
    for k in range(4):
        nisa.nc_matmul(dst=total, stationary=tile[:, 0:128], moving=tile[:, 0:64])
    return copied(total)


def bias_wrong(x):
    tile, total = loaded(x), psum(128, 64)
    product(total, tile, 0)
    nisa.tensor_tensor(dst=total, data1=total, data2=tile[:, 0:64], op=nl.add)  # WITH
    nisa.nc_matmul(dst=total, stationary=tile[:, 0:128], moving=tile[:, 0:64], accumulate=True)  # MISTAKE
    return copied(total)


def bias_right(x):
    tile, total = loaded(x), psum(128, 64)
    product(total, tile, 0)
    product(total, tile, 0, accumulate=True)
    nisa.tensor_tensor(dst=total, data1=total, data2=tile[:, 0:64], op=nl.add)
    return copied(total)


def outside_loop_wrong(x):
    tile, total, result = loaded(x), psum(128, 64), sbuf(128, 256)
    for k in range(4):
        nisa.nc_matmul(dst=total, stationary=tile[:, 0:128], moving=tile[:, 64 * k : 64 * (k + 1)])  # MISTAKE
        nisa.tensor_copy(dst=result[:, 64 * k : 64 * (k + 1)], src=total)  # WITH
    return stored(result)


def outside_loop_right(x):
    tile, result = loaded(x), sbuf(128, 256)
    for k in range(4):
        total = psum(128, 64)
        product(total, tile, k)
        nisa.tensor_copy(dst=result[:, 64 * k : 64 * (k + 1)], src=total)
    return stored(result)


def interleaved(x, second):
    tile = loaded(x)
    a, b = psum(128, 64, address=(0, 0)), psum(128, 64, address=(0, second))
    product(a, tile, 0)
    nisa.nc_matmul(dst=b, stationary=tile[:, 0:128], moving=tile[:, 64:128])  # WITH
    nisa.nc_matmul(dst=a, stationary=tile[:, 0:128], moving=tile[:, 0:64])  # MISTAKE
    result = sbuf(128, 64)
    nisa.tensor_copy(dst=result, src=a)
    return stored(result)


def interleaved_wrong(x):
    return interleaved(x, 0)


def interleaved_right(x):
    return interleaved(x, 2048)


X = numbers(128, 256)
MISTAKES = [
    Mistake("accumulation-unwritten", no_first_wrong, no_first_right, (X,)),
    Mistake("accumulation-unwritten", no_first_wrong, no_first_right, (X,), time_only=True),
    Mistake("accumulation-unwritten", half_first_wrong, half_first_right, (X,)),
    Mistake("accumulation-foreign", memset_wrong, memset_right, (X,)),
    Mistake("accumulation-foreign", bias_wrong, bias_right, (X,)),
    Mistake("accumulation-continued", outside_loop_wrong, outside_loop_right, (X,)),
    Mistake("accumulation-interleaved", interleaved_wrong, interleaved_right, (X,)),
]
