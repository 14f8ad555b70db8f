"""Everything `trena accuracy` knows, as a table in the terminal, as JSON, and as the generated parts of a page."""

from __future__ import annotations

import dataclasses
import re
import statistics

from trena.accuracy import checks, instructions
from trena.accuracy.published import Prediction

JSON_SCHEMA = "trena.accuracy/1"


@dataclasses.dataclass
class Report:
    stages: list  # trena.accuracy.Result: rows with a bar of their own
    instructions: list[Prediction]
    control: list[Prediction]
    held_out: list  # (law, family, predictions)
    kernels: list[Prediction]
    free_parameters: dict[str, list[str]]
    curve: list[Prediction] = dataclasses.field(default_factory=list)  # rows of a presumed chip, on trn3
    public: list[Prediction] = dataclasses.field(default_factory=list)  # kernels of the user's checkouts

    @property
    def times(self) -> list[Prediction]:
        return [p for p in self.kernels if p.use == "time"]

    @property
    def counters(self) -> list[Prediction]:
        return [p for p in self.kernels if p.use == "counter"]

    def held_out_predictions(self) -> list[Prediction]:
        return [p for _, _, members in self.held_out for p in members]

    def ladders(self) -> dict[str, tuple[int, int]]:
        found = {name: checks.pairs(members) for name, members in checks.ladders(self.kernels).items()}
        for target in sorted({r.row.target for r in self.stages}):
            members = [Prediction(r.row_as_published(), r.predicted) for r in self.stages
                       if r.row.target == target and r.row.metric == "time"]
            found[f"tutorial matmul {target}"] = checks.pairs(members)
        return {name: pair for name, pair in found.items() if pair[1]}


def kind(p: Prediction) -> str:
    """What an instruction row is about."""
    if p.row.family != "INST":
        return {"DMA": "DMA packet", "DOC": "documented"}[p.row.family]
    engine = re.search(r"engine=(\w+)", p.row.shape).group(1)
    return "DMA trigger" if "DMA_DIRECT2D" in p.row.shape else f"{engine} engine"


def trn2(predictions: list[Prediction]) -> list[Prediction]:
    return [p for p in predictions if "trn2" in p.row.target]


def presumed(predictions: list[Prediction]) -> list[Prediction]:
    """Rows whose own source does not name the chip."""
    return [p for p in predictions if "presumed" in p.row.target]


def summary(report: Report) -> list[tuple[str, dict]]:
    """(what, its spread) of the figures that stand for the whole."""
    measured = trn2(report.instructions)
    known = [p for p in measured if p not in presumed(measured) and not instructions.is_instruction_fetch(p.row)]
    return [
        ("trn2 instructions and DMA", checks.spread(measured)),
        ("of these, chip named by the source, without instruction fetch", checks.spread(known)),
        ("the others with a presumed chip, taken for trn3", checks.spread(report.curve)),
        ("a family left out of its law", checks.spread(report.held_out_predictions())),
        ("chosen kernels, time", checks.spread(report.times)),
        ("chosen kernels, counters", checks.spread(report.counters)),
        ("public kernels from your checkout, time", checks.spread([p for p in report.public if p.use == "time"])),
    ]


def as_dict(report: Report) -> dict:
    right, total = (sum(pair[i] for pair in report.ladders().values()) for i in (0, 1))
    return {
        "schema": JSON_SCHEMA,
        "free_parameters": report.free_parameters,
        "rows": [r.as_dict() for r in report.stages],
        "instructions": [p.as_dict() for p in report.instructions],
        "control": [p.as_dict() for p in report.control],
        "leave_one_family_out": [
            {"law": law.name, "figures": list(law.figures), "family": family, "rows": [p.as_dict() for p in members]}
            for law, family, members in report.held_out
        ],
        "kernels": [{**p.as_dict(), "use": p.use} for p in report.kernels],
        "public_kernels": [{**p.as_dict(), "use": p.use} for p in report.public],
        "ladders": {name: {"in_order": a, "pairs": b} for name, (a, b) in report.ladders().items()},
        "summary": {name: figures for name, figures in summary(report)},
        "pairs_in_order": {"in_order": right, "pairs": total},
        "kernels_by_target": checks.grouped(report.times, lambda p: p.row.chip or "?"),
        "kernels_by_bound": checks.grouped(report.times, lambda p: p.bound or "not run"),
        "kernels_by_family": checks.grouped(report.times, lambda p: p.row.family),
    }


