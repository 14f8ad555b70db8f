"""One launch of a kernel: the target, the arguments, the cores, and the Run that comes out.

Everything here happens once per launch or once per tensor, never per instruction.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import inspect
import json
import os
import threading
import time
import warnings

import numpy as np

from trena import _core, argument_types, dtypes, errors
from trena.errors import UsageError
from trena.findings import Finding, from_core, from_error, merged, unwritten_output

# ---- What was asked for ------------------------------------------------------------------------------


@dataclasses.dataclass
class Options:
    """How to launch. `None` means: not said, ask the next in line (see resolve_target)."""

    target: str | None = None  # trn1, inf2, trn2, trn3, or a name the hardware files know
    machine: str | None = None  # a hardware file; beats target
    set: tuple[str, ...] = ()  # "core.sbuf_kib=256"
    lnc: int | None = None
    time_only: bool = False
    schedule: str = "list"  # as a compiler orders the queues; "program": as written
    spill: str = "auto"
    values: str = "program-order"  # "hardware-order": once more as the clock has it (core/hardware_order.h)
    go_on: bool = False  # note what is refused in `findings` and go on, as `trena check` does
    unwritten: str = "error"  # a read of bytes nobody wrote; "sentinel": NaN or 4, as the vendor's simulator

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Options:
        fields = json.loads(text)
        fields["set"] = tuple(fields.get("set", ()))
        return cls(**fields)

    def merged(self, **changes) -> Options:
        """A copy with what is given (not None) replaced."""
        return dataclasses.replace(self, **{k: v for k, v in changes.items() if v is not None})


OPTIONS_VARIABLE = "TRENA_RUN_OPTIONS"  # how `trena run` hands its options to child processes
defaults = Options()
if os.environ.get(OPTIONS_VARIABLE):
    defaults = Options.from_json(os.environ[OPTIONS_VARIABLE])

DEFAULT_TARGET = "trn3"  # as the vendor's simulator (nki.md §1.5)
_GENERATIONS = {"gen2": "trn1", "gen3": "trn2", "gen4": "trn3"}


def hardware_directory() -> str:
    """Where the machines are described: beside the package when installed, at the root of a source tree."""
    here = os.path.dirname(os.path.abspath(__file__))
    for candidate in (os.path.join(here, "hardware"), os.path.join(here, "..", "..", "hardware")):
        if os.path.isdir(candidate):
            return os.path.abspath(candidate)
    raise errors.MachineError(
        "Trena needs its hardware files", id="machine-unknown", here=f"no hardware/ beside {here}"
    )


def resolve_target(options: Options, jit_target: str | None = None) -> str:
    """--machine, --target, NEURON_PLATFORM_TARGET_OVERRIDE, jit(platform_target=), trn3: the first that speaks.

    Resolved at launch, because scripts write the variable while they are imported (nki.md §6.2).
    """
    wanted = options.machine or options.target
    wanted = wanted or os.environ.get("NEURON_PLATFORM_TARGET_OVERRIDE") or jit_target or DEFAULT_TARGET
    return _GENERATIONS.get(wanted.lower(), wanted)


@functools.lru_cache(maxsize=64)
def _machine(name: str, settings: tuple[str, ...]):
    machine = _core.Machine.find(name, hardware_directory())
    for assignment in settings:
        machine.set(assignment)
    return machine


def machine_for(options: Options | None = None, jit_target: str | None = None):
    """The machine a launch with these options would run on."""
    options = options or defaults
    return _machine(resolve_target(options, jit_target), tuple(options.set))


def changed_machine(machine, changes):
    """A copy of `machine` with KEY=VALUE applied; target=NAME, first, starts from another chip instead."""
    changed = machine.copy()
    for position, change in enumerate(changes):
        key, _, value = change.partition("=")
        if key == "target" and position == 0 and value:
            changed = _core.Machine.find(_GENERATIONS.get(value.lower(), value), hardware_directory())
        else:
            changed.set(change)
    return changed


def figures(machine) -> dict:
    """The numbers of a machine by key."""
    numbers = {}
    for row in machine.describe():
        try:
            value = float(row[1])
        except ValueError:
            continue
        numbers[row[0]] = int(value) if value == int(value) else value
    return numbers


_figure_tables: dict = {}


def read_figure(key: str):
    """A figure of the running kernel's machine, or of the one a launch would use now. Read once per machine."""
    core = current()
    machine = core.launch.machine if core is not None else machine_for()
    table = _figure_tables.get(id(machine))
    if table is None or table[0] is not machine:
        table = _figure_tables[id(machine)] = (machine, figures(machine))
    value = table[1][key]
    if core is not None:
        core.launch.readings[key] = value
    return value


