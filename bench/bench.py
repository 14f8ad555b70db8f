"""`make bench`: what Trena costs its host, as ratios to peers measured in the same run.

Prints a table and writes build/bench.json: host, and rows of name, value, unit, against, ratio, bar, met. Every time
is the best of several repeats of wall-clock time. Nothing here is a test: a busy host misses bars that an idle one
meets.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time

# NumPy's BLAS chooses its own kernel for this host; the variables would force another.
for _variable in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(_variable, None)

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, HERE)
if os.path.isdir(os.path.join(ROOT, "build", "python", "trena")):  # a plain CMake build of the source tree
    sys.path.insert(0, os.path.join(ROOT, "python"))

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402

import eager  # noqa: E402
import trena  # noqa: E402
import trena.nki as nki  # noqa: E402
import trena.nki.isa as nisa  # noqa: E402
import trena.nki.language as nl  # noqa: E402
from kernels import attention, matmul, small  # noqa: E402
from trena import _core, launch  # noqa: E402

TARGET = "trn2"
SIZE = 4096  # of the square product


# OpenBLAS threads stay awake for 2^28 clock ticks after their work (0.12 s at 2.3 GHz), and would take the CPUs of the
# other side.
REST_SECONDS = 0.3


def best_of(repeats, function):
    """(least seconds, last result)"""
    least, result = float("inf"), None
    for _ in range(repeats):
        time.sleep(REST_SECONDS)
        start = time.perf_counter()
        result = function()
        least = min(least, time.perf_counter() - start)
    return least, result


def row(name, value, unit, against, ratio, bar, met):
    return {"name": name, "value": value, "unit": unit, "against": against, "ratio": ratio, "bar": bar, "met": met}


def at_most(name, value, unit, limit):
    return row(name, value, unit, f"limit {limit:g} {unit}", value / limit, f"<= {limit:g} {unit}", value <= limit)


def at_least(name, value, unit, limit):
    return row(name, value, unit, f"limit {limit:g} {unit}", value / limit, f">= {limit:g} {unit}", value >= limit)


def simulated(kernel, *arrays, **options):
    return trena.simulate(kernel, target=TARGET, **options)(*arrays)


# ---- Time only ---------------------------------------------------------------------------------------


def time_only_matmul(repeats):
    kernel = matmul.make(nki, nisa, nl)["blocked"]
    operand = np.zeros((SIZE, SIZE), ml_dtypes.bfloat16)
    seconds, _ = best_of(repeats, lambda: simulated(kernel, operand, operand, time_only=True))
    return [at_most("time-only-matmul-4096", seconds, "s", 0.15)]


def traced(kernel, arrays):
    """The program of one launch without values, as the clock gets it."""
    work = launch.Launch(launch.Options(target=TARGET, time_only=True), None, ())
    binder = launch.ArgumentBinder(work.program)
    work.run(kernel.func, [binder.wrap(array, f"arg{k}") for k, array in enumerate(arrays)], {})
    return work.program


def calls_and_clock(repeats):
    """The product that loads both operands for every tile: 99,328 instructions."""
    kernel = matmul.make(nki, nisa, nl)["tiled"]
    arrays = np.zeros((8192, 4096), np.float32), np.zeros((8192, 8192), np.float32)
    seconds, run = best_of(repeats, lambda: simulated(kernel, *arrays, time_only=True))
    program = traced(kernel, arrays)
    phases = [_core.phase_seconds(program, "program") for _ in range(repeats)]
    clock = min(phase[1] for phase in phases)
    return [
        at_most("nki-call", seconds / run.event_count * 1e6, "us", 5.0),
        at_least("timeline", run.event_count / clock / 1e6, "M instructions/s", 2.0),
    ]


# ---- Values and time ---------------------------------------------------------------------------------


def has_bfloat16_dot() -> bool:
    try:
        with open("/proc/cpuinfo", encoding="ascii") as file:
            return "avx512_bf16" in file.read()
    except OSError:
        return False


def matmul_against_blas(repeats):
    kernel = matmul.make(nki, nisa, nl)["blocked"]
    generator = np.random.default_rng(1)
    lhs_t, rhs = (generator.standard_normal((SIZE, SIZE)).astype(ml_dtypes.bfloat16) for _ in range(2))
    wide = lhs_t.astype(np.float32), rhs.astype(np.float32)
    ours = theirs = float("inf")
    for _ in range(repeats):  # in turns, so that a busy moment hits both
        seconds, run = best_of(1, lambda: simulated(kernel, lhs_t, rhs))
        ours = min(ours, seconds)
        seconds, expected = best_of(1, lambda: wide[0].T @ wide[1])
        theirs = min(theirs, seconds)
    np.testing.assert_allclose(run.outputs, expected, rtol=1e-3, atol=1e-2)
    limit = 1.0 if has_bfloat16_dot() else 1.5
    return [row("matmul-4096-values", ours, "s", f"NumPy float32 {theirs:.3f} s", ours / theirs, f"<= {limit:g} x",
                ours <= limit * theirs)]


def against_eager(name, make, kernel, arrays, limit, repeats, tolerance):
    """Values and time of Trena against values alone of the eager interpreter."""
    ours_kernel = make(nki, nisa, nl)[kernel]
    theirs_kernel = make(eager.nki, eager.nisa, eager.nl)[kernel]
    ours = theirs = float("inf")
    for _ in range(repeats):
        seconds, run = best_of(1, lambda: simulated(ours_kernel, *arrays))
        ours = min(ours, seconds)
        seconds, expected = best_of(1, lambda: theirs_kernel(*arrays))
        theirs = min(theirs, seconds)
    np.testing.assert_allclose(run.outputs, expected, rtol=tolerance, atol=tolerance)
    return row(name, ours / run.event_count * 1e6, "us/instruction",
               f"eager NumPy {theirs / run.event_count * 1e6:.1f} us", theirs / ours, f">= {limit:g} x",
               theirs >= limit * ours)


def eager_rows(repeats):
    generator = np.random.default_rng(2)

    def normal(*shape):
        return generator.standard_normal(shape).astype(np.float32)

    uniform = generator.random((128, 256), dtype=np.float32)  # below 1: the recurrence stays bounded
    heads = [normal(128, 2048).astype(ml_dtypes.bfloat16) for _ in range(2)]
    values = normal(2048, 128).astype(ml_dtypes.bfloat16)
    return [
        against_eager("dispatch-recurrence", small.make, "recurrence", (uniform, normal(128, 1)), 10.0, repeats, 1e-4),
        against_eager("dispatch-products", small.make, "small_products", (normal(500, 32, 32), normal(500, 32, 32)),
                      10.0, repeats, 1e-4),
        against_eager("attention-2048", attention.make, "attention", (*heads, values), 3.0, repeats, 2e-2),
    ]


# ---- Checks ------------------------------------------------------------------------------------------


def windows_of_its_own(x):
    """600 tensors at addresses of their own, alive at once, and 600 that take their places."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    for _ in range(2):
        tiles = [nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf, address=(0, 256 * k)) for k in range(600)]
        for tile in tiles:
            nisa.dma_copy(dst=tile, src=x)
        for k in range(1, 600):
            nisa.tensor_tensor(dst=tiles[k], data1=tiles[k], data2=tiles[k - 1], op=nl.add)
    nisa.dma_copy(dst=out, src=tiles[-1])
    return out


