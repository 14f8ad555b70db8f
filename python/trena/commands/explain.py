"""trena explain: what an id means."""

from __future__ import annotations

import os
import re

from trena.commands import common


def add(commands) -> None:
    explain = commands.add_parser("explain", help="what an id means")
    explain.add_argument("id", nargs="?", help="as printed in a message, or nki.isa.NAME; without it, the list")


def explanations() -> dict[str, str]:
    """id -> text, from docs/errors.md."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for folder in (here, os.path.join(here, "..", "..")):
        path = os.path.join(folder, "docs", "errors.md")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                sections = re.split(r"^## +", file.read(), flags=re.MULTILINE)[1:]
            return {title.strip(): body.strip() for title, _, body in (s.partition("\n") for s in sections)}
    return {}


def main(arguments) -> int:
    from trena.nki.isa.documentation import INSTRUCTIONS

    texts = explanations()
    texts.update({f"nki.isa.{name}": text for name, text in INSTRUCTIONS.items()})
    if not arguments.id:
        print("\n".join(sorted(texts)))
        return 0
    wanted = arguments.id.replace("nisa.", "nki.isa.")
    if wanted in texts:
        print(f"{wanted}\n\n{texts[wanted]}")
        return 0
    import difflib

    close = difflib.get_close_matches(wanted, texts, n=3)
    guess = f"; did you mean {', '.join(close)}?" if close else ""
    return common.usage(f"no explanation of {arguments.id!r}{guess}")