def _outdated(readings: dict, machine) -> list[str]:
    """What a kernel was told while it was traced and `machine` would answer otherwise."""
    now = figures(machine) if readings else {}
    return [f"the kernel asked for {key} while it was traced ({value}) and would now be told {now.get(key)}: "
            "--set instead of a what-if traces it again" for key, value in readings.items() if now.get(key) != value]


# ---- The kernel being traced -------------------------------------------------------------------------

_thread = threading.local()


def current() -> CoreContext | None:
    """The core whose kernel runs on this thread, or None outside a kernel."""
    return getattr(_thread, "core", None)


def require(what: str) -> CoreContext:
    """The running core; `what` names the caller in the complaint when there is none."""
    core = getattr(_thread, "core", None)
    if core is None:
        raise UsageError(
            "NKI instructions and tensors exist only inside a kernel that is being launched",
            id="nki-outside-kernel",
            here=f"{what} was called while no kernel runs on this thread",
            fix="decorate the function with @nki.jit and call it, or use nki.simulate",
        )
    return core


class CoreContext:
    """What one core of a launch knows: its number, its program, its shared allocations so far."""

    __slots__ = ("launch", "index", "program", "shared_count", "names")

    def __init__(self, launch: Launch, index: int):
        self.launch = launch
        self.index = index
        self.program = launch.program
        self.shared_count = 0
        self.names = {}

    def tensor(self, space: str, role: str, shape, dtype, name: str = "", address=None):
        if role == "shared" and (self.launch.core_count > 1 or self.launch.share_always):
            return self._shared_tensor(shape, dtype, name)
        return self.program.tensor(self.index, space, dtype, shape, name, address, role)

    def _shared_tensor(self, shape, dtype, name):
        """The k-th shared allocation of every core is one tensor (nki.md §6.2)."""
        position, self.shared_count = self.shared_count, self.shared_count + 1
        shared = self.launch.shared
        if position == len(shared):
            tensor = self.program.tensor(self.index, "hbm", dtype, shape, name, None, "shared")
            shared.append((tuple(shape), dtype, tensor))
        known_shape, known_dtype, tensor = shared[position]
        if known_shape != tuple(shape) or known_dtype != dtype:
            raise errors.Hazard(
                "the cores of one kernel make the same shared_hbm tensors in the same order",
                id="lnc-divergence",
                here=f"core {self.index} makes {tuple(shape)} {dtype} as shared tensor {position}",
                limit=f"another core made {known_shape} {known_dtype} there",
            )
        return tensor


class Launch:
    """One kernel on one machine: made, run, finished."""

    def __init__(self, options: Options, jit_target: str | None, grid: tuple[int, ...]):
        if options.time_only and options.values == "hardware-order":
            raise UsageError("hardware-order needs values", id="values-time-only",
                             here="--values=hardware-order with --time-only", fix="leave one of them out")
        self.options = options
        self.machine = machine_for(options, jit_target)
        self.grid = grid
        self.core_count = grid[0] if grid else 1
        self.shared: list = []
        self.readings: dict[str, object] = {}  # figures that the kernel asked for
        self.any_output_memory = False  # may a kernel return tensors of nl.hbm? The legacy API allows it
        self.share_always = False  # several instances on one core: the k-th shared tensor of each is one tensor
        self.program = _core.Program(self.machine, self.core_count, not options.time_only,
                                     options.unwritten == "sentinel", options.go_on,
                                     options.values == "hardware-order")
        self.baton = _core.Baton(self.core_count) if self.core_count > 1 else None
        self.first_member = 0  # of this launch's cores among the baton's members

    def run(self, function, args, kwargs):
        """Runs the kernel on every core; the value of core 0."""
        if self.core_count == 1:
            return self.run_core(0, function, args, kwargs)
        bodies = [functools.partial(self.run_core, k, function, args, kwargs) for k in range(self.core_count)]
        return run_members(self.baton, bodies)[0]

    def run_core(self, index, function, args, kwargs):
        previous = current()
        _thread.core = CoreContext(self, index)
        errors._set_device_name(self.machine.name)
        self.program.begin(index, self.baton, self.first_member + index)
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            named = argument_types.translate(error)
            if named is None:
                raise
            raise named.with_traceback(error.__traceback__) from None
        finally:
            self.program.end()
            _thread.core = previous


