"""One self-contained HTML page of a script's runs: `trena run --report FILE`. It loads nothing and needs no script.

Everything on it is in Run.as_dict(); here figures become markup, with the words of report/terminal.py.
"""

from __future__ import annotations

import html
import os

from trena import __version__
from trena.report import terminal

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --quiet: #68707a; --paper: #fcfcfb; --line: #e4e5e2; --bar: #2f6f73;
        --warn: #a2541b; --part: #8fb8b4; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e7e5; --quiet: #969da5; --paper: #16181a; --line: #2d3135; --bar: #6db3b0; --warn: #e09a5f;
          --part: #3d6467; } }
body { font: 15px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
       max-width: 62rem; padding: 2.5rem 1.5rem 4rem; }
h1 { font-size: 1.05rem; font-weight: 600; margin: 0 0 2rem; color: var(--quiet); }
section { border-top: 1px solid var(--line); padding: 1.6rem 0 2.2rem; }
h2 { font-size: 1.35rem; margin: 0; }
h3 { font-size: .82rem; color: var(--quiet); font-weight: 600; margin: 1.8rem 0 .5rem; }
.sub, .dim, footer { color: var(--quiet); } .sub { margin: .1rem 0 1.4rem; overflow-wrap: anywhere; }
.time { font-size: 2.1rem; font-weight: 650; letter-spacing: -.01em; }
.time small { font-size: 1rem; font-weight: 400; }
table { border-collapse: collapse; width: 100%; } td, th { padding: .22rem .9rem .22rem 0; text-align: left;
       vertical-align: baseline; } th { font-size: .82rem; font-weight: 600; color: var(--quiet); }
