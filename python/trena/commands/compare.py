"""trena compare: what changed between runs that `trena run --json` wrote, and why."""

from __future__ import annotations

import json

from trena.commands import common
from trena.errors import UsageError


def add(commands) -> None:
    compare = commands.add_parser("compare", help="what changed between two runs, and why",
                                  usage="trena compare [options] A.json B.json [MORE.json ...]")
    compare.add_argument("files", nargs="+", metavar="FILE", help="files of trena run --json; the first is the base")
    compare.add_argument("--json", metavar="FILE", help="the differences, for machines ('-': standard output)")


def main(arguments) -> int:
    if len(arguments.files) < 2:
        return common.usage("trena compare needs two files of trena run --json")
    documents = [_runs(path) for path in arguments.files]
    names = _labels(arguments.files)
    pairs = _pairs(documents, names)
    if arguments.json != "-":
        _print(pairs, names)
    if arguments.json:
        common.write_json(arguments.json, _as_json(pairs))
    return 0


def _runs(path: str) -> dict[tuple, dict]:
    """The last run of every kernel and shapes in a file."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        runs = document["runs"] if document["format"] == "trena-run" else None
    except OSError as error:
        raise UsageError("trena compare reads files of trena run --json", id="compare-file",
                         here=f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        runs = None
    if runs is None or document.get("version") != 1 or not all("critical_path" in run for run in runs):
        raise UsageError("trena compare reads files of trena run --json", id="compare-file", here=path,
                         limit="format trena-run, version 1, with critical_path",
                         fix="write it again: trena run --json FILE SCRIPT")
    if not runs:
        raise UsageError("trena compare reads files of trena run --json", id="compare-file",
                         here=f"{path}: the script launched no kernel")
    return {(run["name"], tuple(run["arguments"])): run for run in runs}


def _labels(paths: list[str]) -> list[str]:
    """Short names that are different."""
    import os

    short = [os.path.basename(path) for path in paths]
    return short if len(set(short)) == len(short) else list(paths)


def _pairs(documents, names) -> list[tuple[dict, list[tuple[str, dict]]]]:
    """Each kernel of the first file with the same kernel of the others."""
    first, *others = documents
    if all(len(document) == 1 for document in documents):  # one kernel each: they are meant, whatever their names
        keys = [next(iter(document)) for document in documents]
        return [(first[keys[0]], [(name, document[key]) for name, document, key in zip(names[1:], others, keys[1:])])]
    pairs = []
    for key, run in first.items():
        found = [(name, document[key]) for name, document in zip(names[1:], others) if key in document]
        if found:
            pairs.append((run, found))
    if not pairs:
        raise UsageError("the files have a kernel of the same name and arguments", id="compare-file",
                         here=", ".join(sorted({name for document in documents for name, _ in document})))
    return pairs


def _print(pairs, names) -> None:
    from trena.report.terminal import print_lines
    from trena.whatif import compare, text

    lines = []
    for before, others in pairs:
        lines += ["", text.title(before), "", *text.side_by_side(before, others, names[0])]
        for name, after in others:
            lines += ["", *text.explain(name, compare(before, after))]
    print_lines(lines[1:])


def _as_json(pairs) -> dict:
    from trena import __version__
    from trena.whatif import compare

    return {"format": "trena-compare", "version": 1, "trena": __version__,
            "comparisons": [{"file": name, **compare(before, after).as_dict()}
                            for before, others in pairs for name, after in others]}