def run_members(baton, bodies) -> list:
    """Calls each body on a thread of its own, one at a time as the baton says; pdb still works in the first."""
    results, failures = [None] * len(bodies), {}

    def member(index):
        try:
            baton.start(index)
            results[index] = bodies[index]()
            baton.finish(index)
        except _core.Abandoned:
            baton.fail(index)
        except BaseException as error:  # handed to the caller's thread
            failures[index] = error
            baton.fail(index)

    others = [threading.Thread(target=member, args=(k,), daemon=True) for k in range(1, len(bodies))]
    for thread in others:
        thread.start()
    member(0)
    for thread in others:
        thread.join()
    if failures:
        raise failures[min(failures)]  # of the same member every time
    return results


# ---- Arguments ---------------------------------------------------------------------------------------


class ArgumentBinder:
    """Turns the caller's arrays into HBM tensors, and results into arrays of the caller's kind."""

    def __init__(self, program):
        self.program = program
        self.framework = "numpy"
        self.on_neuron = False  # some argument lies on PyTorch's device neuron: so do the results
        self.originals: list[tuple] = []  # (tensor, the caller's array)
        self.copies: list[tuple[np.ndarray, np.ndarray]] = []  # (caller's strided array, our packed copy)
        self.described: list[str] = []
        self.results: list = []  # tensors that became arrays of the caller

    def wrap(self, value, name: str):
        """`value` with every array in it replaced by a tensor; other values pass unchanged."""
        if isinstance(value, np.ndarray):
            return self._array(value, name, value)
        if isinstance(value, (int, float, str, bool, type(None), _core.Tensor, _core.DType)):
            return value
        module = type(value).__module__
        if module.startswith("torch") and _is_torch_tensor(value):
            self.framework = "torch"
            self.on_neuron |= value.device.type == "neuron"
            return self._array(_torch_bytes(value), name, value)
        if module.startswith("jax") and hasattr(value, "__array__"):
            self.framework = "jax"
            return self._array(np.array(value), name, value)
        if isinstance(value, (list, tuple)):
            items = [self.wrap(item, f"{name}[{k}]") for k, item in enumerate(value)]
            return _rebuild_sequence(value, items)
        if isinstance(value, dict):
            return {key: self.wrap(item, f"{name}[{key!r}]") for key, item in value.items()}
        return self._object(value, name)

    def _object(self, value, name):
        """NKIObjects and dataclasses: a shallow copy when an attribute holds an array."""
        from trena.nki.objects import NKIObject

        if isinstance(value, type) or not (isinstance(value, NKIObject) or dataclasses.is_dataclass(value)):
            return value
        wrapped = {k: self.wrap(v, f"{name}.{k}") for k, v in vars(value).items()}
        if all(wrapped[key] is old for key, old in vars(value).items()):
            return value
        twin = object.__new__(type(value))
        for key, item in wrapped.items():
            object.__setattr__(twin, key, item)
        return twin

    def _array(self, array: np.ndarray, name: str, original):
        dtype = dtypes.as_dtype(_torch_dtype(original) or array.dtype)
        packed = array
        flags = array.flags
        if not (flags.c_contiguous and flags.writeable and flags.aligned and array.dtype.isnative):
            packed = np.array(array, array.dtype.newbyteorder("="), order="C", copy=True)
            if array.flags.writeable:
                self.copies.append((array, packed))
        tensor = self.program.external(packed, dtype, packed.shape, name, "input")
        self.originals.append((tensor, original))
        self.described.append(f"{name}[{','.join(map(str, array.shape))}]{dtypes.short(dtype)}")
        return tensor

    def write_back(self) -> None:
        """In-place results reach callers whose arrays had to be packed first."""
        for array, packed in self.copies:
            if not np.shares_memory(array, packed):
                array[...] = packed

    def unwrap(self, value):
        """Results as arrays of the caller's kind."""
        if isinstance(value, _core.Tensor):
            return self._result(value)
        if isinstance(value, (list, tuple)):
            return _rebuild_sequence(value, [self.unwrap(item) for item in value])
        if isinstance(value, dict):
            return {key: self.unwrap(item) for key, item in value.items()}
        return value

    def _result(self, tensor):
        for argument, original in self.originals:
            if tensor.same_buffer(argument) and tensor.shape == argument.shape and tensor.offset == 0:
                return original  # the kernel returned its argument: so do we
        array = to_array(tensor, share=not any(tensor.same_buffer(other) for other in self.results))
        self.results.append(tensor)
        if self.framework == "torch":
            result = _to_torch(array, tensor.dtype)
            return result.to("neuron") if self.on_neuron else result
        if self.framework == "jax":
            import jax.numpy

            return jax.numpy.asarray(array)
        return array


