"""Runs at the start of every Python below `trena run`: imports resolve as they do in the parent."""

import os
import sys


def _next_sitecustomize():
    """Another sitecustomize further down the path keeps working."""
    import importlib.machinery
    import importlib.util

    here = os.path.dirname(os.path.abspath(__file__))
    others = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


try:
    import trena.imports

    trena.imports.install()
except ImportError:
    pass  # an interpreter that cannot load Trena runs without it
_next_sitecustomize()
