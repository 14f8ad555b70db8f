"""trena sweep: one trace of a script's kernels, timed on many machines."""

from __future__ import annotations

import sys

from trena.commands import common, script
from trena.commands.run import distinct

_WITH_VALUE = {"--plot", "--cost"}


def add(commands) -> None:
    sweep = commands.add_parser("sweep", parents=[common.machine_options()],
                                help="time a script's kernels on every combination of some figures",
                                usage="trena sweep [options] SCRIPT KEY=VALUE,VALUE,... [KEY=...] [-- args]")
    sweep.add_argument("--cost", metavar="KEY", action="append", default=[],
                       help="what the Pareto front weighs against time; smaller is cheaper (default: every key)")
    sweep.add_argument("--plot", metavar="FILE", help="a picture, .png or .svg (needs matplotlib)")


def split(words: list[str]) -> tuple[list[str], list[str]]:
    """Options may stand anywhere before `--`; the script, its axes and what follows `--` are not Trena's."""
    with_value = common.options_with_value() | _WITH_VALUE
    end = words.index("--") if "--" in words else len(words)
    own, others, position = [], [], 0
    while position < end:
        length = 2 if words[position] in with_value else 1
        (own if words[position].startswith("-") else others).extend(words[position:min(position + length, end)])
        position += length
    return own, others + words[end:]


def main(arguments) -> int:
    from trena import launch, whatif
    from trena.whatif import plot
    from trena.whatif.sweep import cost_axes, groups

    wrong = script.complaint(arguments)
    if wrong:
        return common.usage(wrong)
    end = arguments.script.index("--") if "--" in arguments.script else len(arguments.script)
    axes = whatif.parse_axes(arguments.script[1:end])
    costs = cost_axes(axes, arguments.cost)
    if arguments.plot:
        plot.check(arguments.plot)
    script.prepare(arguments)
    whatif.check_machines(groups(axes), launch.defaults)
    launch.keep_programs = True
    code = script.execute(None, [arguments.script[0], *arguments.script[end + 1:]])
    sys.stdout.flush()
    try:
        return _report(arguments, axes, costs) or code
    except OSError as error:
        return common.usage(f"cannot write {error.filename}: {error.strerror}")


def _report(arguments, axes, costs) -> int:
    from trena import launch, whatif
    from trena.report.terminal import print_lines
    from trena.whatif import plot, text

    if "trena.torch.session" in sys.modules:
        sys.modules["trena.torch.session"].synchronize()
    runs = [run for run, _ in distinct(list(launch.runs))]
    if not runs:
        return common.usage("the script launched no kernel: nothing to sweep")
    results = []
    for run in runs:
        answers = whatif.sweep(run, axes)
        front = whatif.pareto(answers, costs)
        results.append((run, answers, front))
        if not arguments.quiet and arguments.json != "-":
            data = run.as_dict()
            notes = sorted({note for answer in answers for note in answer.notes})
            print_lines([f"{text.title(data)} · {len(answers)} machines, 1 trace", "",
                         *text.sweep_table(data, answers, front, costs), *[f"  note: {note}" for note in notes]])
    if arguments.plot:
        plot.draw(arguments.plot, [(run.name, answers, front) for run, answers, front in results], axes, costs)
    if arguments.json:
        common.write_json(arguments.json, _as_json(results, axes, costs))
    return 0


def _as_json(results, axes, costs) -> dict:
    from trena import __version__

    return {"format": "trena-sweep", "version": 1, "trena": __version__,
            "axes": {axis.key: list(axis.values) for axis in axes}, "costs": [axis.key for axis in costs],
            "sweeps": [{"base": run.as_dict(), "points": [{**answer.as_dict(), "pareto": is_best}
                                                          for answer, is_best in zip(answers, front)]}
                       for run, answers, front in results]}