.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.bar { width: 38%; } .bar div { height: .62rem; background: var(--line); border-radius: 2px; overflow: hidden; }
.bar i { display: block; height: 100%; background: var(--bar); }
.path { display: flex; height: 1.5rem; border-radius: 3px; overflow: hidden; background: var(--line); }
.path i { background: var(--bar); border-right: 1px solid var(--paper); }
.path i:nth-child(even) { background: var(--part); }
code { font: .87em ui-monospace, monospace; } .warn { color: var(--warn); }
footer { margin-top: 1rem; font-size: .87rem; }
"""


def write_page(runs, path: str) -> None:
    """Writes the page: one section for each kernel and shapes, the last launch of each.

    runs   trena.Run objects, oldest first
    """
    with open(path, "w", encoding="utf-8") as file:
        file.write(page(runs))


def page(runs) -> str:
    """The page as text, the same for the same runs apart from host seconds."""
    groups: dict[tuple, list] = {}
    for run in runs:
        groups.setdefault(run.kind(), []).append(run)
    sections = "".join(_section(group[-1], len(group)) for group in groups.values())
    names = ", ".join(dict.fromkeys(run.name for run in runs))
    return (f'<!doctype html>\n<html lang="en"><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<title>{_text(names)} · Trena</title>\n'
            f"<style>{_STYLE}</style>\n<h1>Trena {__version__}</h1>\n{sections}</html>\n")


def _text(value) -> str:
    return html.escape(str(value))


def _section(run, launches: int) -> str:
    document = run.as_dict()
    data = document["timing"]
    arrow = f" → {' '.join(document['results'])}" if document["results"] else ""
    cores = f"{data['cores']} core" + ("s" if data["cores"] > 1 else "")
    changes = "".join(f" · {change}" for change in document["machine_changes"])
    state = " · interrupted: what is known so far" if document["interrupted"] else ""
    return "\n".join([
        f"<section><h2>{_text(document['name'])}</h2>",
        f'<p class="sub">{_text(" ".join(document["arguments"]) + arrow)}<br>{_text(data["machine"])} · {cores} · '
        f'{_text(data["schedule"])} schedule{_text(changes)}{state}</p>',
        f'<div class="time">{terminal.format_time(data["time_ns"])} '
        f'<small>bound by {_text(terminal.bound(data))}</small></div>',
        _engines(data), _memory(data), _path(document["critical_path"], data["time_ns"]), _stalls(data),
        _notes(document), _footer(document, data, launches), "</section>"])


def _engines(data: dict) -> str:
    details = {"tensor": terminal.tensor_details(data), "scalar": terminal.scalar_details(data)}
    rows = [(name, row, details.get(name, "")) for name, row in data["engines"].items()
            if name != "sync" or row["instructions"]]
    rows.append(("dma", data["dma"], terminal.dma_details(data)))
    return "<h3>Active</h3><table>" + "".join(
        f'<tr><td>{name}<td class="bar"><div><i style="width:{100 * min(1.0, row["active"]):.2f}%"></i></div>'
        f'<td class="n">{terminal.percent(row["active"])}'
        f'<td class="dim">{row["evidence"]["worst"] if row["active"] > 0 else ""}<td>{_text(text)}'
        for name, row, text in rows) + "</table>"


def _memory(data: dict) -> str:
    return f"<h3>Memory</h3><div>{_text(terminal.memory_text(data))}</div>"


def _place(at: dict | None) -> str:
    return f"{os.path.basename(at['file'])}:{at['line']}" if at and at["line"] else ""


def _path(parts: list[dict], time_ns: float) -> str:
    """The chain of work whose parts add up to the time, as one band and its longest parts."""
    if not parts or time_ns <= 0:
        return ""
    longest = sorted(parts, key=lambda part: -part["time_ns"])[:8]
    band = "".join(f'<i style="width:{100 * part["time_ns"] / time_ns:.3f}%" title="{_text(_work(part))}"></i>'
                   for part in longest)
    rows = "".join(
        f'<tr><td class="n">{terminal.format_time(part["time_ns"])}'
        f'<td class="n">{100 * part["time_ns"] / time_ns:.1f} %'
        f'<td>{_text(part["row"])}<td>{_text(_work(part))}'
        f'<td class="dim"><code>{_text(terminal.source(part["at"]))}</code>'
        for part in longest)
    return f'<h3>Critical path</h3><div class="path">{band}</div><table>{rows}</table>'


def _work(part: dict) -> str:
    times = f" × {part['count']}" if part["count"] > 1 else ""
    return f"{part['instruction']}{' (spill)' if part['spill'] else ''}{times}  {_place(part['at'])}".strip()


def _stalls(data: dict) -> str:
    rows = "".join(
        f'<tr><td class="n">{terminal.format_time(stall["time_ns"])}<td>{_text(stall["row"])}'
        f'<td>{_text(stall["instruction"])}  {_text(_place(stall["at"]))}'
        f'<td>{_text(stall["waited_for"])}{" (spill)" if stall["waited_for_spill"] else ""}  '
        f'{_text(_place(stall["waited_for_at"]))}<td class="dim"><code>{_text(terminal.source(stall["at"]))}</code>'
        for stall in terminal.select_stalls(data))
    heads = '<tr><th class="n">time<th>queue<th>waiting<th>for<th>'
    return f"<h3>Top stalls</h3><table>{heads}{rows}</table>" if rows else ""


def _notes(document: dict) -> str:
    lines = [f'{_text(item["text"])} <span class="dim">trena explain {_text(item["id"])}</span>'
             for item in document["timing"]["advice"]]
    lines += [f'<span class="warn">{_text(found["id"])}</span> {_text(_place(found["at"]))} {_text(found["rule"])}: '
              f'{_text(found["here"])}' for found in document["findings"]]
    return "<h3>Advice and findings</h3>" + "".join(f"<div>{line}</div>" for line in lines) if lines else ""


def _footer(document: dict, data: dict, launches: int) -> str:
    times = f" · × {launches} launches, the last is shown" if launches > 1 else ""
    return (f"<footer>{data['instructions']:,} instructions in {document['host_seconds']:.2f} s · "
            f"{_text(terminal.evidence_line(data))} · machine {_text(document['machine_hash'][:8])}{times}</footer>")