# ---- Markdown --------------------------------------------------------------------------------------------


def number(value: float) -> str:
    """Four significant digits, no exponent."""
    if value == 0:
        return "0"
    digits = max(0, 4 - len(str(int(abs(value)))) if abs(value) >= 1 else 4)
    return f"{value:,.{digits}f}"


def error_text(p: Prediction) -> str:
    return "not run" if p.error is None else f"{p.error:+.1f} {p.error_unit}"


def _table(heads: list[str], rows: list[list[str]], right: int = 1) -> str:
    """`right`: from which column on figures stand to the right."""
    rule = ["---" if i < right else "---:" for i in range(len(heads))]
    lines = ["| " + " | ".join(cells) + " |" for cells in [heads, *rows]]
    return "\n".join([lines[0], "|" + "|".join(rule) + "|", *lines[1:]])


def _spread_rows(groups) -> list[list[str]]:
    return [[name, str(s["rows"]), str(s["not_run"]), f"{s['median']:.1f}", f"{s['p90']:.1f}",
             f"{s['worst']:.0f} ({s['worst_id']})"] for name, s in groups if s["rows"]]


_SPREAD_HEADS = ["", "rows", "not run", "median %", "90th percentile %", "worst %"]


def stages_markdown(stages) -> str:
    rows = []
    for r in stages:
        bar = "order" if r.row.bar == "order" else f"±{r.row.bar}"
        rows.append([r.row.id, r.row.target, r.row.kernel, r.row.metric, f"{r.row.published:.2f} {r.row.unit}",
                     f"{r.predicted:.2f} {r.row.unit}", f"{r.error:+.1f} {r.error_unit}", bar])
    return _table(["row", "chip", "kernel", "quantity", "published", "Trena", "error", "bar"], rows, 4)


def instructions_markdown(predictions: list[Prediction], control: list[Prediction]) -> str:
    kinds = checks.grouped(trn2(predictions), kind)
    misses = [[p.row.id, re.sub(r"[|]", "/", f"{p.row.workload}; {p.row.shape}")[:90], number(p.row.value),
               number(p.predicted) if p.predicted is not None else "–", error_text(p)]
              for p in predictions if p.error is None or abs(p.error) > 10]
    known = [p for p in control if p.predicted is not None]
    return "\n\n".join([
        _table(_SPREAD_HEADS, _spread_rows(kinds.items())),
        "Rows off by more than 10 %:",
        _table(["row", "what", "published", "Trena", "error"], misses, 2),
        f"Control opcodes: {len(control)} rows, of which Trena has {len(known)}: median error "
        f"{statistics.median(abs(p.error) for p in known):.1f} %. The others (NOP, NOTIFY, DRAIN, semaphores, "
        "ordering) cost nothing in Trena beside the gaps between engines.",
    ])


def held_out_markdown(held_out) -> str:
    rows = [[law.name, ", ".join(key.removeprefix("core.") for key in law.figures), family,
             str(len(members)), f"{checks.spread(members)['median']:.1f}", f"{checks.spread(members)['worst']:.1f}"]
            for law, family, members in held_out]
    return _table(["law", "figures fitted again", "family left out", "rows", "median %", "worst %"], rows, 3)


def kernels_markdown(report: Report) -> str:
    rows = [[p.row.id, p.row.chip or "", p.row.workload.replace("|", "/")[:58], p.row.shape.split(";")[0][:34],
             f"{number(p.row.value)} {p.row.unit}", "–" if p.predicted is None else number(p.predicted),
             error_text(p), p.bound or p.why] for p in report.times]
    groups = [(title, checks.grouped(report.times, key)) for title, key in (
        ("by chip", lambda p: p.row.chip or "?"), ("by what bounds it", lambda p: p.bound or "not run"),
        ("by family", lambda p: p.row.family))]
    parts = [_table([f"time, {title}", *_SPREAD_HEADS[1:]], _spread_rows(figures.items())) for title, figures in groups]
    counters = checks.grouped(report.counters, lambda p: p.row.metric.replace("_", " "))
    parts.append(_table(["counters", *_SPREAD_HEADS[1:]], _spread_rows(counters.items())))
    parts.append(_table(["row", "chip", "kernel", "shape", "published", "Trena", "error", "bound by"], rows, 4))
    return "\n\n".join(parts)


