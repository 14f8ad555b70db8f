"""What a run says about itself: on the terminal, as JSON, as a trace.

summary(run)             prints the figures under a script's own output
text(run, width=100)     the same as a string, without colour
to_json(run, path)       the same for machines, versioned (the key `schema`)
write_page(runs, path)   one HTML page, for a browser
run.to_perfetto(path)    every instruction, for https://ui.perfetto.dev

The figures and their definitions come from src/trena/report/summary.h; here they only become text.
"""

from __future__ import annotations

import json

from trena.report.page import write_page
from trena.report.progress import Progress
from trena.report.terminal import summary, text

__all__ = ["Progress", "as_dict", "summary", "text", "to_json", "write_page"]


def as_dict(run) -> dict:
    """Plain data with a stable order of keys; `timing` follows the schema that it names."""
    return run.as_dict()


def to_json(run, path: str) -> None:
    """Writes as_dict(run) to a file, the same bytes for the same run apart from `host_seconds`."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump(as_dict(run), file, indent=2, ensure_ascii=False)
        file.write("\n")
