"""Index expressions of the legacy API: nl.arange, nl.mgrid, masks.

An index stays affine in its axes: offset + sum(coefficient * axis). That is what an access pattern can encode, so
anything else is refused where it is written (nki.md §5.4-29).
"""

from __future__ import annotations

import contextlib
import operator
import warnings

from trena.errors import IllegalInstruction, NotModelled, UsageError
from trena.nki.language import _whole


class Axis:
    """One running variable: `size` values 0, 1, … laid along dimension `dim` of `rank`."""

    __slots__ = ("size", "dim", "rank")

    def __init__(self, size: int, dim: int = 0, rank: int = 1):
        self.size = size
        self.dim = dim
        self.rank = rank


def _refuse(what: str, text: str):
    raise IllegalInstruction(
        "an index is an affine expression of nl.arange, loop variables and numbers", id="index-not-affine",
        here=f"{text}: {what}", fix="use +, - and * with numbers only",
    )


class Affine:
    """offset + sum of coefficient * axis. Comparisons give a Mask."""

    __slots__ = ("offset", "terms", "_placed")
    __array_priority__ = 100

    def __init__(self, offset: int, terms: dict[Axis, int]):
        self.offset = offset
        self.terms = terms
        self._placed = None

    @property
    def rank(self) -> int:
        return max((axis.rank for axis in self.terms), default=0)

    @property
    def shape(self) -> tuple[int, ...]:
        sizes = [1] * self.rank
        for axis in self.terms:
            sizes[axis.dim] = axis.size
        return tuple(sizes)

    def __getitem__(self, key):
        """i[:, None]: puts a one-dimensional index along one dimension of several."""
        key = key if isinstance(key, tuple) else (key,)
        full = [k for k, entry in enumerate(key) if isinstance(entry, slice)]
        if len(full) != 1 or any(entry is not None for k, entry in enumerate(key) if k != full[0]) or self.rank > 1:
            _refuse(f"[{key}]", "an nl.arange takes one ':' and None elsewhere")
        if self._placed is None:
            self._placed = {}
        place = (full[0], len(key))
        if place not in self._placed:  # the same expression is the same axis, so that masks find it
            axes = {Axis(axis.size, *place): coefficient for axis, coefficient in self.terms.items()}
            self._placed[place] = Affine(self.offset, axes)
        return self._placed[place]

    def _combine(self, other, sign):
        if isinstance(other, Affine):
            terms = dict(self.terms)
            for axis, coefficient in other.terms.items():
                terms[axis] = terms.get(axis, 0) + sign * coefficient
            return Affine(self.offset + sign * other.offset, terms)
        return Affine(self.offset + sign * operator.index(other), self.terms)

    def __add__(self, other):
        return self._combine(other, 1)

    __radd__ = __add__

    def __sub__(self, other):
        return self._combine(other, -1)

    def __rsub__(self, other):
        return (-self)._combine(other, 1)

    def __neg__(self):
        return self * -1

    def __mul__(self, other):
        if isinstance(other, Affine):
            _refuse("index * index", "a product of two indices")
        factor = operator.index(other)
        return Affine(self.offset * factor, {axis: factor * c for axis, c in self.terms.items()})

    __rmul__ = __mul__

    def __mod__(self, other):
        _refuse("%", "a remainder")

    def __floordiv__(self, other):
        _refuse("//", "a quotient")

    def __ge__(self, other):
        return Mask([self - other])

    def __gt__(self, other):
        return Mask([self - other - 1])

    def __le__(self, other):
        return Mask([other - self])

    def __lt__(self, other):
        return Mask([other - self - 1])

    def __eq__(self, other):
        return (self >= other) & (self <= other)

    __hash__ = object.__hash__

    def __bool__(self):
        raise UsageError("an index has no truth value", id="control_flow_condition_depending_on_arange",
                         here="an nl.arange in a Python condition", fix="use mask=")


