"""What changed between two runs of one kernel, and why.

The why is exact: a run's critical path (src/trena/report/critical_path.h) divides its time among source lines, so
the differences of those parts, with the launch's, add up to the difference in time.
"""

from __future__ import annotations

import dataclasses
import os

# Two paths come from the same source when lines that both have carry at least this part of one path's time.
_SAME_SOURCE = 0.5


@dataclasses.dataclass
class Reason:
    """One part of the difference in time."""

    row: str  # "tensor", "dma.load", "launch"
    instruction: str
    place: str  # "matmul.py:41"; empty when the two runs do not come from the same lines
    before_ns: float
    after_ns: float
    spill: bool = False

    @property
    def delta_ns(self) -> float:
        return self.after_ns - self.before_ns


@dataclasses.dataclass
class Wait:
    """One engine's idle time at one line, for one cause."""

    row: str
    instruction: str
    place: str
    cause: str
    cause_place: str
    before_ns: float
    after_ns: float

    @property
    def delta_ns(self) -> float:
        return self.after_ns - self.before_ns


@dataclasses.dataclass
class Comparison:
    before: dict
    after: dict
    reasons: list[Reason]  # largest difference first; they add up to delta_ns
    waits: list[Wait]  # largest difference first
    causes: list[str]  # what is different in kind: machine, bound, spills, table loads

    @property
    def delta_ns(self) -> float:
        return self.after["time_ns"] - self.before["time_ns"]

    def as_dict(self) -> dict:
        return {
            "name": self.after["name"], "before_ns": self.before["time_ns"], "after_ns": self.after["time_ns"],
            "delta_ns": self.delta_ns, "causes": self.causes,
            "reasons": [{**dataclasses.asdict(r), "delta_ns": r.delta_ns} for r in self.reasons],
            "waits": [{**dataclasses.asdict(w), "delta_ns": w.delta_ns} for w in self.waits],
        }


def compare(before: dict, after: dict) -> Comparison:
    """Two runs as `Run.as_dict()` or a file of `trena run --json` has them."""
    return Comparison(before, after, _reasons(before, after), _waits(before, after), _causes(before, after))


def place(at: dict) -> str:
    return f"{os.path.basename(at['file'])}:{at['line']}" if at["line"] else ""


def _parts(run: dict, by_line: bool) -> dict:
    parts: dict[tuple, float] = {}
    for part in run.get("critical_path", []):
        key = (part["row"], part["instruction"], place(part["at"]) if by_line else "", part["spill"])
        parts[key] = parts.get(key, 0.0) + part["time_ns"]
    return parts


def _shared(path: dict, other: dict) -> float:
    """The part of a path's time that lies at lines of the other one, 0 to 1."""
    return sum(time for key, time in path.items() if key in other) / max(sum(path.values()), 1e-9)


def _reasons(before: dict, after: dict) -> list[Reason]:
    old, new = _parts(before, True), _parts(after, True)
    if max(_shared(old, new), _shared(new, old)) < _SAME_SOURCE:
        old, new = _parts(before, False), _parts(after, False)
    launch = ("launch", "", "", False)
    old[launch], new[launch] = before["timing"]["launch_ns"], after["timing"]["launch_ns"]
    reasons = [Reason(row, name, at, old.get(key, 0.0), new.get(key, 0.0), spill)
               for key in sorted(old.keys() | new.keys()) for row, name, at, spill in [key]]
    return sorted((r for r in reasons if r.delta_ns != 0), key=lambda r: -abs(r.delta_ns))


def _waits(before: dict, after: dict) -> list[Wait]:
    def table(run):
        times: dict[tuple, float] = {}
        for stall in run["timing"]["stalls"]:
            key = (stall["row"], stall["instruction"], place(stall["at"]), stall["waited_for"],
                   place(stall["waited_for_at"]))
            times[key] = times.get(key, 0.0) + stall["time_ns"]
        return times

    old, new = table(before), table(after)
    waits = [Wait(*key, old.get(key, 0.0), new.get(key, 0.0)) for key in sorted(old.keys() | new.keys())]
    return sorted((w for w in waits if w.delta_ns != 0), key=lambda w: -abs(w.delta_ns))


def _causes(before: dict, after: dict) -> list[str]:
    from trena.report.terminal import format_bytes

    old, new = before["timing"], after["timing"]
    causes = []
    if before["machine"] != after["machine"]:
        causes.append(f"machine {before['machine']} → {after['machine']}")
    changed = [change for change in after.get("machine_changes", []) if change not in before.get("machine_changes", [])]
    undone = [change for change in before.get("machine_changes", []) if change not in after.get("machine_changes", [])]
    causes += [f"set {change}" for change in changed] + [f"no longer {change}" for change in undone]
    if (not causes and "machine_hash" in before and "machine_hash" in after
            and before["machine_hash"] != after["machine_hash"]):
        causes.append(f"other figures of {after['machine']}: hash {before['machine_hash']} → {after['machine_hash']}")
    for key in ("cores", "schedule", "spill"):
        if before[key] != after[key]:
            causes.append(f"{key} {before[key]} → {after[key]}")
    if old["instructions"] != new["instructions"]:
        causes.append(f"{old['instructions']:,} → {new['instructions']:,} instructions")
    if old["bound"]["by"] != new["bound"]["by"]:
        causes.append(f"bound by {old['bound']['by']} → {new['bound']['by']}")
    if old["dma"]["spilled_bytes"] != new["dma"]["spilled_bytes"]:
        causes.append(f"spills {format_bytes(old['dma']['spilled_bytes'])} → "
                      f"{format_bytes(new['dma']['spilled_bytes'])}; the kernel's tensors need "
                      f"{new['memory']['sbuf_peak_bytes_per_partition'] / 1024:.4g} KiB of each partition at once, "
                      f"usable {old['memory']['sbuf_usable_bytes_per_partition'] / 1024:.4g} → "
                      f"{new['memory']['sbuf_usable_bytes_per_partition'] / 1024:.4g}")
    if old["tables"]["loads"] != new["tables"]["loads"]:
        causes.append(f"activation tables loaded {old['tables']['loads']} → {new['tables']['loads']} times")
    return causes