def to_array(tensor, share: bool = False) -> np.ndarray:
    """The values of a tensor in the NumPy type that stores its dtype; copied, unless it may share its own bytes."""
    data, shape, dtype = _core.to_numpy(tensor, share)
    return np.frombuffer(data, dtype=dtypes.as_dtype(dtype).dtype).reshape(tuple(shape))


def _rebuild_sequence(like, items):
    if isinstance(like, tuple):
        return type(like)(*items) if hasattr(like, "_fields") else tuple(items)
    return items


def _is_torch_tensor(value) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _torch_bytes(tensor) -> np.ndarray:
    """The tensor's bytes as a NumPy array of the same shape, without a copy where memory allows it."""
    import torch

    if tensor.device.type not in ("cpu", "neuron") or tensor.layout is not torch.strided:
        raise UsageError("a kernel takes dense tensors on the host or on device neuron", id="argument-type",
                         here=f"a {tensor.layout} tensor on device {tensor.device}")
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.device.type != "cpu":
        from trena import torch as trena_torch

        tensor = trena_torch.host_alias(tensor)
    storage = dtypes.as_dtype(tensor.dtype).dtype
    if storage.kind in "biuf" and storage.name in {"bool", "int8", "uint8", "int16", "int32", "int64",
                                                     "float16", "float32", "float64"}:
        return tensor.numpy()
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[storage.itemsize]
    return tensor.view(bits).numpy().view(storage)


def _torch_dtype(original):
    return original.dtype if type(original).__module__.startswith("torch") else None


def _to_torch(array: np.ndarray, dtype):
    import torch

    name = str(dtype)
    wanted = getattr(torch, name, None)
    if wanted is None:
        return torch.from_numpy(np.array(array))
    bits = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}[array.dtype.itemsize]
    return torch.from_numpy(np.array(array).view(bits)).view(wanted)


# ---- Results -----------------------------------------------------------------------------------------


