"""Published figures: measurements.csv holds our own copy of the instruction, DMA and kernel rows, facts with their
sources; validation.csv names the kernel rows that check the clock (chosen before any was predicted: tests/accuracy/).
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import importlib.resources


@dataclasses.dataclass(frozen=True)
class Published:
    id: str
    level: str
    target: str
    workload: str
    shape: str
    metric: str
    value: float
    unit: str
    reproducible: str
    source: str

    @property
    def family(self) -> str:
        return self.id.rsplit("-", 1)[0]

    @property
    def chip(self) -> str | None:
        """The machine it was measured on: the first that the row names."""
        found = [(self.target.find(name), name) for name in ("trn1", "trn2", "trn3", "inf2") if name in self.target]
        return min(found)[1] if found else None


def _text(name: str) -> list[str]:
    return importlib.resources.files(__package__).joinpath(name).read_text(encoding="utf-8").splitlines()


@functools.cache
def rows() -> dict[str, Published]:
    """Every row whose value is a number (a leading ~ means about)."""
    found = {}
    for fields in csv.DictReader(_text("measurements.csv")):
        fields["value"] = float(fields["value"].lstrip("~"))
        found[fields["id"]] = Published(**fields)
    return found


def chosen() -> list[tuple[Published, str]]:
    """The kernel rows that check, each `time` or `counter`."""
    return [(rows()[fields["id"]], fields["use"]) for fields in csv.DictReader(_text("validation.csv"))]


@dataclasses.dataclass(frozen=True)
class Prediction:
    """A published row and what Trena says; `predicted` is None where it was not run, and `why` says why."""

    row: Published
    predicted: float | None
    why: str = ""
    bound: str = ""  # what limits the kernel: PE, DMA, ACT/DVE or latency
    use: str = ""

    @property
    def in_points(self) -> bool:
        """A part of the time; MFU is a rate."""
        return self.row.unit == "%" and self.row.metric != "MFU"

    @property
    def error(self) -> float | None:
        """Percent of the published value, or percentage points where the value is a part of the time."""
        if self.predicted is None:
            return None
        difference = self.predicted - self.row.value
        if self.in_points:
            return difference
        return 100.0 * difference / self.row.value if self.row.value else (0.0 if not difference else 100.0)

    @property
    def error_unit(self) -> str:
        return "points" if self.in_points else "%"

    def as_dict(self) -> dict:
        return {"id": self.row.id, "target": self.row.chip, "workload": self.row.workload, "metric": self.row.metric,
                "published": self.row.value, "unit": self.row.unit, "predicted": self.predicted, "error": self.error,
                "error_unit": self.error_unit, "bound": self.bound, "why": self.why, "source": self.row.source}
