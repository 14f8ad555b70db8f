"""trena check, as users and CI see it; and what a run says of mistakes that do not stop it."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import trena
from trena import errors, findings, nki
from trena.nki import isa as nisa
from trena.nki import language as nl

PYTHONPATH = os.pathsep.join(path for path in sys.path if path)

SCRIPT = '''
import numpy as np
import nki, nki.language as nl, nki.isa as nisa

@nki.jit
def kernel(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.psum)
    result = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=tile[:, 0:64])                                      # line 10: unwritten
    nisa.dma_copy(dst=tile, src=x)
    nisa.nc_matmul(dst=result, stationary=tile[:, 0:128], moving=tile[:, 0:64])          # line 12: not in PSUM
    for k in range(2):
        nisa.nc_matmul(dst=total, stationary=tile[:, 0:128], moving=tile[:, 0:64])       # line 14: goes on with …
        nisa.tensor_copy(dst=result, src=total)                                          # line 15: … what this read
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=result)
    return out

print(kernel(np.ones((128, 256), np.float32)).shape)
'''

FIXED = SCRIPT.replace("    nisa.tensor_copy(dst=result, src=tile[:, 0:64])  ", "    #").replace(
    "    nisa.nc_matmul(dst=result", "    # nisa.nc_matmul(dst=result").replace("range(2)", "range(1)")


def trena_command(*words):
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    environment.pop("TRENA_IMPORTS", None)
    return subprocess.run([sys.executable, "-m", "trena", *map(str, words)], capture_output=True, text=True,
                          env=environment, timeout=120)


@pytest.fixture
def script(tmp_path):
    def write(text):
        path = tmp_path / "script.py"
        path.write_text(text)
        return path

    return write


def test_all_mistakes_are_listed_with_their_lines(script, tmp_path):
    path, as_json, as_sarif = script(SCRIPT), tmp_path / "found.json", tmp_path / "found.sarif"
    done = trena_command("check", "--target", "trn2", "--json", as_json, "--sarif", as_sarif, path)
    assert done.returncode == 3, done.stderr
    assert done.stdout.startswith("(128, 64)\n") and "trena: 3 findings in 1 launch" in done.stdout
    expected = {("unwritten-read", 10, None), ("memory-refused", 12, None), ("accumulation-continued", 14, 15)}
    for name, line, other in expected:
        assert f"{name}  " in done.stdout and f"script.py:{line}" in done.stdout
        assert other is None or f"script.py:{other}" in done.stdout

    data = json.loads(as_json.read_text())
    assert (data["format"], data["version"]) == ("trena-check", 1)
    found = {(f["id"], f["at"]["line"], f["other"] and f["other"]["line"]) for f in data["findings"]}
    assert found == expected
    assert all(f["rule"] and f["here"] and f["kernel"] == "kernel" for f in data["findings"])

    sarif = json.loads(as_sarif.read_text())
    run = sarif["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert sarif["version"] == "2.1.0" and run["tool"]["driver"]["name"] == "trena"
    assert rules == sorted({name for name, _, _ in expected})
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"] and result["level"] in {"error", "warning"}
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"].endswith("script.py") and result["message"]["text"]
        assert (result["ruleId"], place["region"]["startLine"]) in {(name, line) for name, line, _ in expected}
    related = [result["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] for result in run["results"]
               if "relatedLocations" in result]
    assert related == [15]


def test_nothing_found_is_status_0(script, tmp_path):
    as_sarif = tmp_path / "found.sarif"
    done = trena_command("check", "-q", "--target", "trn2", "--json", "-", "--sarif", as_sarif, script(FIXED))
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.partition("\n")[2])["findings"] == []
    assert json.loads(as_sarif.read_text())["runs"][0]["results"] == []


def test_a_kernel_that_cannot_go_on_is_a_finding(script):
    text = FIXED.replace("src=x)", "src=x[:, 0:300])")
    done = trena_command("check", "--target", "trn2", script(text))
    assert done.returncode == 3 and "error: out-of-bounds" in done.stdout and "script.py:11" in done.stdout
    assert "1 finding in 1 launch" in done.stdout and "Traceback" not in done.stderr


def test_a_script_that_fails_by_itself(script):
    done = trena_command("check", script("raise ValueError('mine')"))
    assert done.returncode == 1 and "ValueError: mine" in done.stderr and "no findings" in done.stdout
    assert trena_command("check", "no_such.py").returncode == 2


def test_hardware_order_is_an_option_of_both(script):
    for command in ("run", "check"):
        done = trena_command(command, "--values=hardware-order", script(FIXED))
        assert done.returncode == 0, done.stderr
        done = trena_command(command, "--values=hardware-order", "--time-only", script(FIXED))
        assert done.returncode == 2 and "--time-only" in done.stderr


def test_options_of_check_may_stand_before_the_script(script):
    done = trena_command("check", "--sarif", "-", "-q", script("import sys; print(sys.argv[1:])"), "--json", "x")
    assert done.returncode == 0 and done.stdout.startswith("['--json', 'x']\n")


# ---- A run -------------------------------------------------------------------------------------------


@nki.jit
def sums_in_one_tensor(x):
    tile, result = (nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf) for _ in range(2))
    total = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.dma_copy(dst=tile, src=x)
    for _ in range(3):
        nisa.nc_matmul(dst=total, stationary=tile, moving=tile)
        nisa.tensor_copy(dst=result, src=total)
    out = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=result)
    return out


def test_a_warning_does_not_stop_a_run():
    x = np.eye(128, dtype=np.float32)
    run = trena.simulate(sums_in_one_tensor, target="trn2")(x)
    np.testing.assert_array_equal(run.outputs, 3 * x)
    (finding,) = run.findings
    assert (finding.id, finding.severity, finding.count) == ("accumulation-continued", "warning", 2)
    assert finding.other_line == finding.line + 1 and finding.file == __file__
    assert run.as_dict()["findings"][0]["at"] == {"file": __file__, "line": finding.line}
    from trena.report import text

    shown = text(run)
    assert f"accumulation-continued at test_check.py:{finding.line} with test_check.py:{finding.line + 1}" in shown
    assert "2 times" in shown and "trena explain accumulation-continued" in shown


@nki.jit
def adds_to_nothing(x):
    tile = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.dma_copy(dst=tile, src=x)
    nisa.nc_matmul(dst=total, stationary=tile, moving=tile, accumulate=True)


def test_an_error_stops_a_run():
    with pytest.raises(errors.Hazard) as caught:
        trena.simulate(adds_to_nothing, target="trn2")(np.ones((128, 128), np.float32))
    assert caught.value.id == "accumulation-unwritten" and caught.value.line > 0
    assert len(trena.check(adds_to_nothing, target="trn2")(np.ones((128, 128), np.float32))) == 1


def test_foreign_data_is_undefined_only_before_the_fourth_core():
    @nki.jit
    def kernel(x):
        tile = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
        total = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
        nisa.dma_copy(dst=tile, src=x)
        nisa.memset(dst=total, value=1.0)
        nisa.nc_matmul(dst=total, stationary=tile, moving=tile, accumulate=True)

    x = np.ones((128, 128), np.float32)
    for target, expected in (("trn1", 1), ("trn2", 1), ("trn3", 0)):
        assert len(trena.check(kernel, target=target)(x)) == expected


def test_the_same_mistake_in_several_launches_is_one_finding():
    one = findings.Finding("data-race", file="a.py", line=3, count=2)
    other = findings.Finding("data-race", file="a.py", line=4)
    assert [(f.line, f.count) for f in findings.merged([one, other, one])] == [(3, 4), (4, 1)]


def test_examples_and_benchmarks_are_clean():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    done = trena_command("check", "-q", "--target", "trn2", os.path.join(root, "examples", "matmul.py"))
    assert done.returncode == 0, done.stdout + done.stderr