class Run:
    """What one launch produced: outputs, time, engines, stalls. Times are of the simulated device."""

    def __init__(self, name, described, machine, options, core_count, timing, host_seconds, program=None):
        self.name = name
        self.arguments = described
        self.results: list[str] = []
        self.outputs = None
        self.machine = machine
        self.options = options
        self.core_count = core_count
        self.timing = timing  # _core.Run: everything the clock knows
        self.host_seconds = host_seconds
        self.interrupted = False
        self.findings: list[Finding] = []  # mistakes that did not stop it
        self.program = program  # what ran, for what_if(); None in `launch.runs` unless keep_programs
        self.readings: dict[str, object] = {}  # figures of the machine that the kernel asked for while traced
        self.changes: tuple[str, ...] = ()  # of what_if()
        self.notes: list[str] = []  # what a reader of the figures should know

    def what_if(self, *changes: str) -> Run:
        """The same program placed and timed on a changed machine: no tracing, no values.

        changes  "core.sbuf_kib=256", as for --set; "target=trn3" starts from another chip
        The result's `outputs` are this run's. Errors: machine-override, machine-unknown; what the changed machine
        refuses (sbuf-capacity, …) at the line that asked for it; what-if-program when this run kept no program.
        """
        if self.program is None:
            raise UsageError(
                "what_if needs the program of the run", id="what-if-program",
                here=f"{self.name}: a run kept by trena.runs, or a rank, has only its figures",
                fix="use the run that trena.simulate(kernel)(…) returned, or trena run --what-if",
            )
        started = time.perf_counter()
        machine = changed_machine(self.machine, changes)
        errors._set_device_name(machine.name)
        timing = self.program.time_on(machine, self.options.schedule, self.options.spill)
        run = Run(self.name, self.arguments, machine, self.options, self.core_count, timing,
                  time.perf_counter() - started, self.program)
        run.results, run.outputs, run.readings, run.changes = self.results, self.outputs, self.readings, changes
        run.notes = _outdated(self.readings, machine)
        return run

    def without_values(self) -> Run:
        """Its figures only: neither outputs nor program."""
        twin = copy.copy(self)
        twin.outputs = twin.program = None
        return twin

    @property
    def time_ns(self) -> float:
        return self.timing.time_ns

    @property
    def time_us(self) -> float:
        return self.timing.time_ns / 1e3

    def __getattr__(self, name):
        # engines, stalls, memory, to_perfetto … : the names of core/run.h.
        if name.startswith("_") or name == "timing":
            raise AttributeError(name)
        return getattr(self.timing, name)

    def as_dict(self) -> dict:
        """The numbers of this run for machines; `trena run --json` writes a list of these."""
        return {
            "name": self.name,
            "arguments": self.arguments,
            "results": self.results,
            "machine": self.machine.name,
            "machine_hash": f"{self.machine.hash:016x}",
            "machine_changes": list(self.machine.overrides),
            "cores": self.core_count,
            "schedule": self.options.schedule,
            "spill": self.options.spill,
            "values": self.options.values,
            "time_ns": self.time_ns,
            "host_seconds": self.host_seconds,
            "interrupted": self.interrupted,
            "timing": self.timing.summary(self.machine),
            "findings": [finding.as_dict() for finding in self.findings],
            "critical_path": self.timing.critical_path(),
        }

    def kind(self) -> tuple:
        """Equal for launches that a summary shows as one."""
        return (self.name, tuple(self.arguments), self.machine.name, self.core_count)

    def __repr__(self):
        return f"<trena.Run {self.line()}>"

    def line(self) -> str:
        """One line that says what ran where and how long it took."""
        arrow = f" → {' '.join(self.results)}" if self.results else ""
        cores = f"{self.core_count} core" + ("s" if self.core_count > 1 else "")
        order = "program order" if self.options.schedule == "program" else f"{self.options.schedule} order"
        if self.options.values == "hardware-order":
            order += ", values in hardware order"
        state = "  interrupted" if self.interrupted else ""
        return (
            f"{self.name}  {' '.join(self.arguments)}{arrow}  {self.machine.name} · {cores} · {order}"
            f"  time {format_time(self.time_ns)}{state}"
        )


def format_time(time_ns: float) -> str:
    """412.6 µs, 1.234 ms, 87 ns: four significant digits and the unit people would use."""
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if time_ns >= scale:
            value = time_ns / scale
            return f"{value:.{max(0, 3 - len(str(int(value))) + 1)}f} {unit}"
    return f"{time_ns:.0f} ns"


# The launches of this process, oldest first, for the summary under a script's own output. Each holds only
# what the clock said; a run's outputs belong to the caller. Bounded, because a loop may launch thousands.
runs: collections.deque[Run] = collections.deque(maxlen=256)
launch_count = 0
findings: list[Finding] = []  # of all launches, while `trena check` looks for them
keep_programs = False  # then the last run of each kernel and shapes in `runs` can still what_if()