def ladders_markdown(report: Report) -> str:
    rows = [[name, str(a), str(b)] for name, (a, b) in report.ladders().items()]
    rows.append(["all", str(sum(int(r[1]) for r in rows)), str(sum(int(r[2]) for r in rows))])
    return _table(["ladder", "in order", "pairs that differ by more than 5 %"], rows)


def summary_markdown(report: Report) -> str:
    return _table(_SPREAD_HEADS, _spread_rows(summary(report)))


def parameters_markdown(report: Report) -> str:
    counted = {"trn1": 0, "trn2": 0, "trn3": 0, "inf2": 0}
    for p in [*report.instructions, *report.times]:
        if p.row.chip and p.predicted is not None:
            counted[p.row.chip] += 1
    rows = [[chip, str(len(keys)), str(counted.get(chip, 0))] for chip, keys in report.free_parameters.items()]
    return _table(["chip", "figures estimated or carried over", "instruction and kernel-time rows run"], rows)


def sections(report: Report) -> dict[str, str]:
    return {
        "summary": summary_markdown(report), "stages": stages_markdown(report.stages),
        "instructions": instructions_markdown(report.instructions, report.control),
        "held-out": held_out_markdown(report.held_out), "kernels": kernels_markdown(report),
        "ladders": ladders_markdown(report), "parameters": parameters_markdown(report),
    }


def fill(page: str, parts: dict[str, str]) -> str:
    """`page` with each `<!-- generated: NAME -->` … `<!-- end -->` filled anew; other text is kept."""
    def part(match):
        name = match.group(1)
        return f"<!-- generated: {name} -->\n{parts[name]}\n<!-- end -->" if name in parts else match.group(0)

    return re.sub(r"<!-- generated: ([\w-]+) -->\n.*?<!-- end -->", part, page, flags=re.S)


# ---- Terminal --------------------------------------------------------------------------------------------


def _print_rows(title: str, predictions: list[Prediction]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading, justify in (("id", "left"), ("chip", "left"), ("what", "left"), ("published", "right"),
                             ("predicted", "right"), ("unit", "left"), ("error", "right"), ("bound by", "left")):
        table.add_column(heading, justify=justify, no_wrap=True)
    for p in predictions:
        table.add_row(p.row.id, p.row.chip, f"{p.row.workload}; {p.row.metric}"[:70], number(p.row.value),
                      "–" if p.predicted is None else number(p.predicted), p.row.unit, error_text(p),
                      p.bound or p.why)
    console = Console(width=max(160, Console().width))
    console.print(table)


def show(report: Report) -> None:
    _print_rows("Instructions and DMA", report.instructions)
    _print_rows("Control opcodes", report.control)
    _print_rows("Kernels chosen to check the clock", report.kernels)
    if report.public:
        _print_rows("Public kernels from your checkout", report.public)
    for law, family, members in report.held_out:
        figures = checks.spread(members)
        print(f"{law.name} without {family}: median {figures['median']:.1f} %, worst {figures['worst']:.1f} %")
    print()
    for name, (right, total) in report.ladders().items():
        print(f"{name}: {right} of {total} pairs in order")
    print()
    for name, s in summary(report):
        if not s["rows"]:
            continue
        print(f"{name}: {s['rows']} rows ({s['not_run']} not run), median {s['median']:.1f} %, 90th percentile "
              f"{s['p90']:.1f} %, worst {s['worst']:.0f} % ({s['worst_id']})")
    for title, key in (("chip", lambda p: p.row.chip or "?"), ("bound", lambda p: p.bound or "not run")):
        for name, s in checks.grouped(report.times, key).items():
            print(f"kernel time by {title}, {name}: {s['rows']} rows, median {s['median']:.1f} %, "
                  f"90th percentile {s['p90']:.1f} %")
    right, total = (sum(pair[i] for pair in report.ladders().values()) for i in (0, 1))
    print(f"pairs in order: {right} of {total}")


def collect(stages, free_parameters) -> Report:
    compute, control = instructions.measure()
    return Report(stages, compute, control, instructions.leave_one_out(), checks.measure(), free_parameters,
                  instructions.curve_on("trn3"))
