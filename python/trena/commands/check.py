"""trena check: runs a script and lists all mistakes in its kernels, for people and for CI (docs/check.md)."""

from __future__ import annotations

import sys

from trena import errors, findings
from trena.commands import common, explain, script


def split(words: list[str]) -> tuple[list[str], list[str]]:
    return script.split(words, also={"--sarif"})


def add(commands) -> None:
    check = commands.add_parser(
        "check", parents=[common.machine_options()], help="look for mistakes in a script's kernels",
        usage="trena check [options] SCRIPT [args]\n       trena check [options] -m MODULE [args]",
        description="Exit status: 0 nothing found, 3 findings, 1 the script failed for another reason.")
    check.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as python -m does")
    check.add_argument("--sarif", metavar="FILE", help="the findings as SARIF 2.1.0, for code hosts")


def main(arguments) -> int:
    from trena import launch

    wrong = script.complaint(arguments)
    if wrong:
        return common.usage(wrong)
    script.prepare(arguments, checking=True)
    code = script.execute(arguments.module, list(arguments.script), on_error=_note)
    sys.stdout.flush()
    found = findings.merged(launch.findings)
    if not arguments.quiet:
        _print(found, launch.launch_count)
    try:
        _write_files(arguments, found)
    except OSError as error:
        return common.usage(f"cannot write {error.filename}: {error.strerror}")
    return errors.EXIT_FINDINGS if found else code


def _note(error: errors.Error) -> None:
    """The script ended with a complaint of Trena: a finding like others, unless a launch noted it already."""
    from trena import launch

    if not getattr(error, "noted", False) and not isinstance(error, errors.NotModelled):
        launch.findings.append(findings.from_error(error))


def _print(found, launches: int) -> None:
    for finding in found:
        print(findings.text(finding) + "\n")
    kernels = f"{launches} launch" + ("es" if launches != 1 else "")
    plural = "s" if len(found) != 1 else ""
    print(f"trena: {len(found) or 'no'} finding{plural} in {kernels}")


def _write_files(arguments, found) -> None:
    name = arguments.module or arguments.script[0]
    if arguments.json:
        common.write_json(arguments.json, findings.as_json(found, name))
    if arguments.sarif:
        common.write_json(arguments.sarif, findings.as_sarif(found, explain.explanations()))
