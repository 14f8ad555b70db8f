"""trena run: a script, then what its kernels took."""

from __future__ import annotations

import sys

from trena import __version__
from trena.commands import common, script

JSON_VERSION = 1

def split(words: list[str]) -> tuple[list[str], list[str]]:
    return script.split(words, with_words={"--what-if": common.is_assignment})


def add(commands) -> None:
    run = commands.add_parser("run", parents=[common.machine_options()],
                              help="run a Python script on the simulated device",
                              usage="trena run [options] SCRIPT [args]\n       trena run [options] -m MODULE [args]")
    run.add_argument("--what-if", metavar="KEY=VALUE", nargs="+", action="append", default=[],
                     help="time the same program on a changed machine too; repeat it for another machine")
    run.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as python -m does")


def main(arguments) -> int:
    wrong = script.complaint(arguments)
    if wrong:
        return common.usage(wrong)
    script.prepare(arguments)
    if arguments.what_if:
        _prepare_answers(arguments.what_if)
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
    answers = {}
    for run, count in distinct(runs):
        if arguments.what_if:
            answers[id(run)] = _answer(run, arguments.what_if)
        if not arguments.quiet:
            from trena.report import summary

            summary(run, launches=count)
            if arguments.what_if:
                _print_answers(run, answers[id(run)])
    try:
        return _write_files(arguments, runs, answers)
    except OSError as error:
        return common.usage(f"cannot write {error.filename}: {error.strerror}")


def distinct(runs):
    """The last run of each kernel and shapes, with how often it was launched."""
    groups: dict[tuple, list] = {}
    for run in runs:
        groups.setdefault(run.kind(), []).append(run)
    return [(group[-1], len(group)) for group in groups.values()]


def _write_files(arguments, runs, answers) -> int:
    if arguments.trace:
        runs[-1].to_perfetto(arguments.trace)
    if arguments.report:
        from trena.report import write_page

        write_page(runs, arguments.report)
    if arguments.json:
        common.write_json(arguments.json, _as_json(runs, answers))
    return 0


def _as_json(runs, answers) -> dict:
    """`answers`: of --what-if, by id() of the run they belong to."""
    return {
        "format": "trena-run", "version": JSON_VERSION, "trena": __version__,
        "runs": [{**run.as_dict(), "what_if": [answer.as_dict() for answer in answers[id(run)]]}
                 if id(run) in answers else run.as_dict() for run in runs],
    }


# ---- --what-if ---------------------------------------------------------------------------------------


def _prepare_answers(groups) -> None:
    from trena import launch, whatif

    whatif.check_machines(groups)
    launch.keep_programs = True


def _answer(run, groups) -> list:
    from trena import whatif

    return whatif.evaluate(run, groups)


def _print_answers(run, answers) -> None:
    from trena.report.terminal import print_lines
    from trena.whatif import compare, text

    before = run.as_dict()
    lines = ["", *text.side_by_side(before, [(answer.label, answer.data) for answer in answers])]
    for answer in answers:
        lines.append("")
        if answer.error is not None:
            lines += [f"  why {answer.label}: {answer.error.id}", *str(answer.error).splitlines()[1:]]
        else:
            lines += text.explain(answer.label, compare(before, answer.data))
        lines += [f"    note: {note}" for note in answer.notes]
    print_lines(lines)