def remember(run: Run) -> None:
    """Puts a run on `runs`."""
    global launch_count
    launch_count += 1
    if not keep_programs:
        runs.append(run.without_values())
        return
    for k, earlier in enumerate(runs):
        if earlier.program is not None and earlier.kind() == run.kind():
            runs[k] = earlier.without_values()
    twin = run.without_values()
    twin.program = run.program
    runs.append(twin)


def launch(kernel_name, function, grid, args, kwargs, *, options=None, jit_target=None) -> Run:
    """Launches `function` with the caller's arrays. The Run's `outputs` are what the kernel returned."""
    options = options or defaults
    _check_environment()
    if options.lnc is not None and not grid:
        grid = (options.lnc,) if options.lnc > 1 else ()
    started = time.perf_counter()
    work = Launch(options, jit_target, grid)
    binder = ArgumentBinder(work.program)
    bound_args, bound_kwargs = wrap_call(binder, function, args, kwargs)
    try:
        with _progress(kernel_name, work.program):
            value = work.run(function, bound_args, bound_kwargs)
    except KeyboardInterrupt:
        _record_interrupted(kernel_name, binder, work, started)
        raise
    except errors.Error as error:
        _note_failure(kernel_name, work, error)
        raise
    if inspect.isgenerator(value) or inspect.iscoroutine(value):
        value.close()
        raise UsageError("a kernel is a plain function: a generator or coroutine has not run yet",
                         id="kernel-generator", here=f"{kernel_name} returns {value!r}",
                         fix="yield in helpers only, return from the kernel")
    if not work.any_output_memory:
        _check_output_memory(value, binder)
    return complete(kernel_name, binder, work, value, started)


def complete(kernel_name, binder, work, value, started) -> Run:
    """Times what the kernel recorded, and hands its results back as the caller's kind of arrays."""
    options = work.options
    try:
        timing = work.program.finish(options.schedule, options.spill)
    except errors.Error as error:
        _note_failure(kernel_name, work, error)
        raise
    found = _findings_of(kernel_name, work, timing, value)
    if options.go_on:
        findings.extend(found)
    run = _record(kernel_name, binder, work, timing, started, [_describe(item) for item in _tensors(value)],
                  findings=found)
    if not options.time_only:
        binder.write_back()
        run.outputs = binder.unwrap(value)
    return run


def _progress(kernel_name, program):
    from trena.report.progress import Progress

    return Progress(kernel_name, lambda: program.instruction_count)


def wrap_call(binder, function, args, kwargs):
    names = _parameter_names(function)
    wrapped = [binder.wrap(value, names[k] if k < len(names) else f"arg{k}") for k, value in enumerate(args)]
    return wrapped, {key: binder.wrap(value, key) for key, value in kwargs.items()}


@functools.lru_cache(maxsize=1024)
def _parameter_names(function) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return ()


def _record(kernel_name, binder, work, timing, started, results=(), interrupted=False,
            findings=()) -> Run:
    run = Run(kernel_name, binder.described, work.machine, work.options, work.core_count, timing,
              time.perf_counter() - started, work.program)
    run.results, run.interrupted, run.readings = list(results), interrupted, work.readings
    run.findings = list(findings)
    remember(run)
    return run


def _findings_of(kernel_name, work, timing, value) -> list[Finding]:
    found = from_core(work.program.findings + timing.findings, kernel_name)
    if not work.options.time_only:
        found += [unwritten_output(tensor, kernel_name) for tensor in _tensors(value)
                  if not tensor.is_indirect() and not tensor.is_written()]
    return found


def _note_failure(kernel_name, work, error) -> None:
    """A kernel that cannot go on: what was found in it so far, and why it ended."""
    global launch_count
    if not work.options.go_on or isinstance(error, errors.NotModelled):
        return
    launch_count += 1
    error.noted = True
    findings.extend(from_core(work.program.findings, kernel_name))
    findings.append(from_error(error, kernel_name))


def _record_interrupted(kernel_name, binder, work, started) -> None:
    """What is known so far is worth printing; if it cannot be timed, nothing is."""
    try:
        timing = work.program.finish(work.options.schedule, work.options.spill)
    except errors.Error:
        return
    _record(kernel_name, binder, work, timing, started, interrupted=True)


