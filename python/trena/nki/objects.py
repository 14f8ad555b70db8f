"""Plain Python objects that kernels pass around."""

from __future__ import annotations

import abc
import dataclasses
import enum

from trena import _core


class _Builder(abc.ABCMeta):
    """Builds NKIObjects. Dataclasses among them may be given keywords that are no fields, and lack fields that have
    no default: kernel libraries do both, and the vendor's front end only sets attributes (nki.md §6.3)."""

    def __call__(cls, *args, **kwargs):
        if not args and _is_generated(cls) and not _fits(cls, kwargs):
            return _built_by_keywords(cls, kwargs)
        return super().__call__(*args, **kwargs)


def _is_generated(cls) -> bool:
    """Is its __init__ the one that @dataclass wrote?"""
    code = getattr(cls.__init__, "__code__", None)
    return "__dataclass_fields__" in cls.__dict__ and code is not None and code.co_filename == "<string>"


def _fits(cls, kwargs) -> bool:
    fields = [field for field in dataclasses.fields(cls) if field.init]
    names = {field.name for field in fields}
    required = {f.name for f in fields if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING}
    return required <= kwargs.keys() <= names


def _built_by_keywords(cls, kwargs):
    result = cls.__new__(cls)
    for field in dataclasses.fields(cls):
        if field.default_factory is not dataclasses.MISSING:
            object.__setattr__(result, field.name, field.default_factory())
    for name, value in kwargs.items():
        object.__setattr__(result, name, value)
    if hasattr(result, "__post_init__"):
        result.__post_init__()
    return result


class NKIObject(metaclass=_Builder):
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