def share_of_checks(name, kernel, arrays, time_only, repeats):
    """What check/ adds to a launch; placed and timed again with and without, on the program of the same launch."""
    whole, with_checks, without = float("inf"), float("inf"), float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work = launch.Launch(launch.Options(target=TARGET, time_only=time_only), None, ())
        binder = launch.ArgumentBinder(work.program)
        work.run(getattr(kernel, "func", kernel), [binder.wrap(array, f"arg{k}") for k, array in enumerate(arrays)], {})
        work.program.finish(checks=True)
        whole = min(whole, time.perf_counter() - start)
        for checks in (True, False):
            start = time.perf_counter()
            work.program.finish(checks=checks)
            seconds = time.perf_counter() - start
            with_checks, without = (min(with_checks, seconds), without) if checks else (with_checks,
                                                                                        min(without, seconds))
    return at_most("checks-" + name + ("-time" if time_only else ""), 100 * (with_checks - without) / whole, "%", 15.0)


def checks(repeats):
    generator = np.random.default_rng(4)

    def normal(*shape):
        return generator.standard_normal(shape).astype(np.float32)

    head = normal(128, 2048).astype(ml_dtypes.bfloat16), normal(128, 2048).astype(ml_dtypes.bfloat16)
    kernels = [
        ("product", matmul.make(nki, nisa, nl)["tiled"], (normal(2048, 2048), normal(2048, 2048))),
        ("attention", attention.make(nki, nisa, nl)["attention"],
         (*head, normal(2048, 128).astype(ml_dtypes.bfloat16))),
        ("recurrence", small.make(nki, nisa, nl)["recurrence"], (normal(128, 256), normal(128, 1))),
        ("addresses", windows_of_its_own, (normal(128, 64),)),
    ]
    return [share_of_checks(name, kernel, arrays, time_only, repeats)
            for name, kernel, arrays in kernels for time_only in (False, True)]


