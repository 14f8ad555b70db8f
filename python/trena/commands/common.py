"""What several commands share: options, complaints, hardware files."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys

from trena import errors


def machine_options() -> argparse.ArgumentParser:
    """What every command that runs a script takes."""
    common = argparse.ArgumentParser(add_help=False)
    group = common.add_argument_group("machine and clock")
    group.add_argument("--target", metavar="NAME", help="trn1, inf2, trn2 or trn3 (default: the script's, then trn3)")
    group.add_argument("--machine", metavar="FILE", help="a hardware file of your own")
    group.add_argument("--set", metavar="KEY=VALUE", action="append", default=[],
                       help="change one figure of the machine")
    group.add_argument("--lnc", type=int, choices=(1, 2), help="physical cores per logical core")
    group.add_argument("--time-only", action="store_true", help="no values, only time")
    group.add_argument("--values", choices=("program-order", "hardware-order"), default="program-order",
                       help="in which order instructions compute: hardware-order shows what a race does to the bytes")
    group.add_argument("--schedule", choices=("list", "program"), default="list",
                       help="who orders the queues: a compiler moving independent work up, or the script as written")
    group.add_argument("--spill", choices=("auto", "error"), default="auto", help="when SBUF is full")
    group.add_argument("--unwritten", choices=("error", "sentinel"), default="error",
                       help="reads of bytes nobody wrote: refused, or NaN and 4 as in the vendor's simulator")
    group.add_argument("--nki-version", metavar="VERSION",
                       help="what nki was in that version, 0.1 to 0.6 or an SDK release such as 2.29 (default: the "
                            "current one, lenient)")
    output = common.add_argument_group("output")
    output.add_argument("--trace", metavar="FILE", help="Perfetto trace of the last launch")
    output.add_argument("--report", metavar="FILE", help="one HTML page: figures, critical path, stalls")
    output.add_argument("--json", metavar="FILE", help="the numbers, for machines ('-': standard output)")
    output.add_argument("-q", "--quiet", action="store_true", help="nothing but the script's own output")
    return common


def options_with_value() -> set[str]:
    """Of machine_options(): those that take the next word."""
    actions = machine_options()._actions
    return {name for action in actions if action.nargs != 0 for name in action.option_strings}


def is_assignment(word: str) -> bool:
    """KEY=VALUE, and not an option or a file."""
    return re.fullmatch(r"[A-Za-z_][\w.]*=.*", word) is not None


def options_from(arguments):
    from trena.launch import Options

    if arguments.values == "hardware-order" and arguments.time_only:
        raise errors.UsageError("hardware-order needs values", id="values-time-only",
                                here="--values=hardware-order with --time-only", fix="leave one of them out")
    return Options(target=arguments.target, machine=arguments.machine, set=tuple(arguments.set), lnc=arguments.lnc,
                   time_only=arguments.time_only, schedule=arguments.schedule, spill=arguments.spill,
                   values=arguments.values, unwritten=arguments.unwritten)


def write_json(path: str, document: dict) -> None:
    """To a file, or to standard output for "-"."""
    text = json.dumps(document, indent=2) + "\n"
    if path == "-":
        sys.stdout.write(text)
        return
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def not_yet(what: str) -> int:
    print(f"trena: {what} is not there yet", file=sys.stderr)
    return errors.EXIT_NOT_MODELLED


def usage(text: str) -> int:
    print(f"trena: {text}", file=sys.stderr)
    return errors.EXIT_USAGE


def hardware_files() -> list[str]:
    from trena.launch import hardware_directory

    directory = hardware_directory()
    return sorted(os.path.join(directory, name) for name in os.listdir(directory) if name.endswith(".toml"))
