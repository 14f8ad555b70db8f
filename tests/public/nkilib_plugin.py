"""A pytest plugin that lets the simulation mode of aws-neuron/nki-library find Trena (nki.md §6.5).

    cd CHECKOUT && PYTHONPATH=<trena>/python:<trena>/tests/public pytest -p nkilib_plugin \
        --test-mode simulation --platform-target trn2 -m fast test/integration

The public tree lacks two helper modules and one assignment; this file supplies stand-ins for them.
"""

import sys
import types

import pytest
import trena
from trena import launch

trena.install("always")


class _Anything:
    def __init__(self, *args, **kwargs):
        pass

    def __getattr__(self, name):
        return None


def _module(name, **contents):
    module = types.ModuleType(name)
    module.__dict__.update(contents)
    sys.modules[name] = module


# Before the checkout's conftest is read.
_module("test.utils.scripts")
_module("test.utils.scripts.remote_lock_scripts", LockResult=_Anything, LockStatus=_Anything)
_module("test.utils.perf_analysis_private", analyze_trace=lambda *args, **kwargs: None)


def pytest_addoption(parser):
    parser.addoption("--trena-each", type=int, default=0, help="run so many tests of each file, evenly chosen")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Evenly chosen tests of each file, for a table that takes minutes instead of hours.

    Those that the harness calls too slow for a simulator are left out where a file has others, and run where not.
    """
    most = config.getoption("--trena-each")
    files = {}
    for item in items if most else []:
        files.setdefault(str(item.path), []).append(item)
    chosen = set()
    for group in files.values():
        fast = [item for item in group if not any(_says_slow(marker) for marker in item.own_markers)]
        for item in fast or group:
            item.own_markers = [marker for marker in item.own_markers if not _says_slow(marker)]
        group = fast or group
        chosen |= {id(group[k * len(group) // most]) for k in range(most) if k < len(group)}
    if most:
        items[:] = [item for item in items if id(item) in chosen]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """A kernel of the library has no mistakes: what the checks find in it fails the test."""
    launch.runs.clear()
    result = yield
    found = [f"{finding.id} {finding.file}:{finding.line}: {finding.here}"
             for run in launch.runs for finding in run.findings]
    assert not found, "\n".join(["the checks found:", *dict.fromkeys(found)])
    return result


def _says_slow(marker):
    return marker.name == "skip" and "slow simulation" in str(marker.kwargs.get("reason"))


def pytest_collection_finish(session):
    try:
        from test.utils import test_orchestrator
    except ImportError:
        return
    for item in vars(test_orchestrator).values():
        if isinstance(item, type) and hasattr(item, "_run_compilation") and not hasattr(item, "_compiled_kernel"):
            item._compiled_kernel = None
