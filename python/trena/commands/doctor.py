"""trena doctor: is everything in order here?"""

from __future__ import annotations

import sys

from trena import __version__, errors
from trena.commands import common


def add(commands) -> None:
    commands.add_parser("doctor", help="is everything in order here?")


def main(arguments) -> int:
    """One line per thing that a run depends on."""
    ok = True
    print(f"trena     {__version__}, Python {sys.version.split()[0]}")
    try:
        from trena import _core

        print(f"core      {_core.version}  {_core.__file__}")
        for fact in ("simd_target", "thread_count"):
            if hasattr(_core, fact):
                print(f"          {fact.replace('_', ' ')}: {getattr(_core, fact)()}")
    except ImportError as error:
        print(f"core      MISSING: {error}")
        return errors.EXIT_SCRIPT_FAILED
    try:
        from trena import launch

        names = [launch._machine(path, ()).name for path in common.hardware_files()]
        print(f"machines  {', '.join(names)}  {launch.hardware_directory()}")
    except errors.Error as error:
        ok = False
        print(f"machines  {error}")
    from trena import imports

    wanted, reason = imports.decide(imports.mode_from_environment())
    print(f"imports   `import nki` finds {'Trena' if wanted else 'the vendor'} ({reason})")
    for package in ("numpy", "ml_dtypes", "torch", "rich"):
        try:
            print(f"{package:<9} {__import__(package).__version__ if package != 'rich' else 'installed'}")
        except ImportError:
            print(f"{package:<9} not installed")
    return errors.EXIT_FINE if ok else errors.EXIT_SCRIPT_FAILED
