"""A sign of life while a launch takes long."""

from __future__ import annotations

import sys
import threading
import time

DELAY_SECONDS = 2.0  # a shorter run needs none
_INTERVAL_SECONDS = 0.2
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Progress:
    """`with Progress("attention", lambda: program.instruction_count): …`

    After two seconds a line on standard error counts instructions until the block ends, and goes away. How many
    there will be is not known while a kernel runs. Nothing is printed when standard error is not a terminal.

    label     what runs
    count     how many instructions there are so far
    """

    def __init__(self, label: str, count, *, stream=None, delay_seconds: float = DELAY_SECONDS):
        self._label = label
        self._count = count
        self._stream = sys.stderr if stream is None else stream
        self._delay_seconds = delay_seconds
        self._done = threading.Event()
        self._thread = None
        self._started = 0.0

    def __enter__(self) -> Progress:
        self._started = time.monotonic()
        if self._stream is not None and self._stream.isatty():
            self._thread = threading.Thread(target=self._show, name="trena-progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *unused) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def line(self, step: int = 0) -> str:
        """What the line says now."""
        seconds = time.monotonic() - self._started
        rate = self._count() / seconds if seconds > 0 else 0.0
        frame = _FRAMES[step % len(_FRAMES)]
        return f"{frame} {self._label}  {self._count():,} instructions  {seconds:.0f} s  {rate / 1e3:.0f} thousand/s"

    def _show(self) -> None:
        if self._done.wait(self._delay_seconds):
            return
        step = 0
        while not self._done.is_set():
            self._stream.write("\r\x1b[K" + self.line(step))
            self._stream.flush()
            step += 1
            self._done.wait(_INTERVAL_SECONDS)
        self._stream.write("\r\x1b[K")
        self._stream.flush()
