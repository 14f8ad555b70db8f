"""What the device did: the step in progress, its time when it ends, and which operators ran where.

A step ends where the host waits for the device: torch.neuron.synchronize(), .item(), a copy to the CPU. Until
then everything is one Program (src/trena/graph/session.h), whose instructions give the values at once and the
time at the end.
"""

from __future__ import annotations

import collections
import dataclasses
import os
import time

import torch
from trena import _core, launch
from trena.torch import memory

# Times come from Trena's own order of the queues, not from a compiler's (design: graphs are an estimate).
EVIDENCE = "estimate (Trena schedule)"

# A step without a synchronisation is cut here, to bound the memory of its Program.
MOST_INSTRUCTIONS = 1_000_000


def is_strict() -> bool:
    """TRENA_STRICT=1: no operator may run on the CPU."""
    return os.environ.get("TRENA_STRICT", "0") not in ("", "0", "false", "no")


@dataclasses.dataclass
class Counters:
    """Totals since the start, or of one `step()`."""

    executed: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    fallback: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    host_to_device_bytes: int = 0
    device_to_host_bytes: int = 0
    runs: list = dataclasses.field(default_factory=list)
    multiply_accumulates: int = 0
    instructions: int = 0


class _State:
    def __init__(self):
        self.session = None
        self.machine = None
        self.totals = Counters()
        self.steps: list[Step] = []  # the open step() contexts
        self.last_run = None
        self.started = 0.0
        self.operators = 0  # of the step in progress

    def counters(self):
        yield self.totals
        for step in self.steps:
            yield step.counters


_state = _State()


def current() -> _core.graph.Session:
    """The session of this process, made when the first operator runs (the target is resolved then)."""
    if _state.session is None:
        _state.machine = launch.machine_for()
        _state.session = _core.graph.Session(_state.machine)
        # Backward on the calling thread: one order of instructions, and the user's line is on its stack.
        torch.autograd.set_multithreading_enabled(False)
        _state.started = time.perf_counter()
    return _state.session


def view(tensor: torch.Tensor):
    """A tensor of the device as graph/ sees it."""
    return current().view(tensor.data_ptr(), memory.DTYPE_NAMES[tensor.dtype], tensor.size(), tensor.stride())


def count_executed(op: str) -> None:
    _state.operators += 1
    for counters in _state.counters():
        counters.executed[op] += 1
    if _state.session is not None and _state.session.instruction_count > MOST_INSTRUCTIONS:
        synchronize()


def count_fallback(op: str) -> None:
    for counters in _state.counters():
        counters.fallback[op] += 1


def count_transfer(size: int, to_device: bool) -> None:
    for counters in _state.counters():
        if to_device:
            counters.host_to_device_bytes += size
        else:
            counters.device_to_host_bytes += size


def synchronize(device=None) -> None:
    """Ends the step: its program is placed and timed. Nothing happens when nothing ran."""
    session = _state.session
    if session is None or session.instruction_count == 0:
        return
    options = launch.defaults
    instructions = session.instruction_count
    program = session.take_program()
    timing = program.finish(options.schedule, options.spill)
    described = [f"{_state.operators} operators"]
    run = launch.Run("torch step", described, _state.machine, options, 1, timing,
                     time.perf_counter() - _state.started, program if launch.keep_programs else None)
    _state.started = time.perf_counter()
    _state.operators = 0
    _state.last_run = run
    launch.remember(run)
    for counters in _state.counters():
        counters.runs = [*counters.runs, run][-256:]
        counters.multiply_accumulates += timing.multiply_accumulates
        counters.instructions += instructions
    for step in _state.steps:
        step.time_ns += run.time_ns


def last_run():
    """The Run of the last finished step, or None: time, engines, DMA, as of an NKI launch."""
    return _state.last_run


class Step:
    """`with trena.torch.step() as step:` measures what the device does inside.

    time_ns, time_us           device time: an estimate, see `evidence`
    instructions, multiply_accumulates, executed_ops, fallback_ops
    """

    evidence = EVIDENCE

    def __init__(self):
        self.counters = Counters()
        self.time_ns = 0.0

    def __enter__(self) -> Step:
        synchronize()
        _state.steps.append(self)
        return self

    def __exit__(self, *failure) -> None:
        try:
            synchronize()
        finally:
            _state.steps.remove(self)

    @property
    def time_us(self) -> float:
        return self.time_ns / 1e3

    @property
    def instructions(self) -> int:
        return self.counters.instructions

    @property
    def multiply_accumulates(self) -> int:
        return self.counters.multiply_accumulates

    @property
    def executed_ops(self) -> dict[str, int]:
        return dict(self.counters.executed)

    @property
    def fallback_ops(self) -> dict[str, int]:
        return dict(self.counters.fallback)

    def __str__(self) -> str:
        fallbacks = sum(self.counters.fallback.values())
        cpu = f", {fallbacks} operators on the CPU (not timed)" if fallbacks else ""
        return f"{launch.format_time(self.time_ns)}, {self.instructions:,} instructions{cpu}; {self.evidence}"


def step() -> Step:
    """Measures one training step, or any piece of a program, on the device's clock."""
    return Step()


def executed_ops() -> dict[str, int]:
    """Operators that ran as instructions of the device, with how often."""
    return dict(_state.totals.executed)


def fallback_ops() -> dict[str, int]:
    """Operators that ran on the CPU, with how often; empty under TRENA_STRICT=1."""
    return dict(_state.totals.fallback)


def clear_op_tracking() -> None:
    _state.totals.executed.clear()
    _state.totals.fallback.clear()


def reset(machine=None) -> None:
    """Forgets the session, so that the next operator resolves the target again. Finishes the step first."""
    synchronize()
    _state.session = None
