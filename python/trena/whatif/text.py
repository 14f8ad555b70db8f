"""Answers as lines for a terminal: runs side by side, what changed and why, the table of a sweep."""

from __future__ import annotations

from trena.report.terminal import format_bytes, format_time
from trena.whatif.differences import Comparison

_MOST_REASONS = 5
_MOST_WAITS = 3
_ENGINES = ("tensor", "vector", "scalar", "gpsimd")
_MANY_TIMES = 3  # from here on a factor says more than per cent
_SMALLEST_SHARE = 0.001  # of the time: smaller reasons are left out


def signed_time(time_ns: float) -> str:
    return ("+" if time_ns >= 0 else "−") + format_time(abs(time_ns))


def _relative(before: float, after: float) -> str:
    if before <= 0 or after == before:
        return ""
    if after >= _MANY_TIMES * before:
        return f"× {after / before:.1f}"
    return f"{100 * (after - before) / before:+.1f} %".replace("-", "−")


def _points(before: float, after: float) -> str:
    change = 100 * (after - before)
    return f"{change:+.1f}".replace("-", "−") if abs(change) >= 0.05 else ""


def _rows():
    """(label, value of a run's timing as text, difference of two as text)."""
    def size(key):
        return (lambda t: format_bytes(t["dma"][key])), (lambda a, b: _relative(a["dma"][key], b["dma"][key]))

    yield "time", lambda t: format_time(t["time_ns"]), lambda a, b: _relative(a["time_ns"], b["time_ns"])
    yield "bound by", bound, lambda a, b: ""
    for name in _ENGINES:
        yield name, (lambda t, n=name: f"{100 * t['engines'][n]['active']:.1f} %"), \
            (lambda a, b, n=name: _points(a["engines"][n]["active"], b["engines"][n]["active"]))
    yield "dma", lambda t: f"{100 * t['dma']['active']:.1f} %", lambda a, b: _points(a["dma"]["active"],
                                                                                     b["dma"]["active"])
    yield "HBM in", *size("hbm_read_bytes")
    yield "HBM out", *size("hbm_write_bytes")
    yield "spilled", *size("spilled_bytes")
    yield "MBU", lambda t: f"{100 * t['dma']['mbu']:.1f} %", lambda a, b: _points(a["dma"]["mbu"], b["dma"]["mbu"])
    yield "tables", lambda t: f"{t['tables']['loads']} loads", lambda a, b: _relative(a["tables"]["loads"],
                                                                                      b["tables"]["loads"])
    yield "SBUF", _sbuf, lambda a, b: ""


def bound(timing: dict) -> str:
    what = timing["bound"]["by"]
    return "waiting" if what == "waiting" else f"{what} {100 * timing['bound']['active']:.0f} %"


def _sbuf(timing: dict) -> str:
    memory = timing["memory"]
    return (f"{memory['sbuf_peak_bytes_per_partition'] / 1024:.4g} of "
            f"{memory['sbuf_usable_bytes_per_partition'] / 1024:.0f} KiB")


def title(run: dict) -> str:
    arrow = f" → {' '.join(run['results'])}" if run["results"] else ""
    cores = f"{run['cores']} core" + ("s" if run["cores"] > 1 else "")
    order = "program order" if run["schedule"] == "program" else "list schedule"
    return f"{run['name']}  {' '.join(run['arguments'])}{arrow}      {run['machine']} · {cores} · {order}"


def columns(rows: list[list[str]], right: tuple[int, ...] = ()) -> list[str]:
    """Rows of cells as lines; the columns in `right` end flush."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return ["  " + "  ".join(cell.rjust(width) if k in right else cell.ljust(width)
                             for k, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows]


def side_by_side(before: dict, others: list[tuple[str, dict | None]], label: str = "as it is") -> list[str]:
    """The figures of a run and of others of the same kernel; None stands for one that cannot run."""
    base = before["timing"]
    rows = [["", label]]
    for name, _ in others:
        rows[0] += [name, ""]
    for name, value, difference in _rows():
        row = [name, value(base)]
        for _, data in others:
            row += ["—", ""] if data is None else [value(data["timing"]), difference(base, data["timing"])]
        if name != "tables" or any(cell not in ("0 loads", "—", "") for cell in row[1:]):
            rows.append(row)
    return columns(rows)


def explain(name: str, comparison: Comparison) -> list[str]:
    """Why the second run took another time: what is different in kind, then the parts of the difference."""
    delta, before = comparison.delta_ns, comparison.before["time_ns"]
    change = "the same time" if delta == 0 else f"{signed_time(delta)}  {_relative(before, before + delta)}"
    lines = [f"  why {name}: {change}" + "".join(f"\n    {cause}" for cause in comparison.causes)]
    reasons = [r for r in comparison.reasons if abs(r.delta_ns) >= _SMALLEST_SHARE * before]
    rows = [[signed_time(r.delta_ns), r.instruction + (" (spill)" if r.spill else ""), r.row, r.place,
             f"{format_time(r.before_ns)} → {format_time(r.after_ns)}"
             + (" of the critical path" if r.row != "launch" else "")]
            for r in reasons[:_MOST_REASONS]]
    rest = delta - sum(r.delta_ns for r in reasons[:_MOST_REASONS])
    if rows and abs(rest) >= _SMALLEST_SHARE * before:
        rows.append([signed_time(rest), "everything else", "", "", ""])
    lines += ["  " + line for line in columns(rows, right=(0,))] if rows else []
    waits = [w for w in comparison.waits if abs(w.delta_ns) >= _SMALLEST_SHARE * before][:_MOST_WAITS]
    if waits:
        lines.append("    waits that changed")
        lines += ["    " + line for line in columns(
            [[signed_time(w.delta_ns), w.row, f"{w.instruction} {w.place}".strip(),
              f"← {w.cause} {w.cause_place}".rstrip()] for w in waits], right=(0,))]
    return "\n".join(lines).splitlines()


def sweep_table(before: dict, answers, front, costs) -> list[str]:
    """One line per machine; `*` where nothing is faster for as little of the costs."""
    keys = [change.split("=", 1)[0] for change in answers[0].changes] if answers else []
    rows = [[*keys, "time", "", "bound by", "tensor", "dma", "spilled", ""],
            ["as it is", *[""] * (len(keys) - 1), *_sweep_cells(before["timing"], before["time_ns"]), ""]]
    refused = []
    for answer, is_best in zip(answers, front):
        values = [change.split("=", 1)[1] for change in answer.changes]
        if answer.data is None:
            rows.append([*values, "—", "", answer.error.id, "", "", "", ""])
            refused.append(answer)
        else:
            rows.append([*values, *_sweep_cells(answer.data["timing"], before["time_ns"]), "*" if is_best else ""])
    lines = columns(rows)
    if costs and any(front):
        lines.append(f"  * Pareto front: no machine is faster with as little {' and '.join(a.key for a in costs)}")
    return lines + [f"  {answer.label}: {answer.error.id}: {answer.error.here}" for answer in refused]


def _sweep_cells(timing: dict, base_ns: float) -> list[str]:
    return [format_time(timing["time_ns"]), _relative(base_ns, timing["time_ns"]), bound(timing),
            f"{100 * timing['engines']['tensor']['active']:.1f} %", f"{100 * timing['dma']['active']:.1f} %",
            format_bytes(timing["dma"]["spilled_bytes"])]
