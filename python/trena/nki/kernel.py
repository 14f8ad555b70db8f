"""nki.jit and what surrounds it: the launch objects a script sees."""

from __future__ import annotations

import functools
import os

from trena import _core, errors
from trena import launch as _launch
from trena.nki import versions as _versions


def plain(kernel):
    """The function inside a kernel or one of its launchers."""
    return kernel if isinstance(kernel, functools.partial) else getattr(kernel, "func", kernel)


def name_of(function) -> str:
    """A function's name; a functools.partial or an object that can be called has none of its own."""
    return getattr(plain(getattr(function, "func", function)), "__name__", type(function).__name__)


class Kernel:
    """A function that runs on the simulated device. `kernel[lnc]` is the same kernel on `lnc` cores.

    Keeps the name, signature and source of the function (`func`, `__wrapped__`). Called inside another
    kernel it is a plain call (nki.md §6.2).
    """

    schedule: tuple[tuple[str, str], ...] = ()  # of with_schedule(): (later, earlier)

    def __init__(self, func, grid=(), platform_target: str | None = None):
        self.func = func
        self.grid = _checked_grid(grid)
        self.platform_target = platform_target
        self.__name__ = name_of(func)
        functools.update_wrapper(self, func)

    def __call__(self, *args, **kwargs):
        if _launch.current() is not None:
            return self.func(*args, **kwargs)
        return self.run(*args, **kwargs).outputs

    def run(self, *args, **kwargs) -> _launch.Run:
        """Launches and returns the whole Run instead of its outputs only."""
        function, grid = self.prepared()
        return _launch.launch(self.__name__, function, grid, args, kwargs, jit_target=self.platform_target)

    def check_version(self) -> None:
        """Are there such kernels in the version of NKI that was named?"""
        if _versions.in_force() is not None and not _versions.holds("current-api"):
            raise errors.UsageError("NKI 0.1 is neuronxcc.nki alone", id="nki-version",
                                    here=f"a kernel of nki: {self!r}", fix="name a later version, or none")

    def prepared(self):
        """What a launch calls on every core, and the grid of cores."""
        self.check_version()
        if not self.schedule:
            return self.func, self.grid

        @functools.wraps(self.func)
        def scheduled(*args, **kwargs):
            value = self.func(*args, **kwargs)
            _core.order_by_name(list(self.schedule))
            return value

        return scheduled, self.grid

    def __getitem__(self, grid):
        twin = type(self)(self.func, grid, self.platform_target)
        twin.schedule = self.schedule
        return twin

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self):
        return f"<nki kernel {self.__name__}{list(self.grid) if self.grid else ''}>"

    def with_schedule(self, schedule) -> Kernel:
        """The same kernel with more order: pairs (later, earlier) or (later, [earlier, …]) of the instructions' name=.

        An edge must agree with the order in which the kernel calls the two; the reverse is not modelled.
        """
        pairs = [(later, one) for later, earlier in schedule
                 for one in ([earlier] if isinstance(earlier, str) else earlier)]
        twin = type(self)(self.func, self.grid, self.platform_target)
        twin.schedule = (*self.schedule, *pairs)
        return twin


def _checked_grid(grid) -> tuple[int, ...]:
    cores = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
    if len(cores) > 1 or any(not isinstance(n, int) or n not in (1, 2) for n in cores):
        raise errors.UsageError(
            "kernel[lnc] names the number of physical cores of one logical core",
            id="lnc-grid", here=f"kernel[{', '.join(map(str, cores))}]", limit="1 or 2",
        )
    return cores


def _function_of(kernel):
    return kernel if isinstance(kernel, Kernel) else Kernel(plain(kernel))


def jit(fn=None, *, platform_target: str | None = None, grid=(), **ignored):
    """Makes a function an NKI kernel: `@nki.jit`, `@nki.jit()`, `@nki.jit(platform_target="trn2")`.

    platform_target   machine to run on when neither --target nor NEURON_PLATFORM_TARGET_OVERRIDE names one
    grid              the default of kernel[lnc]
    Other keywords of the vendor's versions (mode, debug_kernel, …) are accepted and change nothing.
    """
    if fn is None:
        return functools.partial(jit, platform_target=platform_target, grid=grid, **ignored)
    return Kernel(plain(fn), grid, platform_target)


class _Simulated:
    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        functools.update_wrapper(self, kernel.func)

    def __call__(self, *args, **kwargs):
        return self.kernel(*args, **kwargs)

    def __getitem__(self, grid):
        return _Simulated(self.kernel[grid])


def simulate(kernel):
    """`nki.simulate(kernel)(a, b)`, `nki.simulate(kernel[2])(a, b)` and `nki.simulate(kernel)[2](a, b)`.

    Takes jitted and plain functions, NumPy arrays and torch tensors; returns arrays of the caller's kind.
    """
    return _Simulated(_function_of(kernel))


class _CpuSimulated(_Simulated):
    """As _Simulated; the target is NKI_NC_VERSION at the time of the call (nki.md §6.5), and unwritten bytes read as
    the vendor's sentinel: library kernels move whole tiles of which they use a part."""

    def __call__(self, *args, **kwargs):
        target = os.environ.get("NKI_NC_VERSION") or None
        try:
            return _launch.simulate(self.kernel, target=target, unwritten="sentinel")(*args, **kwargs).outputs
        except AssertionError as error:
            # What the vendor's compiler prefixes to a kernel's own assertions; negative tests look for it.
            raise type(error)(f"[NCC_INKI016] Kernel validation exception: {error}") from error

    def __getitem__(self, grid):
        return _CpuSimulated(self.kernel[grid])


def cpu_simulate(kernel):
    """`nki.cpu_simulate(kernel)[lnc](**arrays)`, the entry of kernel libraries' simulation mode."""
    return _CpuSimulated(_function_of(kernel))


class _Latency:
    """Every percentile is the same: the simulated device has no jitter. Microseconds."""

    def __init__(self, time_us: float):
        self.time_us = time_us

    def get_latency_percentile(self, percentile: float) -> float:
        return self.time_us


class BenchmarkResult:
    def __init__(self, run: _launch.Run):
        self.run = run
        self.nc_latency = _Latency(run.time_us)


class _Benchmarked(_Simulated):
    """A kernel that remembers the time of its last call in `benchmark_result`."""

    benchmark_result: BenchmarkResult | None = None

    def __call__(self, *args, **kwargs):
        if _launch.current() is not None:
            return self.kernel(*args, **kwargs)
        run = self.kernel.run(*args, **kwargs)
        self.benchmark_result = BenchmarkResult(run)
        return run.outputs

    def __getitem__(self, grid):
        return _Benchmarked(self.kernel[grid])


def benchmark(kernel=None, **ignored):
    """`nki.benchmark(kernel)(a, b)`; then `.benchmark_result.nc_latency.get_latency_percentile(50)` in µs.

    warmup, iters, save_neff_name and the like are accepted: one simulated launch is exact.
    """
    return functools.partial(benchmark, **ignored) if kernel is None else _Benchmarked(_function_of(kernel))


def profile(kernel=None, **ignored):
    """As benchmark; the profile itself is `trena run --trace FILE`."""
    return benchmark(kernel, **ignored)


def baremetal(kernel=None, **ignored):
    """`nki.baremetal(kernel)(a, b)`: NumPy in, NumPy out."""
    return functools.partial(baremetal, **ignored) if kernel is None else _Simulated(_function_of(kernel))
