"""The command `trena`. Exit codes: 0 fine, 1 the script failed, 2 bad usage, 3 findings, 4 not modelled."""

from __future__ import annotations

import argparse
import os
import sys

from trena import __version__, errors
from trena.commands import accuracy, check, common, compare, doctor, explain, machine, run, sweep

COMMANDS = {
    "run": run,
    "check": check,
    "compare": compare,
    "sweep": sweep,
    "machine": machine,
    "explain": explain,
    "doctor": doctor,
    "accuracy": accuracy,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="trena", description="A Trainium you can run anywhere.")
    parser.add_argument("--version", action="store_true", help="version, and a hash of the hardware files")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for command in COMMANDS.values():
        command.add(commands)
    return parser


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """Trena's own words, and those that belong to a script."""
    split = getattr(COMMANDS.get(words[0]), "split", None) if words else None
    if split is None:
        return words, []
    own, others = split(words[1:])
    return [words[0], *own], others


def _version() -> int:
    import hashlib

    digest = hashlib.sha256()
    for path in common.hardware_files():
        with open(path, "rb") as file:
            digest.update(os.path.basename(path).encode() + b"\0" + file.read())
    print(f"trena {__version__}  hardware {digest.hexdigest()[:12]}")
    return 0


def main(argv: list[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    parser = _parser()
    own, scripts = _split(sys.argv[1:] if argv is None else argv)
    arguments = parser.parse_args(own)
    arguments.script = scripts
    try:
        if arguments.version:
            return _version()
        if not arguments.command:
            parser.print_help()
            return errors.EXIT_USAGE
        return COMMANDS[arguments.command].main(arguments)
    except errors.Error as error:
        print(f"trena: {error}", file=sys.stderr)
        usage = isinstance(error, (errors.MachineError, errors.UsageError))
        return errors.EXIT_USAGE if usage else errors.exit_code(error)
    except BrokenPipeError:
        sys.stderr.close()
        return 0
