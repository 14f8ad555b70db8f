"""Types, engines, memories and shapes that an instruction does not take."""

import numpy as np
from table import Mistake, loaded, numbers, psum, sbuf, stored

from trena.nki import isa as nisa
from trena.nki import language as nl


def integer_product(x, dtype):
    tile, total, result = sbuf(128, 128, dtype=dtype), psum(128, 128), sbuf(128, 128)
    nisa.memset(dst=tile, value=1)
    nisa.nc_matmul(dst=total, stationary=tile, moving=tile)  # MISTAKE
    nisa.tensor_copy(dst=result, src=total)
    return stored(result)


def integer_product_wrong(x):
    return integer_product(x, nl.int32)


def integer_product_right(x):
    return integer_product(x, nl.bfloat16)


def bitwise_wrong(x):
    tile = loaded(x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.bitwise_and, operand0=3)  # MISTAKE
    return stored(tile)


def bitwise_right(x):
    tile = loaded(x).view(nl.int32)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.bitwise_and, operand0=3)
    return stored(tile)


def engine_wrong(x):
    tile, total, result = loaded(x), psum(128, 128), sbuf(128, 128)
    nisa.nc_matmul(dst=total, stationary=tile[:, 0:128], moving=tile[:, 0:128])
    nisa.tensor_copy(dst=result, src=total, engine=nisa.engine.gpsimd)  # MISTAKE
    return stored(result)


def engine_right(x):
    tile, total, result = loaded(x), psum(128, 128), sbuf(128, 128)
    nisa.nc_matmul(dst=total, stationary=tile[:, 0:128], moving=tile[:, 0:128])
    nisa.tensor_copy(dst=result, src=total, engine=nisa.engine.vector)
    return stored(result)


def two_psum_wrong(x):
    tile, a, b, result = loaded(x), psum(128, 64), psum(128, 64), sbuf(128, 64)
    for total in (a, b):
        nisa.nc_matmul(dst=total, stationary=tile[:, 0:128], moving=tile[:, 0:64])
    nisa.tensor_tensor(dst=result, data1=a, data2=b, op=nl.add)  # MISTAKE
    return stored(result)


def two_psum_right(x):
    tile, a, b, result = loaded(x), psum(128, 64), psum(128, 64), sbuf(128, 64)
    for total in (a, b):
        nisa.nc_matmul(dst=total, stationary=tile[:, 0:128], moving=tile[:, 0:64])
    nisa.tensor_copy(dst=result, src=a)
    nisa.tensor_tensor(dst=result, data1=result, data2=b, op=nl.add)
    return stored(result)


def result_in_sbuf_wrong(x):
    tile, total = loaded(x), sbuf(128, 64)
    nisa.nc_matmul(dst=total, stationary=tile[:, 0:128], moving=tile[:, 0:64])  # MISTAKE
    return stored(total)


def result_in_sbuf_right(x):
    tile, total, result = loaded(x), psum(128, 64), sbuf(128, 64)
    nisa.nc_matmul(dst=total, stationary=tile[:, 0:128], moving=tile[:, 0:64])
    nisa.tensor_copy(dst=result, src=total)
    return stored(result)


def product_shape_wrong(x):
    tile, total, result = loaded(x), psum(64, 128), sbuf(64, 128)
    nisa.nc_matmul(dst=total, stationary=tile[:, 0:128], moving=tile[:, 128:192])  # MISTAKE
    nisa.tensor_copy(dst=result, src=total)
    return stored(result)


def product_shape_right(x):
    tile, total, result = loaded(x), psum(64, 128), sbuf(64, 128)
    nisa.nc_matmul(dst=total, stationary=tile[:, 128:192], moving=tile[:, 0:128])
    nisa.tensor_copy(dst=result, src=total)
    return stored(result)


def elements_wrong(x):
    tile, result = loaded(x), sbuf(128, 256)
    nisa.tensor_tensor(dst=result, data1=tile[:, 0:256], data2=tile[:, 256:500], op=nl.add)  # MISTAKE
    return stored(result)


def elements_right(x):
    tile, result = loaded(x), sbuf(128, 256)
    nisa.tensor_tensor(dst=result, data1=tile[:, 0:256], data2=tile[:, 256:512], op=nl.add)
    return stored(result)


def copy_count_wrong(x):
    tile = sbuf(128, 256)
    nisa.dma_copy(dst=tile, src=x)  # MISTAKE
    return stored(tile)


def copy_count_right(x):
    tile = sbuf(128, 256)
    nisa.dma_copy(dst=tile, src=x[:, 0:256])
    return stored(tile)


def start_partition_wrong(x):
    tile, result = loaded(x), sbuf(64, 512)
    nisa.tensor_copy(dst=result, src=tile[16:80, :])  # MISTAKE
    return stored(result)


def start_partition_right(x):
    tile, result = loaded(x), sbuf(64, 512)
    nisa.tensor_copy(dst=result, src=tile[64:128, :])
    return stored(result)


def not_here_wrong(x):
    result = sbuf(128, 128, dtype=nl.bfloat16)
    nisa.dma_copy(dst=result, src=x, dge_mode=nisa.dge_mode.hwdge)  # MISTAKE
    return stored(result)


def not_here_right(x):
    result = sbuf(128, 128, dtype=nl.bfloat16)
    nisa.dma_copy(dst=result, src=x, dge_mode=nisa.dge_mode.swdge)
    return stored(result)


X = numbers(128, 512)
MISTAKES = [
    Mistake("dtype-refused", integer_product_wrong, integer_product_right, (X,)),
    Mistake("dtype-refused", bitwise_wrong, bitwise_right, (X,)),
    Mistake("memory-refused", engine_wrong, engine_right, (X,)),
    Mistake("two-psum-operands", two_psum_wrong, two_psum_right, (X,)),
    Mistake("memory-refused", result_in_sbuf_wrong, result_in_sbuf_right, (X,)),
    Mistake("matmul-shape", product_shape_wrong, product_shape_right, (X,)),
    Mistake("element-mismatch", elements_wrong, elements_right, (X,)),
    Mistake("dma-element-count", copy_count_wrong, copy_count_right, (X,)),
    Mistake("partition-start", start_partition_wrong, start_partition_right, (X,)),
    Mistake("dge-refused", not_here_wrong, not_here_right, (np.ones((128, 128), np.float32),)),
]
