"""The summary of a run as lines that can be copied into a message to a colleague.

Widths adapt to the terminal; there is no colour when the output is not one. Every figure stands beside the
evidence class of the laws behind it, and the last line says how much of the time rests on which class.
"""

from __future__ import annotations

import io
import linecache
import os

from trena.errors import short_path
from trena.findings import summary_line

DEFAULT_WIDTH = 100
_LABEL = 10  # columns of "  tensor  "
_ENGINES = ("tensor", "vector", "scalar", "gpsimd", "sync")
_MOST_STALLS = 5
_MOST_FINDINGS = 5
_STALLS_OF_THE_BOUND = 3  # of these, at least as many from the row that binds, if it has them
_PLAIN = str.maketrans({"█": "#", "·": ".", "−": "-", "—": "-", "→": ">", "←": "<", "µ": "u", "×": "x", "│": "|",
                        **dict.fromkeys("▏▎▍▌▋▊▉", ":")})


# ---- Figures -----------------------------------------------------------------------------------------


def format_time(time_ns: float) -> str:
    """412.6 µs, 1.234 ms, 87 ns: four significant digits and the unit people would use."""
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if time_ns >= scale:
            value = time_ns / scale
            return f"{value:.{max(0, 4 - len(str(int(value))))}f} {unit}"
    return f"{time_ns:.0f} ns"


