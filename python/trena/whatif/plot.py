"""A sweep as a picture: time against a cost, one line per combination of the other axes."""

from __future__ import annotations

import os

from trena.errors import UsageError

FORMATS = (".png", ".svg", ".pdf")


def check(path: str) -> None:
    """Raises the named error of a picture that cannot be drawn, before anything runs."""
    if os.path.splitext(path)[1].lower() not in FORMATS:
        raise UsageError("a plot is a picture", id="plot-format", here=path, limit=", ".join(FORMATS))
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UsageError("--plot draws with matplotlib", id="plot-library", here="matplotlib is not installed",
                         fix="pip install matplotlib; without it, the table and --json say the same") from None


def draw(path: str, results, axes, costs) -> None:
    """`results`: (title, answers, front) per kernel, as sweep() and pareto() return them."""
    check(path)
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "trena"  # the same bytes for the same figures
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(len(results), 1, figsize=(7, 4 * len(results)), squeeze=False)
    axis = costs[0] if costs else axes[0]
    for panel, (title, answers, front) in zip(panels[:, 0], results):
        _draw_panel(panel, title, answers, front, axis)
    figure.tight_layout()
    figure.savefig(path, dpi=150, metadata={"Date": None} if path.lower().endswith(".svg") else None)
    pyplot.close(figure)


def _draw_panel(panel, title, answers, front, axis) -> None:
    lines: dict[str, list] = {}
    best = []
    for answer, is_best in zip(answers, front):
        if answer.time_ns is None:
            continue
        chosen = dict(change.split("=", 1) for change in answer.changes)
        value = chosen.pop(axis.key)
        x = float(value) if axis.is_numeric else axis.values.index(value)
        label = " ".join(f"{key}={other}" for key, other in chosen.items())
        lines.setdefault(label, []).append((x, answer.time_ns / 1e3))
        if is_best:
            best.append((x, answer.time_ns / 1e3))
    for label, points in lines.items():
        panel.plot(*zip(*sorted(points)), marker="o", label=label or None)
    if best:
        panel.plot(*zip(*sorted(best)), linestyle="none", marker="o", markersize=11, fillstyle="none", color="black",
                   label="Pareto front")
    if not axis.is_numeric:
        panel.set_xticks(range(len(axis.values)), axis.values)
    panel.set(title=title, xlabel=axis.key, ylabel="time / µs")
    panel.set_ylim(bottom=0)
    panel.legend()
