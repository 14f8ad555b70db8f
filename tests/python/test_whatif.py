"""What-if, compare and sweep: one program, many clocks. A changed machine must say what a new trace on it says."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import trena
import trena.nki as nki
import trena.nki.isa as nisa
import trena.nki.language as nl
from trena import errors, launch, whatif
from trena.whatif import text
from trena.whatif.sweep import Axis, cost_axes, groups, parse_axes

PYTHONPATH = os.pathsep.join(path for path in sys.path if path)

SCRIPT = '''
import sys
import numpy as np
import nki, nki.language as nl, nki.isa as nisa

@nki.jit
def product(a, b):
    print("traced", *sys.argv[1:])
    out = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
    left, right = nl.load(a), nl.load(b)
    for _ in range(8):
        sums = nl.ndarray((128, 512), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=sums, stationary=left, moving=right)
    tile = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=tile, src=sums)
    nisa.dma_copy(dst=out, src=tile)
    return out

product(np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
'''


@nki.jit
def hoarder(x):
    """Needs all its tiles at once: 16 x 8 KiB of each partition."""
    out = nl.ndarray(x.shape[1:], x.dtype, buffer=nl.shared_hbm)
    tiles = [nl.load(x[k]) for k in range(x.shape[0])]
    total = nl.ndarray(x.shape[1:], x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=total, value=0.0)
    for tile in tiles + tiles:
        nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


DATA = np.ones((16, 128, 2048), np.float32)


@pytest.fixture(scope="module")
def run():
    return trena.simulate(hoarder, target="trn2")(DATA)


def command(*words, cwd=None):
    return subprocess.run([sys.executable, "-m", "trena", *map(str, words)], capture_output=True, text=True, cwd=cwd,
                          env={**os.environ, "PYTHONPATH": PYTHONPATH}, timeout=120)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "product.py"
    path.write_text(SCRIPT)
    return path


# ---- Run.what_if -------------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [("core.sbuf_kib=96",), ("core.pe_ghz=2.8", "core.dve_ghz=1.2"),
                                     ("core.hbm_gbs=90",), ("launch_ns=0",)])
def test_a_what_if_is_what_a_new_trace_says(run, changes):
    again = trena.simulate(hoarder, target="trn2", set=changes)(DATA)
    answer = run.what_if(*changes)
    assert answer.time_ns == again.time_ns != run.time_ns
    assert answer.timing.summary(answer.machine) == again.timing.summary(again.machine)
    assert answer.changes == changes and answer.outputs is run.outputs


def test_a_smaller_sbuf_spills(run):
    small = run.what_if("core.sbuf_kib=96")
    assert run.spilled_bytes == 0 < small.spilled_bytes and small.time_ns > run.time_ns


def test_the_first_run_stays_as_it_was(run):
    before = run.time_ns, list(run.machine.overrides)
    run.what_if("core.pe_ghz=1.4")
    assert (run.time_ns, list(run.machine.overrides)) == before
    assert run.what_if().time_ns == run.time_ns


def test_another_chip(run):
    other = run.what_if("target=trn3")
    assert other.machine.name == "trn3" and other.time_ns == trena.simulate(hoarder, target="trn3")(DATA).time_ns


@pytest.mark.parametrize("change, id", [("core.sbuf=1", "machine-override"), ("core.pe_ghz=fast", "machine-override"),
                                        ("core.pe_ghz", "machine-override"), ("target=trn9", "machine-unknown"),
                                        ("core.sbuf_kib=3", "machine-invalid")])
def test_bad_keys_and_values_are_named(run, change, id):
    with pytest.raises(errors.MachineError) as raised:
        run.what_if(change)
    assert raised.value.id == id


def test_a_machine_too_small_says_which_line(run):
    with pytest.raises(errors.CapacityError) as raised:
        run.what_if("core.sbuf_kib=20")
    assert raised.value.id == "sbuf-capacity" and raised.value.file == __file__ and raised.value.line > 0


def test_a_generation_without_the_instruction_refuses():
    @nki.jit
    def copy_by_scalar(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        nisa.tensor_copy(dst=tile, src=tile, engine=nisa.engine.scalar)  # not on NeuronCore-v2
        nisa.dma_copy(dst=out, src=tile)
        return out

    run = trena.simulate(copy_by_scalar, target="trn2")(np.ones((128, 64), np.float32))
    with pytest.raises(errors.IllegalInstruction):
        run.what_if("target=trn1")
    assert whatif.evaluate(run, [("target=trn1",)])[0].error is not None


def test_a_kernel_that_asked_the_machine_is_noted():
    @nki.jit
    def adaptive(x):
        rows = nl.tile_size.total_available_sbuf_size // 2048  # decided while traced
        return hoarder(x[0:min(rows, 16)])

    run = trena.simulate(adaptive, target="trn2")(DATA)
    assert run.what_if("core.pe_ghz=2.8").notes == []
    note, = run.what_if("core.sbuf_kib=256").notes
    assert "core.sbuf.partition_kib" in note and "224" in note and "256" in note


def test_remembered_runs_hold_no_memory(run):
    kept = launch.runs[-1]
    assert kept.outputs is None and kept.program is None
    with pytest.raises(errors.UsageError) as raised:
        kept.what_if("core.pe_ghz=2.8")
    assert raised.value.id == "what-if-program"


def test_only_the_last_run_of_a_kind_keeps_its_program(monkeypatch):
    monkeypatch.setattr(launch, "keep_programs", True)
    for _ in range(3):
        trena.simulate(hoarder, target="trn2")(DATA)
    assert [run.program is not None for run in list(launch.runs)[-3:]] == [False, False, True]
    assert launch.runs[-1].outputs is None and launch.runs[-1].what_if("core.pe_ghz=2.8").time_ns > 0


# ---- Why ---------------------------------------------------------------------------------------------


def test_the_critical_path_adds_up_to_the_time(run):
    for one in (run, run.what_if("core.sbuf_kib=96"), run.what_if("core.hbm_gbs=90")):
        parts = one.timing.critical_path()
        assert sum(part["time_ns"] for part in parts) + one.timing.launch_ns == pytest.approx(one.time_ns, abs=1e-3)
        assert all(part["time_ns"] >= 0 for part in parts)


def test_reasons_add_up_to_the_difference(run):
    before = run.as_dict()
    for change in ("core.sbuf_kib=96", "core.dve_ghz=2", "launch_ns=0"):
        found = whatif.compare(before, run.what_if(change).as_dict())
        assert sum(reason.delta_ns for reason in found.reasons) == pytest.approx(found.delta_ns, abs=1e-3)
        assert f"set {change}" in found.causes


def test_the_first_reason_is_the_figure_that_changed(run):
    vector = whatif.compare(run.as_dict(), run.what_if("core.dve_ghz=2").as_dict())
    assert (vector.reasons[0].row, vector.reasons[0].instruction) == ("vector", "tensor_tensor")
    assert vector.reasons[0].delta_ns < 0 and vector.reasons[0].place.startswith("test_whatif.py:")
    start = whatif.compare(run.as_dict(), run.what_if("launch_ns=0").as_dict())
    assert [reason.row for reason in start.reasons] == ["launch"]
    spilled = whatif.compare(run.as_dict(), run.what_if("core.sbuf_kib=96").as_dict())
    assert any(reason.spill for reason in spilled.reasons) and any("spills 0 B" in c for c in spilled.causes)


def test_equal_runs_have_no_reasons(run):
    same = whatif.compare(run.as_dict(), run.what_if().as_dict())
    assert (same.delta_ns, same.reasons, same.waits, same.causes) == (0, [], [], [])
    assert "the same time" in text.explain("again", same)[0]


def test_other_sources_are_compared_by_instruction(run):
    moved = json.loads(json.dumps(run.what_if("core.dve_ghz=2").as_dict()))
    for part in moved["critical_path"]:
        part["at"]["file"] = "/elsewhere/other.py"
    found = whatif.compare(run.as_dict(), moved)
    assert {reason.place for reason in found.reasons} == {""}
    assert sum(reason.delta_ns for reason in found.reasons) == pytest.approx(found.delta_ns, abs=1e-3)


# ---- Sweeps ------------------------------------------------------------------------------------------


def test_axes():
    assert parse_axes(["core.sbuf_kib=192,256"]) == [Axis("core.sbuf_kib", ("192", "256"))]
    assert parse_axes(["x=[1,2],[3]"])[0].values == ("[1,2]", "[3]")
    assert [axis.key for axis in parse_axes(["a=1", "target=trn2,trn3"])] == ["target", "a"]
    assert groups(parse_axes(["a=1,2", "b=3,4"])) == [("a=1", "b=3"), ("a=1", "b=4"), ("a=2", "b=3"), ("a=2", "b=4")]
    for words in ([], ["a"], ["a="], ["a=1,"], ["=1"], ["a=1", "a=2"]):
        with pytest.raises(errors.UsageError) as raised:
            parse_axes(words)
        assert raised.value.id == "sweep-axis"
    axes = parse_axes(["a=1,2", "flag=true,false"])
    assert [axis.key for axis in cost_axes(axes, [])] == ["a"]
    for name in ("b", "flag"):
        with pytest.raises(errors.UsageError):
            cost_axes(axes, [name])


def answer(time_ns, **costs):
    return whatif.Answer(tuple(f"{key}={value}" for key, value in costs.items()),
                         None if time_ns is None else {"time_ns": time_ns})


def test_pareto_front_by_hand():
    answers = [answer(10, a=1, b=1), answer(9, a=2, b=1), answer(9, a=3, b=1), answer(11, a=1, b=2),
               answer(8, a=3, b=2), answer(None, a=0, b=0)]
    both = parse_axes(["a=0,1,2,3", "b=0,1,2"])
    assert whatif.pareto(answers, both) == [True, True, False, False, True, False]
    assert whatif.pareto(answers, both[1:]) == [False, True, True, False, True, False]


def test_equal_points_are_both_on_the_front():
    axes = parse_axes(["a=1"])
    assert whatif.pareto([answer(5, a=1), answer(5, a=1)], axes) == [True, True]


def test_a_sweep_is_as_many_what_ifs(run):
    axes = parse_axes(["core.sbuf_kib=96,224", "core.dve_ghz=0.96,2"])
    answers = whatif.sweep(run, axes)
    assert [a.time_ns for a in answers] == [run.what_if(*changes).time_ns for changes in groups(axes)]


# ---- The commands ------------------------------------------------------------------------------------


def test_run_what_if(script, tmp_path):
    file = tmp_path / "a.json"
    done = command("run", "--target", "trn2", "--what-if", "core.sbuf_kib=256", "core.pe_ghz=2.8", "--what-if",
                   "core.hbm_gbs=90", "--json", file, script, "word")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("traced word") == 1  # one trace, three clocks
    assert "core.sbuf_kib=256 core.pe_ghz=2.8" in done.stdout and "why core.hbm_gbs=90: +" in done.stdout
    answers = json.loads(file.read_text())["runs"][0]["what_if"]
    assert [a["changes"] for a in answers] == [["core.sbuf_kib=256", "core.pe_ghz=2.8"], ["core.hbm_gbs=90"]]
    again = command("run", "-q", "--target", "trn2", "--set", "core.hbm_gbs=90", "--json", "-", script).stdout
    assert json.loads(again[again.index("{"):])["runs"][0]["time_ns"] == answers[1]["run"]["time_ns"]


def test_run_what_if_of_a_machine_too_small(script):
    done = command("run", "--target", "trn2", "--what-if", "core.sbuf_kib=17", script)
    assert done.returncode == 0 and "sbuf-capacity" in done.stdout and "product.py:" not in done.stderr


def test_bad_words_end_before_the_script(script):
    for words in (("run", "--what-if", "core.nothing=1", script), ("sweep", script, "core.nothing=1"),
                  ("sweep", script, "core.sbuf_kib=x"), ("sweep", script), ("sweep", "no_such.py", "a=1"), ("sweep",),
                  ("sweep", script, "core.sbuf_kib=192", "--cost", "core.pe_ghz"),
                  ("sweep", script, "core.sbuf_kib=192", "--plot", "picture.xls")):
        done = command(*words)
        assert done.returncode == 2 and "traced" not in done.stdout, (words, done.stdout, done.stderr)
        assert done.stderr.startswith("trena: ")


def test_compare(script, tmp_path):
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    assert command("run", "-q", "--target", "trn2", "--json", first, script).returncode == 0
    slow = ("--set", "core.pe_ghz=1.4")
    assert command("run", "-q", "--target", "trn2", *slow, "--json", second, script).returncode == 0
    done = command("compare", first, second)
    assert done.returncode == 0, done.stderr
    assert "set core.pe_ghz=1.4" in done.stdout and "nc_matmul" in done.stdout and "product.py:13" in done.stdout
    found = json.loads(command("compare", first, second, "--json", "-").stdout)["comparisons"][0]
    assert sum(reason["delta_ns"] for reason in found["reasons"]) == pytest.approx(found["delta_ns"], abs=1e-3)
    same = command("compare", first, first)
    assert same.returncode == 0 and "the same time" in same.stdout


def test_compare_refuses_what_is_no_run(script, tmp_path):
    good = tmp_path / "a.json"
    assert command("run", "-q", "--json", good, script).returncode == 0
    other = json.loads(good.read_text())
    other["runs"][0]["name"] = "other"
    bad = {"missing.json": None, "text.json": "hello", "list.json": "[1]", "empty.json": '{"format": "trena-run"}',
           "future.json": json.dumps({**other, "version": 99}), "none.json": json.dumps({**other, "runs": []}),
           "two.json": json.dumps({**other, "runs": [other["runs"][0], {**other["runs"][0], "name": "third"}]})}
    for name, content in bad.items():
        if content is not None:
            (tmp_path / name).write_text(content)
        done = command("compare", good, tmp_path / name)
        assert done.returncode == 2 and "compare-file" in done.stderr, (name, done.stdout, done.stderr)
    assert command("compare", good).returncode == 2
    (tmp_path / "renamed.json").write_text(json.dumps(other))
    assert command("compare", good, tmp_path / "renamed.json").returncode == 0  # one kernel each: meant


def test_sweep(script, tmp_path):
    file = tmp_path / "s.json"
    done = command("sweep", "--target", "trn2", script, "core.pe_ghz=2,2.8", "core.sbuf_kib=17,224", "--json", file,
                   "--", "own", "core.words=1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("traced own core.words=1") == 1
    points = json.loads(file.read_text())["sweeps"][0]["points"]
    assert [p["changes"] for p in points] == [[f"core.pe_ghz={ghz}", f"core.sbuf_kib={kib}"]
                                              for ghz in (2, 2.8) for kib in (17, 224)]
    assert [p["pareto"] for p in points] == [False, True, False, True]
    assert points[0]["error"]["id"] == "sbuf-capacity" and points[3]["run"]["time_ns"] < points[1]["run"]["time_ns"]


@pytest.mark.parametrize("name, start", [("s.png", b"\x89PNG"), ("s.svg", b"<?xml")])
def test_sweep_plots(script, tmp_path, name, start):
    pytest.importorskip("matplotlib")
    done = command("sweep", "-q", "--target", "trn2", script, "core.pe_ghz=2,2.4,2.8", "core.hbm_gbs=90,188", "--plot",
                   tmp_path / name)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / name).read_bytes().startswith(start)


def test_a_missing_plot_library_is_named(script, tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ImportError('not here')")
    done = subprocess.run([sys.executable, "-m", "trena", "sweep", script, "core.pe_ghz=2", "--plot", "s.svg"],
                          capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{PYTHONPATH}"})
    assert done.returncode == 2 and "plot-library" in done.stderr and "matplotlib" in done.stderr


def test_what_if_of_a_pytorch_step(tmp_path):
    pytest.importorskip("torch")
    script = tmp_path / "step.py"
    script.write_text("import torch, trena.torch\n"
                      "model = torch.nn.Linear(256, 512).to('neuron')\n"
                      "print(model(torch.ones(128, 256).to('neuron')).shape)\n")
    done = command("run", "--target", "trn2", "--what-if", "core.hbm_gbs=50", script)
    assert done.returncode == 0, done.stderr
    assert "why core.hbm_gbs=50: +" in done.stdout
