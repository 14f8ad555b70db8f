"""Runs public NKI examples, unchanged, from a checkout of the AWS Neuron SDK documentation.

    python tests/public/run_examples.py CHECKOUT/nki/examples [--target trn2]

Prints one line per kernel: what was asked, how far the values are from NumPy, and the time. Exits 1 when a kernel
fails, 0 otherwise (also when there is no checkout: nothing of others is in this repository).
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import time
import traceback

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
if os.path.isdir(os.path.join(ROOT, "build", "python", "trena")):  # a source tree; else Trena is installed
    sys.path.insert(0, os.path.join(ROOT, "python"))

GENERATOR = np.random.default_rng(0)


def _normal(*shape, dtype=np.float32):
    return GENERATOR.standard_normal(shape).astype(dtype)


def _transposed_rows(rows, shape):
    count = rows.shape[0]
    return rows.reshape(count, *shape).transpose(0, 2, 1).reshape(count, -1)


def _product(left, right):
    return left.astype(np.float64).T @ right


def _cases():
    """(file, kernel, arguments, keyword arguments, NumPy's answer, relative tolerance)"""
    matmul = "matrix_multiplication/matrix_multiplication_nki_kernels.py"
    a, b = _normal(256, 1024), _normal(256, 1024)
    yield "tensor_addition/tensor_addition_nki_kernels.py", "nki_tensor_add", (a, b), {}, a + b, 0.0
    rows = GENERATOR.integers(-128, 128, (5, 12), dtype=np.int8)
    yield ("transpose2d/transpose2d_nki_kernels.py", "tensor_transpose2D_kernel_", (rows, (3, 4)), {},
           _transposed_rows(rows, (3, 4)), 0.0)
    left, right = _normal(128, 64), _normal(128, 512)
    yield matmul, "nki_matmul_basic_", (left, right), {}, _product(left, right), 1e-5
    left, right = _normal(1024, 1024), _normal(1024, 2048)
    for kernel in ("nki_matmul_tiled_", "nki_matmul_hoist_load_", "nki_matmul_block_free_dimension_"):
        yield matmul, kernel, (left, right), {}, _product(left, right), 1e-5
    left, right = _normal(2048, 2048), _normal(2048, 2048)
    yield matmul, "nki_matmul_fully_optimized_", (left, right), {}, _product(left, right), 1e-5


# Whole scripts, with the exit code they must end with. layout-violation breaks a rule on purpose.
_SCRIPTS = {
    "average_pool2d/average_pool2d_nki_kernels.py": 0,
    "average_pool2d/average_pool2d_torch.py": 0,
    "fused_mamba/mamba_nki_kernels.py": 0,
    "fused_mamba/mamba_torch.py": 0,
    "getting_started_baremetal.py": 0,
    "getting_started_torch.py": 0,
    "index-case-1.py": 0,
    "index-case-3.py": 0,
    "layout-pass.py": 0,
    "layout-violation.py": 1,
    "matrix_multiplication/matrix_multiplication_torch.py": 0,
    "simulate/nki_simulate_example.py": 0,
    "transpose2d/transpose2d_nki_kernels.py": 0,
    "transpose2d/transpose2d_torch.py": 0,
}


def _run_scripts(checkout: str, target: str, only: str) -> int:
    """Each script under `trena run`; the number that end with another exit code than they should."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    failures = 0
    for script, expected in _SCRIPTS.items():
        if only not in script:
            continue
        words = [sys.executable, "-m", "trena", "run", "-q", "--target", target, os.path.join(checkout, script)]
        started = time.perf_counter()
        done = subprocess.run(words, capture_output=True, text=True, env=environment)
        good = done.returncode == expected
        failures += not good
        print(f"{script:<66} {'as it should' if good else 'FAILED':>12} {time.perf_counter() - started:>21.2f} s")
        if not good:
            print(done.stderr)
    return failures


def _load(path: str):
    specification = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def _run(path, name, arguments, keywords, expected, tolerance, options):
    from trena import simulate

    run = simulate(getattr(_load(path), name), **options)(*arguments, **keywords)
    scale = np.abs(expected).max()
    error = float(np.abs(np.asarray(run.outputs, np.float64) - expected).max() / scale)
    return run, error, error <= tolerance


def main(argv=None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("checkout", help="the folder nki/examples of a checkout")
    parser.add_argument("--target", default="trn2")
    parser.add_argument("--only", default="", help="kernels whose name contains this")
    arguments = parser.parse_args(argv)
    if not os.path.isdir(arguments.checkout):
        print(f"skipped: no checkout at {arguments.checkout}")
        return 0
    import trena

    trena.install("always")
    failures = 0
    print(f"{'kernel':<36} {'inputs':<28} {'max error':>10} {'simulated':>12} {'host':>9}")
    for file, name, inputs, keywords, expected, tolerance in _cases():
        if arguments.only not in name:
            continue
        shapes = " ".join("x".join(map(str, x.shape)) for x in inputs if hasattr(x, "shape"))
        path = os.path.join(arguments.checkout, file)
        try:
            run, error, good = _run(path, name, inputs, keywords, expected, tolerance, {"target": arguments.target})
        except Exception:
            failures += 1
            print(f"{name:<36} {shapes:<28} {'FAILED':>10}")
            traceback.print_exc()
            continue
        failures += not good
        print(f"{name:<36} {shapes:<28} {error:>10.1e} {run.time_us:>9.1f} µs {run.host_seconds:>7.2f} s"
              + ("" if good else f"   WRONG: tolerance {tolerance:g}"))
    failures += _run_scripts(arguments.checkout, arguments.target, arguments.only)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
