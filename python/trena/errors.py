"""Every complaint of Trena: a stable id, the rule, the actual value, the limit, and the line of the user.

`trena explain ID` tells more about an id. C++ throws trena::Error; bindings/errors.cpp raises the class of
its kind from here.
"""

from __future__ import annotations

import linecache
import os
import re
import sys

# The target that the message calls "the device"; trena.launch sets it while a kernel runs.
_device_name = ""


def _set_device_name(name: str) -> None:
    global _device_name
    _device_name = name


class Error(Exception):
    """Base of all of Trena's complaints.

    id      stable name of the rule, kebab-case
    rule    the rule, in one sentence
    here    what this call did: the actual value
    limit   what would have been allowed
    device  what the device would do
    fix     the way out
    file, line   the user's line, when known
    """

    def __init__(
        self,
        rule: str = "",
        *,
        id: str = "error",
        here: str = "",
        limit: str = "",
        device: str = "",
        fix: str = "",
        file: str = "",
        line: int = 0,
    ):
        super().__init__(rule)
        self.id = id
        self.rule = rule
        self.here = here
        self.limit = limit
        self.device = device
        self.fix = fix
        self.file, self.line = (file, line) if line else users_line()
        self.device_name = _device_name

    def __reduce__(self):
        fields = {k: getattr(self, k) for k in ("id", "here", "limit", "device", "fix", "file", "line")}
        return _rebuild, (type(self), self.rule, fields)

    def __str__(self) -> str:
        return render(self)


def _rebuild(cls, rule, fields):
    return cls(rule, **fields)


class UsageError(Error):
    """The call itself is malformed: a wrong argument, an unknown name."""


class ArgumentTypes(UsageError, TypeError):
    """An argument has a type that the call does not take."""


class IllegalInstruction(Error):
    """The machine refuses the instruction: dtype, shape, engine or memory."""


class OutOfBounds(Error, IndexError):
    """A view or an index leaves its tensor."""


class CapacityError(Error):
    """SBUF, PSUM or HBM cannot hold it."""


class UnwrittenRead(Error):
    """Bytes are read that nobody wrote."""


class Hazard(Error):
    """The order of the program does not cover an overlap of bytes."""


class Deadlock(Error):
    """A rendezvous that nobody joins."""


class MachineError(Error):
    """A hardware file is wrong."""


class NotModelled(Error):
    """The hardware does it, Trena does not (yet)."""


class InternalError(Error):
    """A broken promise of Trena itself: please report it."""


_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def _is_own(file: str) -> bool:
    return file.startswith((_PACKAGE, "<frozen"))


def users_line() -> tuple[str, int]:
    """The innermost running line outside this package and the standard library's runners; ("", 0) if there is none."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if not _is_own(name):
            return name, frame.f_lineno
        frame = frame.f_back
    return "", 0


def line_of(error: BaseException) -> tuple[str, int]:
    """The innermost line outside this package that `error` passed through; ("", 0) if there is none."""
    place, entry = ("", 0), error.__traceback__
    while entry is not None:
        name = entry.tb_frame.f_code.co_filename
        if not _is_own(name):
            place = name, entry.tb_lineno
        entry = entry.tb_next
    return place


_CALL = re.compile(r"[A-Za-z_][\w.]*(?=\s*\()")


def _source_lines(error: Error) -> list[str]:
    """The user's line, and a mark under the call that is meant."""
    source = linecache.getline(error.file, error.line).rstrip() if error.line else ""
    if not source.strip():
        return []
    stripped = source.lstrip()
    gutter = f"{error.line:>5} │ "
    call = _CALL.search(stripped)
    start, end = call.span() if call else (0, len(stripped))
    return [gutter + stripped, " " * 5 + " │ " + " " * start + "^" * (end - start)]


def short_path(path: str) -> str:
    """A path as a colleague would write it: relative when that is shorter."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return path
    return relative if len(relative) < len(path) else path


def render(error: Error) -> str:
    """The message in Trena's one shape: id and line, source line, rule, here, limit, device, fix, more."""
    place = f"  {short_path(error.file)}:{error.line}" if error.line else ""
    rows = [f"{error.id}{place}", *_source_lines(error)]
    device_label = f"on {error.device_name}" if error.device_name else "device"
    for label, text in (
        ("rule", error.rule),
        ("here", error.here),
        ("limit", error.limit),
        (device_label, error.device),
        ("fix", error.fix),
        ("more", f"trena explain {error.id}"),
    ):
        if text:
            rows.append(f"  {label:<8} {text}")
    return "\n".join(rows)


# Exit codes of the command line.
EXIT_FINE = 0
EXIT_SCRIPT_FAILED = 1
EXIT_USAGE = 2
EXIT_FINDINGS = 3
EXIT_NOT_MODELLED = 4
EXIT_INTERRUPTED = 130


def exit_code(error: BaseException) -> int:
    """What the command line returns when the user's script ends with `error`."""
    if isinstance(error, NotModelled):
        return EXIT_NOT_MODELLED
    if isinstance(error, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    return EXIT_SCRIPT_FAILED
