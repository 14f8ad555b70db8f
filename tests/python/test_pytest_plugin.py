"""The pytest plugin, as a user's suite sees it."""

import os
import sys

import pytest

pytest_plugins = ["pytester"]

SUITE = '''
import numpy as np
import pytest
import trena
import trena.nki as nki
import trena.nki.isa as nisa
import trena.nki.language as nl

ONES = np.ones((128, 512), np.float32)

@nki.jit
def double(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst=out, src=tile)
    return out

@nki.jit
def forgetful(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf))
    return out

def test_values_and_time(trena_run):
    run = trena_run(double)(ONES)
    np.testing.assert_array_equal(run.outputs, 2 * ONES)
    assert 5 < run.time_us < 500 and run.findings == []
    assert run.engines["vector"].instructions == 1

def test_a_mistake(trena_run):
    with pytest.raises(trena.errors.UnwrittenRead):
        trena_run(forgetful)(ONES)

def test_options(trena_run):
    assert trena_run(double, time_only=True)(ONES).outputs is None

def test_target(trena_run, trena_target):
    print("ran on", trena_run(double)(ONES).machine.name, "asked for", trena_target)

@pytest.mark.trena_target("trn1", "trn2")
def test_marked(trena_run):
    print("marked", trena_run(double)(ONES).machine.name)

def test_figures(trena_run):
    print("overrides", trena_run(double)(ONES).machine.overrides)

def test_install(trena_run):
    import nki.language
    assert nki.language is nl
'''


@pytest.fixture
def suite(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    monkeypatch.delenv("TRENA_IMPORTS", raising=False)
    pytester.makepyfile(SUITE)

    def run(*words):
        # -p names the plugin; an installed Trena has it by its entry point, which would be a second time.
        return pytester.runpytest_subprocess("-p", "no:trena", "-p", "trena.pytest_plugin", "-s", "-W", "error",
                                             "--strict-markers", *words)

    return run


def test_the_fixture_runs_kernels(suite):
    result = suite()
    result.assert_outcomes(passed=8)
    result.stdout.fnmatch_lines(["*ran on trn3 asked for None*", "*marked trn1*", "*marked trn2*"])


def test_the_option_names_targets(suite):
    suite("--trena-target", "trn2", "-k", "test_target").stdout.fnmatch_lines(["*ran on trn2 asked for trn2*"])
    both = suite("--trena-target", "trn2", "--trena-target", "trn1", "-k", "test_target or test_marked")
    both.assert_outcomes(passed=4)
    both.stdout.fnmatch_lines(["*ran on trn2*", "*ran on trn1*", "*marked trn1*", "*marked trn2*"])


def test_figures_of_the_machine(suite):
    result = suite("--trena-set", "core.pe_ghz=2.8", "-k", "test_figures")
    result.stdout.fnmatch_lines(["*overrides*core.pe_ghz=2.8*"])


def test_an_unknown_target_fails_the_test_by_name(suite):
    result = suite("--trena-target", "trn9", "-k", "test_target")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*machine-unknown*"])


def test_the_entry_point_is_declared():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(os.path.join(root, "pyproject.toml"), encoding="utf-8") as file:
        text = file.read()
    assert '[project.entry-points.pytest11]\ntrena = "trena.pytest_plugin"' in text
