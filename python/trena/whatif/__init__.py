"""Questions to a program that already ran: what would another machine make of it, and what changed between two runs.

evaluate(run, groups)        the run's program on changed machines, one Answer per group of KEY=VALUE
compare(before, after)       what differs between two runs (as plain data), and why
sweep(run, axes)             every combination of values; pareto(answers, costs) keeps what nothing beats

Nothing here traces a kernel or computes a value: one program, many clocks. Times are those of `Run.what_if`.
"""

from __future__ import annotations

from trena.whatif.answers import Answer, check_machines, evaluate
from trena.whatif.differences import compare
from trena.whatif.sweep import Axis, pareto, parse_axes, sweep

__all__ = ["Answer", "Axis", "check_machines", "compare", "evaluate", "pareto", "parse_axes", "sweep"]
