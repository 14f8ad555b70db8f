"""What the kernels share: tiles, loads, stores, copies out of PSUM."""

import trena.nki.isa as nisa
import trena.nki.language as nl

PARTITIONS = 128
MOVING = 512


def span(index, size):
    return slice(index * size, (index + 1) * size)


def hbm(shape, dtype):
    return nl.ndarray(shape, dtype, buffer=nl.hbm)


def sbuf(shape, dtype=nl.float32):
    return nl.ndarray(shape, dtype, buffer=nl.sbuf)


def psum(shape, dtype=nl.float32):
    return nl.ndarray(shape, dtype, buffer=nl.psum)


def load(source, dtype, shape=None, mode=None):
    """A tile of an HBM tensor in SBUF."""
    tile = sbuf(shape or source.shape, dtype)
    nisa.dma_copy(dst=tile, src=source, **({"dge_mode": mode} if mode is not None else {}))
    return tile


def store(target, tile, mode=None):
    nisa.dma_copy(dst=target, src=tile, **({"dge_mode": mode} if mode is not None else {}))


def copy(dst, src):
    """A copy whose engine is left to the compiler."""
    nisa.tensor_copy(dst=dst, src=src)


def transpose(dst, src):
    """dst in SBUF = srcᵀ, through the tensor engine."""
    turned = psum(dst.shape, src.dtype)
    nisa.nc_transpose(dst=turned, data=src, engine=nisa.engine.tensor)
    copy(dst, turned)


def product(total, pairs):
    """total = Σ stationaryᵀ · moving over the pairs, in one bank of PSUM."""
    for stationary, moving in pairs:
        nisa.nc_matmul(dst=total, stationary=stationary, moving=moving)
    return total
