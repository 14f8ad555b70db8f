"""Plain Python objects that kernels pass around."""

from __future__ import annotations

import enum

from trena import _core


class NKIObject:
    """Base of configuration objects. Without an __init__ of its own a subclass is built with keywords."""

    def __init__(self, **fields):
        for name, value in fields.items():
            setattr(self, name, value)


class MemoryRegion(str, enum.Enum):
    """Where a tensor lives. Members compare equal to their names."""

    sbuf = "sbuf"
    psum = "psum"
    private_hbm = "private_hbm"
    shared_hbm = "shared_hbm"

    def __str__(self) -> str:
        return self.value

    __hash__ = str.__hash__


# Region -> (space, role) of the tensor made there.
PLACES = {
    MemoryRegion.sbuf: ("sbuf", "local"),
    MemoryRegion.psum: ("psum", "local"),
    MemoryRegion.private_hbm: ("hbm", "local"),
    MemoryRegion.shared_hbm: ("hbm", "shared"),
}
PLACES.update({str(region.value): place for region, place in list(PLACES.items())})
PLACES["hbm"] = PLACES[MemoryRegion.private_hbm]

for _region in MemoryRegion:
    _core.register_memory(_region.value, _region)
_core.register_memory("hbm", MemoryRegion.private_hbm)


DynamicSlice = _core.DynamicSlice  # nl.ds(start, size), as an index
