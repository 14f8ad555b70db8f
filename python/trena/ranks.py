"""Several ranks of one kernel in this process: each a launch of its own, which meet in nki.collectives."""

from __future__ import annotations

import functools
import time

from trena import _core, errors, launch
from trena.nki.kernel import name_of, plain


def simulate_ranks(kernel, target: str | None = None, *, server: str | None = None, ranks_per_chip: int = 0,
                   machine: str | None = None, set: tuple[str, ...] = (), time_only: bool = False,
                   schedule: str | None = None, spill: str | None = None):
    """`trena.simulate_ranks(kernel, target="trn2")([(a0, b0), (a1, b1)])` runs rank 0 and 1; a list of their Runs.

    kernel          a function, or one decorated with nki.jit; one physical core for each rank
    server          what joins the chips, such as "trn2.48xlarge"; left out: the first with such chips
    ranks_per_chip  neighbouring ranks share a chip; left out: one for each core
    The other arguments are those of `trena.simulate`. Each rank is timed alone: it does not wait for slower ones.
    """
    options = launch.defaults.merged(target=target, machine=machine, schedule=schedule, spill=spill,
                                     set=tuple(set) or None, time_only=time_only or None)
    function, name = plain(kernel), name_of(kernel)
    jit_target = getattr(kernel, "platform_target", None)

    def launcher(arguments) -> list[launch.Run]:
        started = time.perf_counter()
        world = len(arguments)
        if world == 0:
            raise errors.UsageError("a launch has at least one rank", id="collective-group", here="no arguments")
        network = _core.Network(launch.machine_for(options, jit_target), launch.hardware_directory(), server,
                                ranks_per_chip)
        baton = _core.Baton(world, "rank")
        works, binders, bodies = [], [], []
        for rank, args in enumerate(arguments):
            work = launch.Launch(options, jit_target, ())
            work.baton, work.first_member = baton, rank
            binder = launch.ArgumentBinder(work.program)
            bound, _ = launch.wrap_call(binder, function, args, {})
            works.append(work)
            binders.append(binder)
            bodies.append(functools.partial(_run_rank, rank, world, network, work, function, bound))
        values = launch.run_members(baton, bodies)
        return [launch.complete(f"{name} rank {rank}", binders[rank], works[rank], values[rank], started)
                for rank in range(world)]

    return launcher


def _run_rank(rank, world, network, work, function, args):
    _core.collectives.enter(rank, world, network)
    try:
        return work.run_core(0, function, args, {})
    finally:
        _core.collectives.leave()
