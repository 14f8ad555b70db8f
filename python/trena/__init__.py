"""Trena: a Trainium you can run anywhere.

import trena
run = trena.simulate(kernel, target="trn2")(a, b)    # values and time of one NKI kernel
trena.install()                                       # `import nki` now finds Trena
"""

from __future__ import annotations

import os as _os

_build = _os.path.join(_os.path.dirname(__file__), "..", "..", "build", "python", "trena")
if _os.path.isdir(_build):  # a source tree: the compiled module is in its build folder
    __path__.append(_os.path.abspath(_build))
del _build

__version__ = "0.1.0"

__all__ = ["check", "errors", "install", "runs", "simulate", "simulate_ranks"]


def __getattr__(name: str):
    import importlib

    if name in {"simulate", "check"}:
        return getattr(importlib.import_module("trena.launch"), name)
    if name == "simulate_ranks":
        return importlib.import_module("trena.ranks").simulate_ranks
    if name == "runs":
        return importlib.import_module("trena.launch").runs
    if name == "install":
        return importlib.import_module("trena.imports").install
    if name in {"errors", "findings", "nki", "torch", "launch", "imports", "report", "nki_legacy"}:
        try:
            return importlib.import_module(f"trena.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"trena.{name}":
                raise
    raise AttributeError(f"module 'trena' has no attribute {name!r}")
