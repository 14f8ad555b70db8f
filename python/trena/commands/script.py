"""Running a user's script inside this process: its words, its options, its imports, its errors."""

from __future__ import annotations

import os
import runpy
import sys
import traceback

from trena import errors
from trena.commands import common


def split(words: list[str], also=frozenset(), with_words=None) -> tuple[list[str], list[str]]:
    """Trena's own words, and the script's: everything from the script on, or after -m MODULE.

    also        further options of the command that take the next word
    with_words  options that take several words, and how to know one
    """
    with_value = common.options_with_value() | {"-m"} | set(also)
    position = 0
    while position < len(words):
        word = words[position]
        if not word.startswith("-"):
            break
        position += 2 if word in with_value else 1
        belongs = (with_words or {}).get(word)
        while belongs is not None and position < len(words) and belongs(words[position]):
            position += 1
        if word == "--" or (word.startswith("-m") and not word.startswith("--")):
            break
    return [word for word in words[:position] if word != "--"], words[position:]


def complaint(arguments) -> str | None:
    """What is wrong with the script that was named, if anything."""
    if getattr(arguments, "module", None):
        return None
    if not arguments.script:
        return f"trena {arguments.command} needs a script" + " or -m MODULE"
    return None if os.path.exists(arguments.script[0]) else f"no such script: {arguments.script[0]}"


def prepare(arguments, checking: bool = False) -> None:
    """Options and aliases for this process and for its children."""
    from trena import imports, launch

    launch.defaults = common.options_from(arguments).merged(go_on=checking)
    os.environ[launch.OPTIONS_VARIABLE] = launch.defaults.to_json()
    mode = imports.mode_from_environment()
    installed = imports.install(mode, arguments.nki_version)
    os.environ[imports.MODE_VARIABLE] = mode
    if arguments.nki_version:
        os.environ[imports.VERSION_VARIABLE] = arguments.nki_version
    if installed:
        imports.inherit(os.environ)
    if not installed or mode != "auto":
        who, why = "Trena" if installed else "the vendor", imports.decide(mode)[1]
        note(arguments, f"trena: `import nki` finds {who} ({why})")


def note(arguments, text: str) -> None:
    if not arguments.quiet:
        print(text, file=sys.stderr)


def execute(module: str | None, command_line: list[str], on_error=None) -> int:
    """Runs the script as Python would; returns the exit code.

    on_error   called with a complaint of Trena that ended the script, instead of printing it
    """
    try:
        if module:
            sys.argv = [module, *command_line]
            sys.path.insert(0, os.getcwd())
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        else:
            sys.argv = command_line
            sys.path.insert(0, os.path.dirname(os.path.abspath(command_line[0])))
            runpy.run_path(command_line[0], run_name="__main__")
    except SystemExit as end:
        return _system_exit_code(end)
    except KeyboardInterrupt:
        print("\ntrena: interrupted; what is known so far:", file=sys.stderr)
        return errors.EXIT_INTERRUPTED
    except errors.Error as error:
        if on_error is not None and not isinstance(error, errors.NotModelled):
            on_error(error)
            return errors.exit_code(error)
        _print_script_traceback(error)
        print(f"trena: {error}", file=sys.stderr)
        return errors.exit_code(error)
    except BaseException as error:
        _print_script_traceback(error, with_message=True)
        return errors.EXIT_SCRIPT_FAILED
    return errors.EXIT_FINE


def _system_exit_code(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return errors.EXIT_SCRIPT_FAILED


def _print_script_traceback(error: BaseException, with_message: bool = False) -> None:
    """The user's frames only: Trena's and runpy's own say nothing about the mistake, unless it is Trena's."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "runpy" not in f.filename]
    if isinstance(error, errors.Error) or not frames[-1:] or not frames[-1].filename.startswith(package):
        frames = [f for f in frames if not f.filename.startswith(package)]
    if with_message:
        print("Traceback (most recent call last):", file=sys.stderr)
    elif len(frames) < 2:
        return
    sys.stderr.write("".join(traceback.format_list(frames)))
    if with_message:
        sys.stderr.write("".join(traceback.format_exception_only(type(error), error)))