class Mask:
    """Conditions `expression >= 0` that all hold; they shrink an instruction (nki.md §5.4-28)."""

    __slots__ = ("conditions",)

    def __init__(self, conditions: list[Affine]):
        self.conditions = conditions

    def __and__(self, other):
        if isinstance(other, Mask):
            return Mask(self.conditions + other.conditions)
        return self if other else NEVER

    __rand__ = __and__

    def __or__(self, other=None):
        raise IllegalInstruction("a mask is comparisons of indices joined with &", id="unsupported_expression_in_mask",
                                 here="a mask with | or ~",
                                 fix="issue an instruction for each part, or nisa.affine_select")

    __ror__ = __invert__ = __or__

    def __bool__(self):
        warnings.warn("a mask is always true in a Python condition: join masks with &, not with `and`", stacklevel=2)
        return True

    def limits(self, sizes, axes=None) -> list[tuple[int, int]] | None:
        """First and one past the last element of each dimension; None when nothing is left.

        axes   only conditions on these axes count (a product has operands with different ones)
        """
        limits = [(0, size) for size in sizes]
        for condition in self.conditions:
            varying = [(axis, c) for axis, c in condition.terms.items() if c]
            if axes is not None and not all(axis in axes for axis, _ in varying):
                continue
            if not varying:
                if condition.offset < 0:
                    return None
                continue
            if len(varying) > 1:
                _check_implied(condition, varying)
                continue
            (axis, coefficient), = varying
            dim = axis.dim + len(sizes) - axis.rank  # aligned at the last dimension, as NumPy does
            if dim >= 0 and sizes[dim] > 1:
                limits[dim] = _intersect(limits[dim], condition.offset, coefficient)
        return None if any(stop <= start for start, stop in limits) else limits


def _intersect(limit, offset, coefficient):
    """The part of [start, stop) where offset + coefficient * k >= 0."""
    start, stop = limit
    if coefficient > 0:
        return max(start, -(offset // coefficient)), stop
    return start, min(stop, offset // -coefficient + 1)


def _check_implied(condition, varying):
    lowest = condition.offset + sum(min(0, c * (axis.size - 1)) for axis, c in varying)
    if lowest < 0:
        raise NotModelled(
            "a mask that couples two axes is not modelled", id="not-modelled", here="mask over " +
            " and ".join(f"dimension {axis.dim}" for axis, _ in varying), fix="use nisa.affine_select",
        )


NEVER = Mask([Affine(-1, {})])


def arange(*bounds) -> Affine:
    """nl.arange(n), nl.arange(start, stop): an index that runs over consecutive values."""
    start, stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    start, stop = _whole(start), _whole(stop)
    return Affine(start, {Axis(stop - start): 1})


class Grid:
    """nl.mgrid[0:128, 0:512]: one index per dimension; also .p, .x, .y, .z."""

    def __init__(self, indices):
        self.indices = indices
        for name, index in zip("pxyz", indices):
            setattr(self, name, index)

    def __iter__(self):
        return iter(self.indices)

    def __getitem__(self, k):
        return self.indices[k]

    def __len__(self):
        return len(self.indices)


class _MeshGrid:
    def __getitem__(self, key):
        key = key if isinstance(key, tuple) else (key,)
        return Grid([
            Affine(int(part.start or 0), {Axis(int(part.stop) - int(part.start or 0), dim, len(key)): 1})
            for dim, part in enumerate(key)
        ])


mgrid = _MeshGrid()


class LoopIndex(int):
    """The value of a loop variable, which knows its loop (loop_reduce asks for it)."""

    loop: Loop

    def __new__(cls, value, loop):
        index = super().__new__(cls, value)
        index.loop = loop
        return index


class Loop:
    """affine_range, sequential_range, static_range: executed once per value, inside its directives."""

    started = 0

    def __init__(self, *bounds, directives=(), **ignored):
        self.values = range(*map(_whole, bounds))
        self.directives = directives if isinstance(directives, (tuple, list)) else (directives,)

    def __iter__(self):
        Loop.started += 1
        self.serial = Loop.started
        with contextlib.ExitStack() as inside:
            for directive in self.directives:  # nki.compiler.no_reorder()
                inside.enter_context(directive)
            for value in self.values:
                yield LoopIndex(value, self)

    def __len__(self):
        return len(self.values)
