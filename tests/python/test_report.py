"""What a run prints and writes. Figures are checked in tests/report; here it is their text."""

import copy
import html.parser
import io
import json
import threading
import types

import numpy as np
import pytest

import trena
import trena.nki as nki
import trena.nki.isa as nisa
import trena.nki.language as nl
from trena import report
from trena.findings import Finding
from trena.report import terminal
from trena.report.progress import Progress


@nki.jit
def add_kernel(a, b):
    c = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for i in range(a.shape[0] // 128):
        rows = slice(i * 128, (i + 1) * 128)
        a_tile = nl.ndarray((128, a.shape[1]), dtype=a.dtype, buffer=nl.sbuf)
        b_tile = nl.ndarray((128, a.shape[1]), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=a_tile, src=a[rows])
        nisa.dma_copy(dst=b_tile, src=b[rows])
        nisa.tensor_tensor(dst=a_tile, data1=a_tile, data2=b_tile, op=nl.add)
        nisa.dma_copy(dst=c[rows], src=a_tile)
    return c


@pytest.fixture(scope="module")
def run():
    ones = np.ones((512, 256), np.float32)
    return trena.simulate(add_kernel, target="trn2", schedule="program")(ones, ones)


def made_up(**changes):
    """A run whose summary is `changes` over a plain one: no kernel needed to look at its text."""
    row = {"active": 0.5, "active_ns": 1.0, "instructions": 1, "evidence": {"worst": "measured"}}
    data = {
        "machine": "trn2", "cores": 1, "schedule": "program", "time_ns": 412_600.0, "launch_ns": 9_400.0,
        "instructions": 6148,
        "bound": {"by": "tensor engine", "row": "tensor", "active": 0.713, "then": "DMA", "then_active": 0.237},
        "engines": {name: dict(row) for name in ("tensor", "vector", "scalar", "gpsimd", "sync")},
        "dma": {**row, "transfers": 3, "hbm_read_bytes": 6_300_000, "hbm_write_bytes": 1_000_000, "mbu": 0.215,
                "mean_descriptor_bytes": 2048.0, "spilled_bytes": 0},
        "utilisation": {"mfu": 0.582, "hfu": 0.66, "adjusted_hfu": 0.66},
        "tables": {"loads": 11, "time_ns": 14_100.0},
        "memory": {"sbuf_peak_bytes_per_partition": 148 * 1024, "sbuf_usable_bytes_per_partition": 208 * 1024,
                   "psum_peak_banks": 7, "psum_banks": 8},
        "stalls": [], "advice": [],
        "evidence": {"worst": "extrapolated", "schedule": "as written",
                     "parts": {"documented": 0.0, "measured": 0.92, "extrapolated": 0.08}},
        **changes,
    }
    timing = types.SimpleNamespace(summary=lambda machine: data)
    return types.SimpleNamespace(name="attention", arguments=["q[128,4096]bf16"], results=["o[4096,128]bf16"],
                                 machine=None, timing=timing, host_seconds=0.31, interrupted=False)


def stall(row, time_ns, line=1):
    return {"time_ns": time_ns, "count": 1, "row": row, "instruction": "nc_matmul",
            "at": {"file": "/k/attention.py", "line": line}, "waited_for_row": "scalar", "waited_for": "activation",
            "waited_for_at": {"file": "/k/attention.py", "line": 58}, "waited_for_spill": False}


def test_lines_say_the_figures_in_the_profilers_words():
    text = report.text(made_up())
    assert "attention  q[128,4096]bf16 → o[4096,128]bf16" in text
    assert "412.6 µs" in text
    assert "bound by  tensor engine (71 %), then DMA (24 %)" in text
    assert "MFU 58.2 %  HFU 66.0 %" in text
    assert "11 table loads, 14.10 µs" in text
    assert "6.3 MB in, 1 MB out, MBU 21.5 %, mean descriptor 2.0 KiB" in text
    assert "SBUF peak 148 of 208 KiB/partition · PSUM 7 of 8 banks · spilled 0 B" in text
    assert "6,148 instructions in 0.31 s · evidence of busy time: 92 % measured, 8 % extrapolated" in text


def test_every_busy_row_names_its_evidence():
    rows = [line for line in report.text(made_up()).splitlines() if "█" in line]
    assert len(rows) == 6  # five engines and the rings
    assert all("measured" in row for row in rows)


def test_trenas_own_schedule_is_an_estimate():
    evidence = {"worst": "measured", "parts": {"measured": 1.0}, "schedule": "estimate (Trena schedule)"}
    text = report.text(made_up(schedule="list", evidence=evidence))
    assert "list schedule" in text and "estimate (Trena schedule)" in text
    assert "estimate (Trena schedule)" not in report.text(made_up())


def test_fp32_shows_what_bf16_would_make_of_it():
    text = report.text(made_up(utilisation={"mfu": 0.247, "hfu": 0.247, "adjusted_hfu": 0.988}))
    assert "HFU 24.7 %  bf16-equivalent 98.8 %" in text


def test_advice_names_the_command_that_explains_it():
    text = report.text(made_up(advice=[{"id": "table-thrash", "text": "group the calls"}]))
    assert "advice  group the calls   trena explain table-thrash" in text


def test_stalls_of_the_row_that_binds_come_first():
    stalls = [stall("vector", 9e6)] + [stall("tensor", 1e3 * k, line=k) for k in (50, 40, 30, 20)]
    chosen = terminal.select_stalls(made_up(stalls=stalls).timing.summary(None))
    assert [entry["row"] for entry in chosen] == ["tensor"] * 3 + ["vector", "tensor"]
    lines = report.text(made_up(stalls=stalls)).splitlines()
    header = next(k for k, line in enumerate(lines) if "top stalls" in line)
    assert "attention.py:50  nc_matmul  tensor  ← activation  scalar  attention.py:58" in lines[header + 1]


def test_waiting_says_so():
    bound = {"by": "waiting", "row": "vector", "active": 0.3, "then": "vector engine", "then_active": 0.3}
    assert "waiting: no row is busy half of the time, most is vector engine (30 %)" in report.text(made_up(bound=bound))


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_bars_adapt_to_the_width(width):
    bars = [line for line in report.text(made_up(), width=width).splitlines() if "█" in line]
    blocks = {sum(character in "█·▏▎▍▌▋▊▉" for character in line.split(" %")[0]) for line in bars}
    assert blocks == {max(8, min(26, max(width, 100) - 74))}


@pytest.mark.parametrize("part,expected", [
    (0.0, "········"), (1.0, "████████"), (0.5, "████····"), (0.0001, "▏·······"), (0.1875, "█▌······"),
    (1.2, "████████"),
])
def test_bar(part, expected):
    assert terminal.bar(part, 8) == expected


@pytest.mark.parametrize("time_ns,expected", [
    (87, "87 ns"), (412_600, "412.6 µs"), (9_400, "9.400 µs"), (28_300_000, "28.30 ms"), (2e9, "2.000 s"),
])
def test_time(time_ns, expected):
    assert terminal.format_time(time_ns) == expected


def test_no_colour_when_piped(run, capsys):
    report.summary(run)
    assert "\x1b" not in capsys.readouterr().out


def test_plain_letters_where_the_output_has_no_others():
    from rich.console import Console

    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    report.summary(made_up(), Console(file=stream, width=100))
    stream.flush()
    text = stream.buffer.getvalue().decode("ascii")
    assert "#####" in text and "412.6 us" in text


def test_same_run_same_text(run):
    assert report.text(run) == report.text(run)


def test_stalls_point_at_this_file(run):
    stalls = run.stalls(5)
    assert stalls and all(entry["at"]["file"] == __file__ for entry in stalls)
    assert {entry["instruction"] for entry in stalls} <= {"dma_copy", "tensor_tensor"}
    assert [entry["time_ns"] for entry in stalls] == sorted((entry["time_ns"] for entry in stalls), reverse=True)


def test_run_counts_what_the_kernel_moved(run):
    assert run.hbm_read_bytes == 2 * 512 * 256 * 4
    assert run.hbm_write_bytes == 512 * 256 * 4
    assert run.spilled_bytes == 0
    assert run.engines["vector"].instructions == 4
    assert run.dma.instructions == 12
    assert 0 < run.engines["vector"].active < run.dma.active < 1


def test_events_are_columns(run):
    events = run.events()
    assert len(events["name"]) == 16 == len(events["start_ns"])
    assert all(a <= b for a, b in zip(events["start_ns"], events["end_ns"]))
    waited = events["cause"] >= 0
    assert waited.any()
    assert (events["end_ns"][events["cause"][waited]] <= events["issue_ns"][waited]).all()


def test_json_is_versioned_and_ordered(run, tmp_path):
    path = tmp_path / "run.json"
    report.to_json(run, str(path))
    data = json.loads(path.read_text())
    assert data["timing"]["schema"] == "trena.run/1"
    assert list(data["timing"]) == [
        "schema", "machine", "cores", "schedule", "spill_policy", "time_ns", "launch_ns", "instructions", "bound",
        "engines", "dma", "utilisation", "tables", "memory", "stalls", "advice", "evidence"]
    assert list(data["timing"]["engines"]) == ["tensor", "vector", "scalar", "gpsimd", "sync"]
    assert data == json.loads(json.dumps(report.as_dict(run)))


def test_trace_is_written(run, tmp_path):
    path = tmp_path / "t.pftrace"
    run.to_perfetto(str(path))
    content = path.read_bytes()
    assert b"trn2 core 0" in content and __file__.encode() in content
    run.to_perfetto(str(path))
    assert path.read_bytes() == content


def test_trace_to_nowhere_is_an_error(run, tmp_path):
    with pytest.raises(trena.errors.UsageError, match="file-unwritable"):
        run.to_perfetto(str(tmp_path / "no" / "t.pftrace"))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_silent_for_short_runs_and_for_files():
    stream = Terminal()
    with Progress("k", lambda: 1, stream=stream):
        pass
    assert stream.getvalue() == ""
    with Progress("k", lambda: 1, stream=io.StringIO(), delay_seconds=0) as progress:
        assert progress._thread is None


def test_progress_counts_and_clears_its_line():
    stream, shown = Terminal(), threading.Event()
    stream.flush = shown.set
    with Progress("attention", lambda: 123_456, stream=stream, delay_seconds=0):
        assert shown.wait(5)
    assert "attention  123,456 instructions" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


# ---- The page ----------------------------------------------------------------------------------------


class _Balanced(html.parser.HTMLParser):
    """Every element that needs an end has one; what the page would load."""

    def __init__(self):
        super().__init__()
        self.open, self.loads, self.words = [], [], []

    def handle_starttag(self, tag, attributes):
        self.loads += [value for name, value in attributes if name in ("src", "href")]
        if tag not in ("meta", "html", "tr", "td", "th", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag != "html":
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_the_page_is_whole_and_alone(run, tmp_path):
    path = tmp_path / "page.html"
    report.write_page([run, run], str(path))
    text = path.read_text(encoding="utf-8")
    reader = _Balanced()
    reader.feed(text)
    assert reader.open == [] and reader.loads == [] and "url(" not in text and "<script" not in text
    words = " ".join(reader.words)
    data = run.as_dict()
    assert words.count("add_kernel") == 2  # title and one section for both launches
    assert "× 2 launches" in words and terminal.format_time(data["time_ns"]) in words
    for figure in (terminal.percent(data["timing"]["dma"]["active"]).strip(), terminal.memory_text(data["timing"])):
        assert figure in words
    assert "test_report.py:" in words and len(text) < 20_000


def test_the_page_quotes_what_it_was_given(run):
    twin = copy.copy(run)
    twin.name = "<script>alert(1)</script>"
    twin.findings = [Finding("hbm-race", rule="a & b"), Finding("sbuf-race", file="kernel.py", line=7)]
    text = report.page.page([twin])
    assert "<script" not in text and "a &amp; b" in text and "kernel.py:7" in text
