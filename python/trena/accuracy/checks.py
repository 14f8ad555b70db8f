"""The kernel rows that check the clock, the order of kernels inside their ladders, and figures over all of it."""

from __future__ import annotations

import itertools
import re
import statistics

from trena.accuracy import kernel_rows
from trena.accuracy.published import Prediction, Published, chosen

_NOT_DESCRIBED = "its source does not say what the kernel does"
_BOUNDS = {"tensor": "PE", "vector": "ACT/DVE", "scalar": "ACT/DVE", "gpsimd": "ACT/DVE", "dma": "DMA"}
# A kernel whose busiest unit works less than this part of the time waits for latencies.
_BUSY = 0.6


def bound_of(run) -> str:
    units = {name: use.active for name, use in run.engines.items()} | {"dma": run.dma.active}
    name = max(units, key=units.get)
    whole = run.time_ns / max(1.0, run.time_ns - run.launch_ns)
    return _BOUNDS.get(name, "latency") if units[name] * whole >= _BUSY else "latency"


class Runs:
    """Each kernel runs once per chip, whatever number of rows it stands for."""

    def __init__(self):
        self._runs: dict = {}

    def of(self, chip: str, kernel, sizes):
        import trena.nki as nki
        from trena import launch

        key = (chip, kernel, sizes)
        if key not in self._runs:
            def body():
                kernel(*sizes)

            body.__name__ = kernel.__name__
            self._runs[key] = launch.simulate(nki.jit(body), target=chip, time_only=True)()
        return self._runs[key]

    def predict(self, row: Published, use: str = "") -> Prediction:
        kernel = kernel_rows.kernel_of(row)
        if kernel is None:
            return Prediction(row, None, _NOT_DESCRIBED, use=use)
        run = self.of(row.chip, *kernel)
        predicted = kernel_rows.reading(row, run)
        why = "" if predicted is not None else "not counted by Trena"
        return Prediction(row, predicted, why, bound_of(run), use)


def measure(selected=None) -> list[Prediction]:
    """Predictions for the chosen rows (all of validation.csv, or those of `selected` ids)."""
    runs = Runs()
    return [runs.predict(row, use) for row, use in chosen() if selected is None or row.id in selected]


# ---- Ladders ---------------------------------------------------------------------------------------------

# A ladder is one piece of work in several kernels; rows by the family and what of their words names the work.
_LADDERS = [
    ("NAT matmul", "NAT", "MFU", r"matmul (lhsT_rhs|variant|loads)", None),
    ("PAN GEMM tiling", "PAN", "throughput", r"NKI GEMM", None),
    ("PAN store width", "PAN", "bandwidth over", r"store width", None),
    ("PROF attention", "PROF", "total_time", r"attention", r"dtype=\w+; d_head=128; seqlen=\d+"),
    ("MAMBA", "MAMBA", "measured", r"mamba_v", r"seq_len=\d+"),
    ("CS149 convolution", "CS149", "NC latency", r"^conv2d", r"fp\d+"),
    ("CS149 vector add", "CS149", "NC latency", r"vector_add_stream", r"n=\d+"),
]


def ladders(predictions: list[Prediction]) -> dict[str, list[Prediction]]:
    found: dict[str, list[Prediction]] = {}
    for name, family, metric, words, part in _LADDERS:
        for p in predictions:
            row = p.row
            if row.family != family or metric not in row.metric or not re.search(words, row.workload):
                continue
            match = re.search(part, f"{row.shape}; {row.workload}") if part else None
            key = f"{name} {match.group(0)}" if match else name
            found.setdefault(key, []).append(p)
    return {name: members for name, members in found.items() if len(members) > 1}


def _time(value: float, unit: str) -> float:
    """Smaller is faster."""
    return value if unit in ("ms", "us", "ns") else 1.0 / value


def pairs(members: list[Prediction]) -> tuple[int, int]:
    """(pairs in the published order, pairs that differ by more than 5 %); a pair not run is out of order."""
    right = total = 0
    for a, b in itertools.combinations(members, 2):
        slow, fast = (_time(p.row.value, p.row.unit) for p in (a, b))
        if max(slow, fast) <= 1.05 * min(slow, fast):
            continue
        total += 1
        if a.predicted and b.predicted:
            difference = _time(a.predicted, a.row.unit) - _time(b.predicted, b.row.unit)
            right += (slow - fast) * difference > 0
    return right, total


# ---- Figures over many rows ------------------------------------------------------------------------------


def quantile(values: list[float], part: float) -> float:
    """Linear between ranks."""
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def spread(predictions: list[Prediction]) -> dict:
    """Median, 90th percentile and worst of the sizes of the errors; a row not run counts as 100."""
    sizes = [abs(p.error) if p.error is not None else 100.0 for p in predictions]
    if not sizes:
        return {"rows": 0}
    worst = max(predictions, key=lambda p: abs(p.error) if p.error is not None else 100.0)
    return {"rows": len(sizes), "not_run": sum(p.predicted is None for p in predictions),
            "median": statistics.median(sizes), "p90": quantile(sizes, 0.9), "worst": max(sizes),
            "worst_id": worst.row.id}


def grouped(predictions: list[Prediction], key) -> dict[str, dict]:
    groups: dict[str, list[Prediction]] = {}
    for p in predictions:
        groups.setdefault(key(p), []).append(p)
    return {name: spread(members) for name, members in sorted(groups.items())}
