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


class Copies:
    """Copies whose engine the kernel leaves to the compiler, which balances: vector and scalar in turns."""

    def __init__(self):
        self.turn = 0
        self.scalar_copies = nisa.get_nc_version() >= nisa.nc_version.gen3

    def __call__(self, dst, src):
        self.turn += 1
        if self.turn % 2:
            nisa.tensor_copy(dst=dst, src=src, engine=nisa.engine.vector)
        elif self.scalar_copies:
            nisa.tensor_copy(dst=dst, src=src, engine=nisa.engine.scalar)
        else:
            nisa.activation(dst=dst, op=nl.copy, data=src)


def transpose(copies, dst, src):
    """dst in SBUF = srcᵀ, through the tensor engine."""
    turned = psum(dst.shape, src.dtype)
    nisa.nc_transpose(dst=turned, data=src, engine=nisa.engine.tensor)
    copies(dst, turned)


def product(total, pairs):
    """total = Σ stationaryᵀ · moving over the pairs, in one bank of PSUM."""
    for stationary, moving in pairs:
        nisa.nc_matmul(dst=total, stationary=stationary, moving=moving)
    return total
