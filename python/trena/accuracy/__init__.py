"""How far the clock is from measurements: published rows beside what Trena predicts.

Four kinds of rows: the stages of one tutorial, each with a bar (rows.csv); single instructions and DMA transfers;
kernels chosen to check before any was predicted (validation.csv); and the fitted laws, each foretelling a family of
rows that it has not seen. Nothing here or in the kernels is adjusted per row. A bar is a largest error in percent or
percentage points, or `order`: the stages of one kernel on one target rank as measured.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import importlib.resources
import json

import numpy as np


@dataclasses.dataclass(frozen=True)
class Row:
    """One published figure."""

    id: str
    target: str
    kernel: str
    dtype: str
    metric: str
    published: float
    unit: str
    bar: str
    source: str


@dataclasses.dataclass(frozen=True)
class Result:
    """A row with Trena's prediction in the row's unit."""

    row: Row
    predicted: float
    evidence: str
    in_order: bool = True

    @property
    def error(self) -> float:
        """Percent of the published value, or percentage points where the value is a percentage."""
        difference = self.predicted - self.row.published
        return difference if self.row.unit == "%" else 100.0 * difference / self.row.published

    @property
    def error_unit(self) -> str:
        return "points" if self.row.unit == "%" else "%"

    @property
    def within_bar(self) -> bool:
        if self.row.bar == "order":
            return self.in_order
        return abs(self.error) <= float(self.row.bar.split()[0])

    def as_dict(self) -> dict:
        return {**dataclasses.asdict(self.row), "predicted": self.predicted, "error": self.error,
                "error_unit": self.error_unit, "evidence": self.evidence, "within_bar": self.within_bar}

    def row_as_published(self):
        """The row in the form of measurements.csv."""
        from trena.accuracy.published import Published

        return Published(self.row.id, "kernel", self.row.target, self.row.kernel, self.row.dtype, self.row.metric,
                         self.row.published, self.row.unit, "yes", self.row.source)


def load_rows() -> list[Row]:
    text = importlib.resources.files(__package__).joinpath("rows.csv").read_text(encoding="utf-8")
    return [Row(**{**fields, "published": float(fields["published"])}) for fields in csv.DictReader(text.splitlines())]


def _shapes(dtype: str):
    """[4096, 8192] @ [8192, 8192], the left operand transposed: the tutorial's problem. Zero pages cost no memory."""
    import ml_dtypes

    storage = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    return np.zeros((8192, 4096), storage), np.zeros((8192, 8192), storage)


def _run(target: str, kernel: str, dtype: str):
    from trena import launch
    from trena.accuracy import matmul_kernels

    return launch.simulate(getattr(matmul_kernels, kernel), target=target, time_only=True)(*_shapes(dtype))


def _predict(run, metric: str) -> float:
    if metric == "time":
        return run.time_ns / 1e6
    if metric == "hbm bytes":
        return (run.hbm_read_bytes + run.hbm_write_bytes) / 1e9
    unit = metric.split()[0]
    return 100.0 * (run.dma.active if unit == "dma" else run.engines[unit].active)


def _with_order(results: list[Result]) -> list[Result]:
    """Rows whose bar is the order: true where their neighbours on the same target are ranked as published."""
    checked = []
    for result in results:
        rivals = [r for r in results if (r.row.target, r.row.metric) == (result.row.target, result.row.metric)]
        in_order = all(
            (r.row.published - result.row.published) * (r.predicted - result.predicted) > 0
            for r in rivals if r.row.published != result.row.published
        )
        checked.append(dataclasses.replace(result, in_order=in_order))
    return checked


def measure(rows: list[Row] | None = None) -> list[Result]:
    """Runs every kernel once and compares. About ten seconds for all rows."""
    rows = load_rows() if rows is None else rows
    runs = {}
    for row in rows:
        key = (row.target, row.kernel, row.dtype)
        if key not in runs:
            runs[key] = _run(*key)
    evidence = {target: _worst_evidence(target) for target in {row.target for row in rows}}
    return _with_order([
        Result(row, _predict(runs[row.target, row.kernel, row.dtype], row.metric), evidence[row.target]) for row in rows
    ])


# The parts of a machine whose laws the rows exercise.
_LAWS = ("hbm.", "launch.", "core.tensor.", "core.vector.copy", "core.vector.tensor_tensor", "core.vector.memset",
         "core.sbuf.", "core.psum.", "core.dma.", "core.sync.")


def _figures(target: str):
    from trena import launch

    machine = launch.machine_for(launch.defaults.merged(target=target))
    return [figure for figure in machine.describe() if figure[0].startswith(_LAWS)]


def _worst_evidence(target: str) -> str:
    kinds = {figure[3] for figure in _figures(target)}
    return next((kind for kind in ("estimate", "extrapolated", "measured") if kind in kinds), "documented")


def free_parameters(target: str) -> list[str]:
    """Keys of the figures that rest on neither a document nor a measurement of this machine."""
    return [figure[0] for figure in _figures(target) if figure[3] in ("estimate", "extrapolated")]


def _print_table(results: list[Result]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading, justify in (("id", "left"), ("target", "left"), ("kernel", "left"), ("metric", "left"),
                             ("published", "right"), ("predicted", "right"), ("unit", "left"), ("error", "right"),
                             ("bar", "right"), ("", "left"), ("evidence", "left")):
        table.add_column(heading, justify=justify, no_wrap=True)
    for r in results:
        bar = r.row.bar if r.row.bar == "order" else f"±{r.row.bar}"
        table.add_row(r.row.id, r.row.target, r.row.kernel, r.row.metric, f"{r.row.published:.3f}",
                      f"{r.predicted:.3f}", r.row.unit, f"{r.error:+.1f} {r.error_unit}", bar,
                      "ok" if r.within_bar else "MISSED", r.evidence)
    console = Console(width=max(150, Console().width))
    console.print(table)
    for target in sorted({r.row.target for r in results}):
        keys = free_parameters(target)
        count = sum(r.row.target == target for r in results)
        print(f"{target}: {len(keys)} free parameters (estimated or carried over from another chip) for {count} rows")


def main(arguments: list[str]) -> int:
    """`trena accuracy [--json FILE] [--write-docs [FILE]] [--checkout FAMILY=DIR]`: 1 when a bar is missed, else 0."""
    import pathlib

    from trena.accuracy import public_kernels, report

    parser = argparse.ArgumentParser(prog="trena accuracy", description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="the same for machines")
    parser.add_argument("--write-docs", metavar="FILE", nargs="?", const="docs/accuracy.md",
                        help="fill the tables of the page anew (docs/accuracy.md)")
    parser.add_argument("--checkout", metavar="FAMILY=DIR", action="append", default=[],
                        help="also run public kernels from your checkout: AO, MAMBA, PROF")
    options = parser.parse_args(arguments)
    checkouts = public_kernels.parse(options.checkout)
    stages = measure()
    everything = report.collect(stages, {t: free_parameters(t) for t in ("trn1", "inf2", "trn2", "trn3")})
    everything.public = public_kernels.measure(checkouts)
    report.show(everything)
    _print_table(stages)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(report.as_dict(everything), file, indent=1)
            file.write("\n")
    if options.write_docs:
        page = pathlib.Path(options.write_docs)
        page.write_text(report.fill(page.read_text(encoding="utf-8"), report.sections(everything)), encoding="utf-8")
    return 0 if all(r.within_bar for r in stages) else 1