def format_bytes(count: float) -> str:
    """6.3 MB: decimal units, as HBM figures are given."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.4g} {unit}"
    return f"{count:.0f} B"


def format_size(count: float) -> str:
    """2.0 KiB: binary units, as on-chip sizes are given."""
    return f"{count / 1024:.1f} KiB" if count >= 1024 else f"{count:.0f} B"


def percent(part: float) -> str:
    return f"{100 * part:5.1f} %"


def bar(part: float, width: int) -> str:
    """A bar of `width` columns, an eighth of a column fine."""
    eighths = round(min(1.0, max(0.0, part)) * width * 8)
    full, rest = divmod(eighths, 8)
    if part > 0 and eighths == 0:
        rest = 1
    return ("█" * full + ("", *"▏▎▍▌▋▊▉")[rest]).ljust(width, "·")


# ---- Rows --------------------------------------------------------------------------------------------


def _title(run, data: dict):
    from rich.text import Text

    arrow = f" → {' '.join(run.results)}" if run.results else ""
    cores = f"{data['cores']} core" + ("s" if data["cores"] > 1 else "")
    order = "program order" if data["schedule"] == "program" else "list schedule"
    line = Text(run.name, style="bold")
    line.append(f"  {' '.join(run.arguments)}{arrow}", style="not bold")
    line.append(f"      {data['machine']} · {cores} · {order}", style="not bold dim")
    if run.interrupted:
        line.append("  interrupted: what is known so far", style="not bold red")
    return line


def _label(name: str):
    from rich.text import Text

    return Text(f"  {name:<{_LABEL - 2}}", style="dim")


def bound(data: dict) -> str:
    """What binds a run, in words."""
    bound = data["bound"]
    if bound["by"] == "waiting":
        text = "waiting: no row is busy half of the time"
    else:
        text = f"{bound['by']} ({100 * bound['active']:.0f} %)"
    if bound["then"]:
        joint = ", most is" if bound["by"] == "waiting" else ", then"
        text += f"{joint} {bound['then']} ({100 * bound['then_active']:.0f} %)"
    return text


def _time(data: dict):
    line = _label("time")
    line.append(f"{format_time(data['time_ns']):<12}", style="not dim bold")
    line.append(f"  bound by  {bound(data)}", style="not dim")
    if data["launch_ns"] > 0:
        line.append(f"   launch {format_time(data['launch_ns'])} of it")
    return line


def _row(name: str, row: dict, bar_width: int, details: str):
    line = _label(name)
    line.append(bar(row["active"], bar_width), style="not dim cyan")
    line.append(f" {percent(row['active'])}", style="not dim bold")
    evidence = row["evidence"]["worst"] if row["active"] > 0 else ""
    line.append(f"  {evidence:<12}")
    line.append(f" {details}" if details else "", style="not dim")
    line.rstrip()
    return line


def tensor_details(data: dict) -> str:
    use = data["utilisation"]
    if use["hfu"] == 0:
        return ""
    text = f"MFU {100 * use['mfu']:.1f} %  HFU {100 * use['hfu']:.1f} %"
    if abs(use["adjusted_hfu"] - use["hfu"]) > 0.0005:
        text += f"  bf16-equivalent {100 * use['adjusted_hfu']:.1f} %"
    return text


def scalar_details(data: dict) -> str:
    tables = data["tables"]
    if tables["loads"] == 0:
        return ""
    plural = "s" if tables["loads"] > 1 else ""
    return f"{tables['loads']} table load{plural}, {format_time(tables['time_ns'])}"


def dma_details(data: dict) -> str:
    dma = data["dma"]
    if dma["transfers"] == 0:
        return ""
    return (f"{format_bytes(dma['hbm_read_bytes'])} in, {format_bytes(dma['hbm_write_bytes'])} out, "
            f"MBU {100 * dma['mbu']:.1f} %, mean descriptor {format_size(dma['mean_descriptor_bytes'])}")


def memory_text(data: dict) -> str:
    memory = data["memory"]
    used, usable = memory["sbuf_peak_bytes_per_partition"], memory["sbuf_usable_bytes_per_partition"]
    return (f"SBUF peak {used / 1024:.4g} of {usable / 1024:.0f} KiB/partition · "
            f"PSUM {memory['psum_peak_banks']} of {memory['psum_banks']} banks · "
            f"spilled {format_bytes(data['dma']['spilled_bytes'])}")


def _memory(data: dict):
    line = _label("memory")
    line.append(memory_text(data), style="not dim")
    return line


# ---- Stalls ------------------------------------------------------------------------------------------


def select_stalls(data: dict) -> list[dict]:
    """The stalls worth a line: first those of the row that binds, then the longest of the others."""
    row = data["bound"]["row"]

    def binds(stall):
        return stall["row"] == row or (row == "dma" and stall["row"].startswith("dma."))

    first = [stall for stall in data["stalls"] if binds(stall)][:_STALLS_OF_THE_BOUND]
    others = [stall for stall in data["stalls"] if stall not in first]
    return first + others[:_MOST_STALLS - len(first)]


def _place(at: dict) -> str:
    if not at["line"]:
        return ""
    return f"{os.path.basename(at['file'])}:{at['line']}"


def source(at: dict) -> str:
    """The line of the user's file, if it can be read."""
    return linecache.getline(at["file"], at["line"]).strip() if at["line"] else ""


def _stalls(data: dict, width: int) -> list:
    from rich.text import Text

    rows = []
    for stall in select_stalls(data):
        cause = stall["waited_for"] + (" (spill)" if stall["waited_for_spill"] else "")
        rows.append((format_time(stall["time_ns"]), _place(stall["at"]), stall["instruction"], stall["row"],
                     "← " + cause, stall["waited_for_row"], _place(stall["waited_for_at"]), stall["at"]))
    if not rows:
        return []
    widths = [max(len(row[k]) for row in rows) for k in range(7)]
    cause_column = 3 + sum(widths[:4]) + 2 * 4
    lines = [Text("  top stalls".ljust(cause_column + 2) + "waited for", style="dim")]
    for row in rows:
        cells = [row[0].rjust(widths[0])] + [row[k].ljust(widths[k]) for k in range(1, 7)]
        line = Text("   " + "  ".join(cells).rstrip())
        code, room = source(row[7]), width - len(line) - 5
        if code and room >= 20:
            line.append("   " + (code if len(code) <= room else code[:room - 1] + "…"), style="dim")
        lines.append(line)
    return lines


# ---- The last lines ----------------------------------------------------------------------------------


def _advice(data: dict) -> list:
    lines = []
    for item in data["advice"]:
        line = _label("advice")
        line.append(item["text"], style="not dim yellow")
        line.append(f"   trena explain {item['id']}")
        lines.append(line)
    return lines


