"""The module that kernel libraries' `--test-mode simulation` asks for: its `nki` is Trena's."""

from trena import nki  # noqa: F401
