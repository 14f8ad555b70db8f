"""A pytest plugin that lets the simulation mode of aws-neuron/nki-library find Trena (nki.md §6.5).

    cd CHECKOUT && PYTHONPATH=<trena>/python:<trena>/tests/public pytest -p nkilib_plugin \
        --test-mode simulation --platform-target trn2 -m fast test/integration

The public tree lacks two helper modules and one assignment; this file supplies stand-ins for them.
"""

import sys
import types

import trena

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


def pytest_collection_finish(session):
    try:
        from test.utils import test_orchestrator
    except ImportError:
        return
    for item in vars(test_orchestrator).values():
        if isinstance(item, type) and hasattr(item, "_run_compilation") and not hasattr(item, "_compiled_kernel"):
            item._compiled_kernel = None
