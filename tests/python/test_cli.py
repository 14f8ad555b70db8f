"""The command line, as users type it."""

import json
import os
import signal
import subprocess
import sys

import pytest

PYTHONPATH = os.pathsep.join(path for path in sys.path if path)  # this Trena: of the source tree, or installed

SCRIPT = '''
import sys
import numpy as np
import nki, nki.language as nl, nki.isa as nisa
import trena.nki
assert nki is trena.nki and nl is trena.nki.language

@nki.jit
def scale(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.multiply(nl.load(x), 2.0))
    return out

x = np.ones((128, 64), np.float32)
print("sum", scale(x).sum(), *sys.argv[1:])
'''


def trena(*words, cwd=None, env=None):
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH, **(env or {})}
    environment.pop("TRENA_IMPORTS", None) if env is None else None
    return subprocess.run([sys.executable, "-m", "trena", *map(str, words)], capture_output=True, text=True, cwd=cwd,
                          env=environment, timeout=120)


@pytest.fixture
def script(tmp_path):
    def write(text, name="script.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_run_prints_the_summary_under_the_scripts_output(script):
    result = trena("run", "--target", "trn2", script(SCRIPT), "--flag", "-q")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "sum 16384.0 --flag -q"
    assert "scale" in result.stdout and "trn2" in result.stdout


def test_quiet_prints_results_only(script):
    result = trena("run", "-q", script(SCRIPT))
    assert (result.returncode, result.stdout) == (0, "sum 16384.0\n"), result.stderr


def test_run_module(script):
    path = script(SCRIPT, "some_module.py")
    result = trena("run", "-q", "-m", "some_module", "word", cwd=path.parent)
    assert (result.returncode, result.stdout) == (0, "sum 16384.0 word\n"), result.stderr


def test_json(script, tmp_path):
    file = tmp_path / "run.json"
    assert trena("run", "-q", "--target", "trn2", "--json", file, script(SCRIPT)).returncode == 0
    document = json.loads(file.read_text())
    assert (document["format"], document["version"]) == ("trena-run", 1)
    assert document["runs"][0]["name"] == "scale" and document["runs"][0]["time_ns"] > 0


def test_exit_codes(script):
    assert trena("run", script("raise SystemExit(7)")).returncode == 7
    failed = trena("run", script("def f():\n    raise ValueError('mine')\nf()"))
    assert failed.returncode == 1 and "ValueError: mine" in failed.stderr and "runpy" not in failed.stderr
    assert trena("run", "no_such_file.py").returncode == 2
    assert trena("run").returncode == 2
    assert trena("run", "--no-such-option", "x.py").returncode == 2
    assert trena("explain", "no-such-id").returncode == 2
    assert trena("machine", "no-such-machine").returncode == 2


def test_not_modelled_exits_with_4(script):
    text = SCRIPT.replace("nl.store(out,", "import nki.collectives as ncc; ncc.all_gather(); nl.store(out,")
    result = trena("run", script(text))
    assert result.returncode == 4 and "not modelled" in result.stderr


def test_diagnostic_has_the_shape_of_the_house(script):
    text = SCRIPT.replace("nl.multiply(nl.load(x), 2.0)", "nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)")
    path = script(text)
    result = trena("run", "--target", "trn2", path)
    assert result.returncode == 1
    assert result.stderr.startswith("trena: ") or "\ntrena: " in result.stderr
    assert "script.py:11" in result.stderr and "rule" in result.stderr and "trena explain" in result.stderr
    assert "Traceback" not in result.stderr


def _heed_interrupts():
    """A shell starts what runs in its background with SIGINT ignored, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_interrupt_prints_what_is_known(script):
    text = SCRIPT.replace("    nl.store(out, nl", """    import time
    tile = nl.load(x)
    print("running", flush=True)
    for _ in range(10_000):
        nisa.tensor_copy(dst=tile, src=tile)
        time.sleep(0.01)
    nl.store(out, nl""")
    words = [sys.executable, "-m", "trena", "run", "--target", "trn2", str(script(text))]
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
                          preexec_fn=_heed_interrupts) as process:
        assert process.stdout.readline() == "running\n"
        process.send_signal(signal.SIGINT)
        output, complaint = process.communicate(timeout=60)
    assert process.returncode == 130, complaint
    assert "interrupted" in complaint and "scale" in output and "dma" in output


def test_children_import_the_same_way(script):
    child = script(SCRIPT, "child.py")
    parent = script(f"import subprocess, sys\nsubprocess.run([sys.executable, {str(child)!r}, 'child'], check=True)")
    result = trena("run", "-q", parent)
    assert (result.returncode, result.stdout) == (0, "sum 16384.0 child\n"), result.stderr


def test_an_installed_trena_gives_children_no_other_packages(monkeypatch):
    """A child may be another Python: packages beside Trena, compiled for this one, must not shadow its own."""
    from trena import imports

    for place, expected in (("/venv/lib/site-packages", ["/venv/lib/site-packages/trena/_inherit", "/mine"]),
                            ("/tree/python", ["/tree/python/trena/_inherit", "/tree/python", "/mine"])):
        monkeypatch.setattr(imports, "__file__", f"{place}/trena/imports.py")
        environment = {"PYTHONPATH": "/mine"}
        imports.inherit(environment)
        imports.inherit(environment)
        assert environment["PYTHONPATH"].split(os.pathsep) == expected


def test_never_leaves_imports_alone(script):
    result = trena("run", script("import nki"), env={"TRENA_IMPORTS": "never"})
    assert "TRENA_IMPORTS=never" in result.stderr
    assert trena("run", script("import json"), env={"TRENA_IMPORTS": "sometimes"}).returncode == 2


def test_machine_lists_and_describes():
    everything = trena("machine").stdout
    for name in ("trn1", "inf2", "trn2", "trn3"):
        assert name in everything
    one = trena("machine", "trn2", "--set", "core.sbuf.partition_kib=256")
    assert one.returncode == 0 and "core.sbuf.partition_kib" in one.stdout and "256" in one.stdout
    assert json.loads(trena("machine", "trn2", "--json").stdout)["machine"] == "trn2"


def test_version_and_doctor():
    version = trena("--version").stdout.split()
    assert version[0] == "trena" and len(version[-1]) == 12
    doctor = trena("doctor")
    assert doctor.returncode == 0 and "machines" in doctor.stdout and "trn2" in doctor.stdout


def test_explain():
    assert "psum" in trena("explain", "nki.isa.nc_matmul").stdout.lower()
    assert "nisa" not in trena("explain", "nisa.dma_copy").stderr


