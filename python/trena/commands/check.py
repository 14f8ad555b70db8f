"""trena check: the mistakes in a script's kernels."""

from __future__ import annotations

from trena.commands import common, script

split = script.split


def add(commands) -> None:
    commands.add_parser("check", parents=[common.machine_options()], help="look for mistakes in a script's kernels",
                        usage="trena check [options] SCRIPT [args]")


def main(arguments) -> int:
    return common.not_yet("trena check")
