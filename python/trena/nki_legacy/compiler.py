"""neuronxcc.nki.compiler: allocators that choose addresses, and decorators that pass through."""

from __future__ import annotations

import contextlib
import math

from trena.errors import NotModelled
from trena.nki.objects import MemoryRegion


class Allocator:
    """Where the tile of each block lies: what buffer= may be instead of a memory."""

    def __init__(self, region: MemoryRegion, place=None):
        self.region = region
        self.place = place  # (block, partitions, free bytes) -> (partition, byte offset)

    def address(self, block, tile_shape, itemsize):
        if self.place is None:
            return None
        free_bytes = math.prod(tile_shape[1:]) * itemsize
        return self.place(block or (0,), tile_shape[0], free_bytes)


def _modulo(block, counts, step, base):
    """Blocks take turns: their index modulo `counts`, in row-major order, `step` apart (nki.md §5.1-4)."""
    counts = tuple(counts) or (1,) * len(block)
    linear = 0
    for index, count in zip(block, counts):
        linear = linear * count + index % count
    return base + linear * step


class _Sbuf:
    """nki.compiler.sbuf: alloc, mod_alloc, auto_alloc."""

    def auto_alloc(self):
        return Allocator(MemoryRegion.sbuf)

    def alloc(self, func):
        """func(block, partitions, free bytes) returns (partition, byte offset)."""
        return Allocator(MemoryRegion.sbuf, func)

    def mod_alloc(self, *, base_addr, base_partition=0, num_par_tiles=(), num_free_tiles=()):
        """Blocks share num_free_tiles places along the free axis and num_par_tiles along the partitions."""

        def place(block, partitions, free_bytes):
            return (_modulo(block, num_par_tiles, partitions, base_partition),
                    _modulo(block, num_free_tiles, free_bytes, base_addr))

        return Allocator(MemoryRegion.sbuf, place)


class _Psum:
    """nki.compiler.psum: alloc, mod_alloc, auto_alloc. Places are banks."""

    def auto_alloc(self):
        return Allocator(MemoryRegion.psum)

    def alloc(self, func):
        """func(block, partitions, free bytes) returns (bank, partition, byte offset)."""

        def place(block, partitions, free_bytes):
            bank, partition, offset = func(block, partitions, free_bytes)
            return partition, bank * _bank_bytes() + offset

        return Allocator(MemoryRegion.psum, place)

    def mod_alloc(self, *, base_bank, base_addr=0, base_partition=0, num_bank_tiles=(), num_par_tiles=(),
                  num_free_tiles=()):
        """Blocks share num_bank_tiles banks."""

        def place(block, partitions, free_bytes):
            bank = _modulo(block, num_bank_tiles, 1, base_bank)
            return (_modulo(block, num_par_tiles, partitions, base_partition),
                    bank * _bank_bytes() + _modulo(block, num_free_tiles, free_bytes, base_addr))

        return Allocator(MemoryRegion.psum, place)


def _bank_bytes() -> int:
    from trena.nki.language import tile_size

    return tile_size.psum_bank_fmax_bytes


sbuf = _Sbuf()
psum = _Psum()


def _pass_through(func=None, **ignored):
    return func if callable(func) else (lambda decorated: decorated)


skip_middle_end_transformations = enable_stack_allocator = force_auto_alloc = _pass_through


@contextlib.contextmanager
def no_reorder():
    """Instructions inside stay in program order."""
    from trena.nki import language

    with language.no_reorder():
        yield


def multi_buffer(factor=2):
    raise NotModelled("nki.compiler.multi_buffer is not modelled", id="not-modelled", here="multi_buffer")
