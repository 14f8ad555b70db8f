"""Decorators and launchers of the legacy API."""

from __future__ import annotations

import functools
import itertools
import math

from trena import errors
from trena import launch as _launch
from trena.nki import kernel as _kernel
from trena.nki import versions as _versions
from trena.nki_legacy import tile as _tile


class LegacyKernel(_kernel.Kernel):
    """A kernel whose tensors are tiles and whose grid may be any: kernel[b, h](…)."""

    def __init__(self, func, grid=(), platform_target=None):
        self.func = func
        self.grid = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
        self.platform_target = platform_target
        self.__name__ = _kernel.name_of(func)
        functools.update_wrapper(self, func)

    def check_version(self) -> None:
        if _versions.holds("no-legacy-kernels"):
            raise errors.UsageError("kernels of neuronxcc.nki are refused since NKI 0.4", id="nki-version",
                                    here=f"{self!r} with --nki-version {_versions.in_force()}",
                                    fix="name 0.1 to 0.3, or none")

    def prepared(self):
        self.check_version()
        # A grid of 0 is traced once: aws-neuron/nki-samples launches pipelined_attention as flash_fwd[0].
        sizes = tuple(max(1, int(n)) for n in self.grid)
        cores = max((n.count for n in self.grid if not isinstance(n, int)), default=1)
        return _Instances(self.func, sizes, cores), (cores,) if cores > 1 else ()


class _Instances:
    """Runs every instance of the grid, one after the other, on the core it belongs to."""

    def __init__(self, func, sizes, cores):
        self.func, self.sizes, self.cores = func, sizes, cores
        functools.update_wrapper(self, func)

    def __call__(self, *args, **kwargs):
        core = _launch.current()
        args = _tile.as_tile(list(args))
        kwargs = {name: _tile.as_tile(value) for name, value in kwargs.items()}
        core.launch.legacy_grid = self.sizes
        core.launch.any_output_memory = True
        core.launch.share_always = math.prod(self.sizes) > 1
        value = None
        try:
            for number, position in enumerate(itertools.product(*(range(n) for n in self.sizes))):
                if number % self.cores == core.index:
                    core.launch.legacy_position = position
                    core.shared_count = 0
                    value = self.func(*args, **kwargs)
                    _tile.flush()
            return _tile.as_tensor(value)
        finally:
            _tile.discard()


def jit(func=None, mode="auto", *, platform_target=None, grid=(), **ignored):
    """@nki.jit in all its forms; the mode changes nothing: every launch is simulated."""
    if func is None:
        return functools.partial(jit, mode=mode, platform_target=platform_target, grid=grid, **ignored)
    return LegacyKernel(_kernel.plain(func), grid, platform_target)


trace = jit


def _function_of(kernel):
    return kernel if isinstance(kernel, LegacyKernel) else LegacyKernel(_kernel.plain(kernel))


def baremetal(kernel=None, **ignored):
    """NumPy in, NumPy out."""
    return functools.partial(baremetal, **ignored) if kernel is None else _function_of(kernel)


def benchmark(kernel=None, **ignored):
    """As baremetal; then benchmark_result.nc_latency.get_latency_percentile(p) in µs."""
    return functools.partial(benchmark, **ignored) if kernel is None else _kernel._Benchmarked(_function_of(kernel))


def profile(func=None, **ignored):
    """As benchmark; the profile itself is `trena run --trace FILE`."""
    return benchmark(func, **ignored)


def simulate_kernel(kernel, *args, **kwargs):
    """nki.simulate_kernel(kernel, *arrays), nki.simulate_kernel(kernel[grid], *arrays)."""
    return _function_of(kernel)(*args, **kwargs)