def _tensors(value):
    if isinstance(value, _core.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _describe(tensor) -> str:
    return f"{tensor.name}[{','.join(map(str, tensor.shape))}]{dtypes.short(tensor.dtype)}"


def _check_output_memory(value, binder) -> None:
    from trena.nki import versions

    for tensor in _tensors(value):
        argument = any(tensor.same_buffer(a) for a, _ in binder.originals)
        place = {"private_hbm": "hbm"}.get(str(tensor.buffer), str(tensor.buffer))
        if place != "shared_hbm" and not argument:
            if versions.holds("shared-outputs"):
                raise UsageError("outputs of a kernel are in nl.shared_hbm since NKI 0.3", id="nki-version",
                                 here=f"{tensor.name or 'an output'} is in nl.{place}", fix="buffer=nl.shared_hbm")
            warnings.warn(
                f"{tensor.name or 'an output'} is in nl.{place}: the device wants outputs in nl.shared_hbm",
                stacklevel=4,
            )


# Switches of the vendor's simulator and compiler that would change what a kernel computes or is told.
_SWITCHES = {
    "NKI_PRECISE_FP": (("", "1"), "values of narrow types kept in float32; Trena's are the device's"),
    "NKI_DMA_TRANSPOSE_AS_PE_TRANSPOSE": (("", "0", "false"), "dma_transpose on the tensor engine, which takes a bank "
                                          "of PSUM"),
}


def _check_environment() -> None:
    for name, (fine, what) in _SWITCHES.items():
        value = os.environ.get(name, "")
        if value.lower() not in fine:
            raise errors.NotModelled(f"not modelled: {name}={value}", id="not-modelled", here=what,
                                     fix=f"unset {name}")


def simulate(kernel, target: str | None = None, *, lnc: int | None = None, machine: str | None = None,
             set: tuple[str, ...] = (), time_only: bool = False, schedule: str | None = None,
             spill: str | None = None, unwritten: str | None = None, go_on: bool | None = None,
             values: str | None = None):
    """`trena.simulate(kernel, target="trn2")(a, b)` launches `kernel` and returns its Run.

    kernel     a function, or one decorated with nki.jit, with or without [lnc]
    target     trn1, inf2, trn2, trn3; machine= names a hardware file instead
    set        changes to the machine, such as ("core.sbuf_kib=256",)
    time_only  the clock without values; outputs is then None
    unwritten  "error" (default), or "sentinel": bytes nobody wrote read as NaN, or 4 in integers
    values     "program-order" (default), or "hardware-order": outputs are what the clock's order makes of them
    """
    options = defaults.merged(target=target, machine=machine, lnc=lnc, schedule=schedule, spill=spill,
                              unwritten=unwritten, go_on=go_on, values=values,
                              set=tuple(set) or None, time_only=time_only or None)
    function, grid = kernel.prepared() if hasattr(kernel, "prepared") else (kernel, ())
    grid = grid or (() if lnc in (None, 1) else (lnc,))
    jit_target = getattr(kernel, "platform_target", None)
    name = getattr(function, "__name__", type(function).__name__)

    def launcher(*args, **kwargs) -> Run:
        return launch(name, function, grid, args, kwargs, options=options, jit_target=jit_target)

    return launcher


def check(kernel, target: str | None = None, *, lnc: int | None = None, machine: str | None = None,
          set: tuple[str, ...] = (), time_only: bool = False, spill: str | None = None):
    """`trena.check(kernel, target="trn2")(a, b)` launches `kernel` and returns its mistakes: a list of Finding.

    As `trena check` does for a script: refused instructions are left out and the kernel goes on.
    """
    def launcher(*args, **kwargs) -> list[Finding]:
        first = len(findings)
        try:
            simulate(kernel, target, lnc=lnc, machine=machine, set=set, time_only=time_only, spill=spill,
                     go_on=True)(*args, **kwargs)
        except errors.NotModelled:
            raise
        except errors.Error as error:
            if not getattr(error, "noted", False):
                raise
        found = findings[first:]
        del findings[first:]
        return merged(found)

    return launcher
