"""trena run: a script, then what its kernels took."""

from __future__ import annotations

import json
import sys

from trena import __version__
from trena.commands import common, script

JSON_VERSION = 1

split = script.split


def add(commands) -> None:
    run = commands.add_parser("run", parents=[common.machine_options()],
                              help="run a Python script on the simulated device",
                              usage="trena run [options] SCRIPT [args]\n       trena run [options] -m MODULE [args]")
    run.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as python -m does")


def main(arguments) -> int:
    wrong = script.complaint(arguments)
    if wrong:
        return common.usage(wrong)
    script.prepare(arguments)
    code = script.execute(arguments.module, list(arguments.script))
    sys.stdout.flush()
    return report(arguments) or code


# ---- What a run prints -------------------------------------------------------------------------------


def report(arguments) -> int:
    """Summaries under the script's own output. 0, or an exit code when a file cannot be written."""
    from trena import launch

    if "trena.torch.session" in sys.modules:  # work since the last synchronisation is a step too
        sys.modules["trena.torch.session"].synchronize()
    runs = list(launch.runs)
    if not runs:
        if not arguments.quiet:
            print("trena: the script launched no kernel", file=sys.stderr)
        return 0
    if not arguments.quiet:
        from trena.report import summary

        for run, count in _distinct(runs):
            summary(run, launches=count)
    try:
        return _write_files(arguments, runs)
    except OSError as error:
        return common.usage(f"cannot write {error.filename}: {error.strerror}")


def _distinct(runs):
    """The last run of each kernel and shapes, with how often it was launched."""
    groups: dict[tuple, list] = {}
    for run in runs:
        groups.setdefault((run.name, tuple(run.arguments), run.machine.name, run.core_count), []).append(run)
    return [(group[-1], len(group)) for group in groups.values()]


def _write_files(arguments, runs) -> int:
    if arguments.trace:
        runs[-1].to_perfetto(arguments.trace)
    if arguments.report:
        try:
            from trena.report import write_page
        except ImportError:
            return common.not_yet("--report")
        write_page(runs, arguments.report)
    if arguments.json:
        text = json.dumps(_as_json(runs), indent=2) + "\n"
        if arguments.json == "-":
            sys.stdout.write(text)
        else:
            with open(arguments.json, "w", encoding="utf-8") as file:
                file.write(text)
    return 0


def _as_json(runs) -> dict:
    return {
        "format": "trena-run", "version": JSON_VERSION, "trena": __version__,
        "runs": [run.as_dict() for run in runs],
    }
