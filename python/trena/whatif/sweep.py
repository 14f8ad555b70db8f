"""Every combination of some figures' values, and the combinations that nothing beats."""

from __future__ import annotations

import dataclasses
import itertools

from trena.errors import UsageError
from trena.whatif.answers import Answer, evaluate


@dataclasses.dataclass(frozen=True)
class Axis:
    """One figure of the machine and the values it takes."""

    key: str
    values: tuple[str, ...]

    def number(self, value: str) -> float:
        try:
            return float(value)
        except ValueError:
            raise UsageError("a cost is a number", id="sweep-axis", here=f"{self.key}={value}",
                             fix="name numeric keys with --cost") from None

    @property
    def is_numeric(self) -> bool:
        try:
            return bool([float(value) for value in self.values])
        except ValueError:
            return False


def parse_axes(words) -> list[Axis]:
    """"core.sbuf_kib=192,256,384" per word; commas inside brackets belong to a value."""
    axes = []
    for word in words:
        key, equals, text = word.partition("=")
        values = tuple(_split_values(text))
        if not equals or not key or not all(values):
            raise UsageError("an axis is KEY=VALUE,VALUE,…", id="sweep-axis", here=word,
                             fix="for example core.sbuf_kib=192,256,384; the script's own words come after --")
        if any(axis.key == key for axis in axes):
            raise UsageError("each axis is another figure", id="sweep-axis", here=f"{key} twice")
        axes.append(Axis(key, values))
    if not axes:
        raise UsageError("a sweep has at least one axis", id="sweep-axis", here="no KEY=VALUE,VALUE,…",
                         fix="for example core.sbuf_kib=192,256,384")
    return sorted(axes, key=lambda axis: axis.key != "target")  # another chip first, then changes to it


def _split_values(text: str):
    depth, start = 0, 0
    for position, character in enumerate(text):
        depth += (character in "[{(") - (character in "]})")
        if character == "," and depth == 0:
            yield text[start:position].strip()
            start = position + 1
    yield text[start:].strip()


def groups(axes) -> list[tuple[str, ...]]:
    """The changes of every combination, the last axis fastest."""
    return list(itertools.product(*[[f"{axis.key}={value}" for value in axis.values] for axis in axes]))


def sweep(run, axes) -> list[Answer]:
    """The program of `run` on the machine of every combination; one trace, many clocks."""
    return evaluate(run, groups(axes))


def cost_axes(axes, names) -> list[Axis]:
    """Those that cost: the named ones, or all numeric ones."""
    by_key = {axis.key: axis for axis in axes}
    unknown = [name for name in names if name not in by_key]
    if unknown:
        raise UsageError("a cost is one of the swept keys", id="sweep-axis", here=unknown[0],
                         limit=", ".join(by_key))
    for name in names:
        for value in by_key[name].values:
            by_key[name].number(value)
    return [by_key[name] for name in names] or [axis for axis in axes if axis.is_numeric]


def pareto(answers, costs) -> list[bool]:
    """Which answers nothing beats: no other is at most as slow and at most as large in every cost, and better in one.

    costs   axes whose smaller values are cheaper
    """
    points = []
    for answer in answers:
        chosen = dict(change.split("=", 1) for change in answer.changes)
        points.append(None if answer.time_ns is None
                      else (answer.time_ns, *(axis.number(chosen[axis.key]) for axis in costs)))

    def beaten(point):
        return any(other is not None and other != point and all(a <= b for a, b in zip(other, point))
                   for other in points)

    return [point is not None and not beaten(point) for point in points]
