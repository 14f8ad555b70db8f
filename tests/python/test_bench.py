"""The benchmark's kernels give the same values on Trena as in the eager interpreter that it is compared with."""

import json
import os
import sys

import ml_dtypes
import numpy as np
import pytest

import trena
import trena.nki as nki
import trena.nki.isa as nisa
import trena.nki.language as nl

BENCH = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "bench")
sys.path.insert(0, BENCH)
import eager  # noqa: E402
from kernels import attention, matmul, small  # noqa: E402

GENERATOR = np.random.default_rng(3)


def normal(*shape, dtype=np.float32):
    return GENERATOR.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("make,kernel,arrays,tolerance", [
    (matmul.make, "blocked", (normal(256, 512), normal(256, 1024)), 1e-4),
    (matmul.make, "tiled", (normal(256, 128), normal(256, 512)), 1e-4),
    (small.make, "recurrence", (GENERATOR.random((128, 32), dtype=np.float32), normal(128, 1)), 1e-5),
    (small.make, "small_products", (normal(3, 32, 32), normal(3, 32, 32)), 1e-4),
    (attention.make, "attention", tuple(normal(*shape, dtype=ml_dtypes.bfloat16) for shape in
                                        ((128, 512), (128, 512), (512, 128))), 2e-2),
], ids=lambda value: value if isinstance(value, str) else "")
def test_kernels_agree(make, kernel, arrays, tolerance):
    ours = trena.simulate(make(nki, nisa, nl)[kernel], target="trn2")(*arrays).outputs
    theirs = make(eager.nki, eager.nisa, eager.nl)[kernel](*arrays)
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def test_products_are_products():
    a, b = normal(2, 32, 32), normal(2, 32, 32)
    out = small.make(eager.nki, eager.nisa, eager.nl)["small_products"](a, b)
    np.testing.assert_allclose(out, a.transpose(0, 2, 1) @ b, rtol=1e-4, atol=1e-4)


def test_eager_refuses_what_was_not_written():
    tile = eager.ndarray((128, 4), np.float32, "sbuf")
    other = eager.ndarray((128, 4), np.float32, "sbuf")
    with pytest.raises(eager.Refused, match="was not written"):
        eager.tensor_copy(dst=other, src=tile)


@pytest.mark.slow
def test_bench_writes_its_rows(tmp_path):
    import subprocess

    output = tmp_path / "bench.json"
    subprocess.run([sys.executable, os.path.join(BENCH, "bench.py"), "--repeats", "1", "--only", "time-only",
                    "--output", str(output)], check=True, capture_output=True)
    data = json.loads(output.read_text())
    assert data["host"]["threads"] >= 1
    assert set(data["rows"][0]) == {"name", "value", "unit", "against", "ratio", "bar", "met"}
