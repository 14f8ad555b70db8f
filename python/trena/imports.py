"""Makes `import nki` and `import neuronxcc.nki` find Trena, so that scripts run unchanged.

`trena run` and `trena.install()` put a finder in front of sys.meta_path. An alias is the *same module object*
as the one of this package (nki.md §6.5): `nki.language is trena.nki.language`.
"""

from __future__ import annotations

import functools
import glob
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys

from trena.errors import UsageError

MODE_VARIABLE = "TRENA_IMPORTS"
MODES = ("auto", "always", "never")
VERSION_VARIABLE = "TRENA_NKI_VERSION"  # what nki is in this process: trena.nki.versions

# What scripts import -> what answers. Longest name first.
ALIASES = {
    "neuronxcc.nki": "trena.nki_legacy",
    "neuronxcc": "trena.nki_legacy.neuronxcc",
    "nki": "trena.nki",
    "nki_cpu_simulator.nki": "trena.nki",
    "nki_cpu_simulator": "trena.shims.nki_cpu_simulator",
}
# The same, only where the real package is not installed.
STAND_INS = {package: f"trena.shims.{package}" for package in ("torch_xla", "torch_neuronx", "neuron_dtypes")}


def _target_of(name: str) -> str | None:
    for alias, target in {**ALIASES, **STAND_INS}.items():
        if name == alias or name.startswith(alias + "."):
            return target + name[len(alias) :]
    return None


@functools.lru_cache(maxsize=None)
def is_installed(package: str) -> bool:
    """Does somebody else answer for that top-level package?"""
    others = (finder for finder in sys.meta_path if not isinstance(finder, AliasFinder))
    return any(finder.find_spec(package, None) is not None for finder in others)


class _AliasLoader(importlib.abc.Loader):
    def __init__(self, target: str):
        self.target = target

    def create_module(self, spec):
        module = importlib.import_module(self.target)
        self.own_spec = module.__spec__  # the import machinery is about to replace it
        return module

    def exec_module(self, module):
        module.__spec__ = self.own_spec


class AliasFinder(importlib.abc.MetaPathFinder):
    """Answers for the names in ALIASES and what lies below them."""

    def find_spec(self, fullname, path=None, target=None):
        answer = _target_of(fullname)
        package = fullname.partition(".")[0]
        if answer is None or not _exists(answer) or (package in STAND_INS and is_installed(package)):
            return None
        spec = importlib.machinery.ModuleSpec(fullname, _AliasLoader(answer), is_package=True)
        spec.submodule_search_locations = []
        return spec


def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def mode_from_environment() -> str:
    mode = os.environ.get(MODE_VARIABLE, "auto").lower()
    if mode not in MODES:
        raise UsageError(f"{MODE_VARIABLE} is one of {', '.join(MODES)}", id="imports-mode", here=mode)
    return mode


def decide(mode: str) -> tuple[bool, str]:
    """Whether Trena answers `import nki`, and why, in a few words."""
    if mode == "always":
        return True, f"{MODE_VARIABLE}=always"
    if mode == "never":
        return False, f"{MODE_VARIABLE}=never"
    if glob.glob("/dev/neuron*") and _vendor_package():
        return False, f"this host has a Neuron device and {_vendor_package()}; {MODE_VARIABLE}=always overrides"
    return True, "auto: no Neuron device here"


def _vendor_package() -> str | None:
    return next((f"package {name}" for name in ("nki", "neuronxcc") if _is_installed(name)), None)


def install(mode: str | None = None, nki_version: str | None = None) -> bool:
    """Makes the aliases resolve in this process; returns whether it did. Safe to call again.

    nki_version   what nki was in that version ("0.3", or "2.29" of the SDK) instead of the current one; otherwise
                  TRENA_NKI_VERSION says, if it is set

    Modules of the vendor that were imported before keep their names: install first.
    """
    nki_version = nki_version or os.environ.get(VERSION_VARIABLE)
    if nki_version:
        importlib.import_module("trena.nki.versions").use(nki_version)
    wanted, _ = decide(mode or mode_from_environment())
    if wanted and not any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, AliasFinder())
    return wanted


def uninstall() -> None:
    """Takes the aliases away again; modules already imported stay."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, AliasFinder)]
    for name in [n for n in sys.modules if _target_of(n)]:
        del sys.modules[name]


def inherit(environment) -> None:
    """Child processes of this environment import the same way (torchrun, subprocess, multiprocessing)."""
    package = os.path.dirname(os.path.abspath(__file__))
    wanted = [os.path.join(package, "_inherit")]
    if os.path.basename(os.path.dirname(package)) not in ("site-packages", "dist-packages"):
        # A source tree. An installed Trena is found without help, and its neighbours are of no use to another Python.
        wanted.append(os.path.dirname(package))
    paths = [p for p in environment.get("PYTHONPATH", "").split(os.pathsep) if p]
    environment["PYTHONPATH"] = os.pathsep.join([*(p for p in wanted if p not in paths), *paths])
