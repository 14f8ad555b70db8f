"""trena accuracy: the clock against measurements. Its options are those of trena.accuracy.main."""

from __future__ import annotations

from trena.commands import common


def add(commands) -> None:
    commands.add_parser("accuracy", help="how far the clock is from measurements")


def split(words: list[str]) -> tuple[list[str], list[str]]:
    return [], words


def main(arguments) -> int:
    try:
        from trena import accuracy
    except ImportError:
        return common.not_yet("trena accuracy")
    return accuracy.main(arguments.script)