def _findings(run) -> list:
    """Mistakes that did not stop the run: `trena check` says more about each."""
    found = getattr(run, "findings", [])
    lines = []
    for finding in found[:_MOST_FINDINGS]:
        line = _label("warning")
        line.append(summary_line(finding), style="not dim yellow")
        line.append(f"   trena explain {finding.id}")
        lines.append(line)
    if len(found) > _MOST_FINDINGS:
        line = _label("")
        line.append(f"and {len(found) - _MOST_FINDINGS} more: trena check lists them", style="not dim yellow")
        lines.append(line)
    return lines


def evidence_line(data: dict) -> str:
    """How sure the time is: the share of busy time behind each class, and the schedule."""
    parts = [(share, name) for name, share in data["evidence"]["parts"].items() if share >= 0.0005]
    parts.sort(key=lambda part: -part[0])
    shares = ", ".join(f"{100 * share:.0f} % {name}" for share, name in parts)
    text = f"evidence of busy time: {shares}" if shares else "nothing was busy"
    if data["schedule"] != "program":
        text += f" · {data['evidence']['schedule']}"
    return text


def _footer(run, data: dict, launches: int):
    from rich.text import Text

    seconds = f"{run.host_seconds:.2f}" if run.host_seconds >= 0.01 else f"{run.host_seconds:.4f}"
    plural = "s" if data["instructions"] != 1 else ""
    text = f"  {data['instructions']:,} instruction{plural} in {seconds} s · {evidence_line(data)}"
    if launches > 1:
        text += f" · × {launches} launches, the last is shown"
    return Text(text, style="dim")


def _lines(run, width: int, launches: int) -> list:
    data = run.timing.summary(run.machine)
    bar_width = max(8, min(26, width - 74))
    details = {"tensor": tensor_details(data), "scalar": scalar_details(data)}
    lines = [_title(run, data), "", _time(data)]
    for name in _ENGINES:
        if name != "sync" or data["engines"][name]["instructions"]:
            lines.append(_row(name, data["engines"][name], bar_width, details.get(name, "")))
    lines.append(_row("dma", data["dma"], bar_width, dma_details(data)))
    lines.append(_memory(data))
    stalls = _stalls(data, width)
    advice = _advice(data)
    findings = _findings(run)
    if stalls or advice or findings:
        lines += ["", *stalls, *advice, *findings]
    return [*lines, "", _footer(run, data, launches)]


def _can_print_blocks(console) -> bool:
    try:
        "█▏·→←µ×…−—".encode(console.encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def summary(run, console=None, launches: int = 1) -> None:
    """Prints what a run took, what bound it and what waited.

    run       a trena.Run
    console   a rich Console; standard output without it
    launches  how many launches of this kernel the run stands for
    """
    from rich.console import Console

    console = console or Console(highlight=False, soft_wrap=False)
    width = console.width if console.is_terminal else max(console.width, DEFAULT_WIDTH)
    print_lines(_lines(run, width, launches), console)


def print_lines(lines, console=None) -> None:
    """Prints lines, strings or rich Texts, in signs that the console has."""
    from rich.console import Console
    from rich.text import Text

    console = console or Console(highlight=False, soft_wrap=False)
    plain = not _can_print_blocks(console)
    for line in lines:
        line = line if isinstance(line, Text) else Text(line)
        if plain:
            line.plain = line.plain.translate(_PLAIN).encode("ascii", "replace").decode()
        if console.is_terminal:
            console.print(line, highlight=False)
        else:  # a line is a line, however long: it goes to files and messages
            console.print(line, highlight=False, soft_wrap=True)


def text(run, width: int = DEFAULT_WIDTH, launches: int = 1) -> str:
    """The summary as a string, without colour."""
    from rich.console import Console

    buffer = io.StringIO()
    summary(run, Console(file=buffer, width=width, color_system=None, force_terminal=False, highlight=False), launches)
    return buffer.getvalue()
