"""What the files of this folder share."""

import dataclasses
from typing import Any, Callable

import numpy as np

from trena.nki import isa as nisa
from trena.nki import language as nl


@dataclasses.dataclass
class Mistake:
    """A kernel with one planted mistake, and its corrected twin; both take `arguments`."""

    id: str  # what must be found
    wrong: Callable
    right: Callable
    arguments: tuple[Any, ...] = ()
    right_arguments: tuple[Any, ...] | None = None  # of the twin, when the mistake is in them
    target: str = "trn2"
    cores: int = 1
    time_only: bool = False


def numbers(*shape, dtype=np.float32):
    return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


def sbuf(*shape, dtype=nl.float32, **options):
    return nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf, **options)


def psum(*shape, dtype=nl.float32, **options):
    return nl.ndarray(shape, dtype=dtype, buffer=nl.psum, **options)


def hbm(*shape, dtype=nl.float32, **options):
    return nl.ndarray(shape, dtype=dtype, buffer=nl.shared_hbm, **options)


def loaded(x, **options):
    tile = sbuf(*x.shape, dtype=x.dtype, **options)
    nisa.dma_copy(dst=tile, src=x)
    return tile


def stored(tile):
    out = hbm(*tile.shape, dtype=tile.dtype)
    nisa.dma_copy(dst=out, src=tile)
    return out