# ---- Output ------------------------------------------------------------------------------------------


def blas_facts():
    try:
        import threadpoolctl
    except ImportError:
        return "BLAS kernel unknown: threadpoolctl is not installed"
    pools = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
    return "; ".join(f"{pool['internal_api']} {pool['version']} {pool.get('architecture', '?')}, "
                     f"{pool['num_threads']} threads" for pool in pools)


def limit_blas_threads():
    try:
        import threadpoolctl
    except ImportError:
        return
    threadpoolctl.threadpool_limits(limits=_core.thread_count(), user_api="blas")


def host_facts():
    return {
        "trena": trena.__version__, "python": platform.python_version(), "numpy": np.__version__,
        "machine": platform.machine(), "threads": _core.thread_count(), "simd_target": _core.simd_target(),
        "avx512_bf16": has_bfloat16_dot(), "blas": blas_facts(), "load_average": os.getloadavg()[0],
    }


def print_table(host, rows):
    print(f"Trena {host['trena']} · {host['threads']} threads · {host['simd_target']} · NumPy {host['numpy']} "
          f"({host['blas']}) · load {host['load_average']:.1f}\n")
    print(f"{'':2}{'name':<24}{'value':>12} {'unit':<18}{'against':<28}{'ratio':>8}  bar")
    for entry in rows:
        mark = " " if entry["met"] else "!"
        print(f"{mark} {entry['name']:<24}{entry['value']:>12.4g} {entry['unit']:<18}{entry['against']:<28}"
              f"{entry['ratio']:>8.2f}  {entry['bar']}")
    missed = sum(not entry["met"] for entry in rows)
    print(f"\n{len(rows) - missed} of {len(rows)} bars met" + ("; ! marks the others" if missed else ""))


BENCHES = {"time-only": time_only_matmul, "calls": calls_and_clock, "blas": matmul_against_blas, "eager": eager_rows,
           "checks": checks}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=BENCHES, action="append", help="some of the benchmarks")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", default=os.path.join(ROOT, "build", "bench.json"))
    arguments = parser.parse_args()
    limit_blas_threads()
    host, rows = host_facts(), []
    for name in arguments.only or BENCHES:
        rows += BENCHES[name](arguments.repeats)
    os.makedirs(os.path.dirname(arguments.output), exist_ok=True)
    with open(arguments.output, "w", encoding="utf-8") as file:
        json.dump({"host": host, "rows": rows}, file, indent=2)
        file.write("\n")
    print_table(host, rows)


if __name__ == "__main__":
    main()
