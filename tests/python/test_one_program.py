"""Values and time come from the same object: what the timed stream counts is what the kernel computed."""

import contextlib

import numpy as np
import pytest

import trena
from trena import _core, nki
from trena.accuracy import matmul_kernels
from trena.nki import isa as nisa
from trena.nki import language as nl

STAGES = {
    "tiled": (256, 256, 1024), "hoisted": (256, 256, 1024), "blocked_2x2": (256, 512, 1024),
    "blocked_16_2_8": (1024, 2048, 1024),
}  # kernel: K, M, N


@contextlib.contextmanager
def flipped_sign():
    """The test hook: the first element of every product has the wrong sign."""
    _core.set_product_fault(True)
    try:
        yield
    finally:
        _core.set_product_fault(False)


def _operands(k, m, n):
    generator = np.random.default_rng(0)
    return generator.standard_normal((k, m), np.float32), generator.standard_normal((k, n), np.float32)


@pytest.mark.parametrize("kernel", STAGES)
def test_stages_agree_with_numpy_and_count_their_work(kernel):
    k, m, n = STAGES[kernel]
    lhs_t, rhs = _operands(k, m, n)
    run = trena.simulate(getattr(matmul_kernels, kernel), target="trn2")(lhs_t, rhs)
    np.testing.assert_allclose(run.outputs, lhs_t.T @ rhs, rtol=1e-4, atol=1e-3)
    assert run.multiply_accumulates == m * n * k
    compulsory = lhs_t.nbytes + rhs.nbytes + 4 * m * n
    assert run.hbm_read_bytes + run.hbm_write_bytes >= compulsory
    peak_macs_per_ns = 128 * 128 * 2.4 / 4  # float32 takes four cycles a column (hw.md §2.2)
    assert run.time_ns > m * n * k / peak_macs_per_ns


@pytest.mark.parametrize("kernel", STAGES)
def test_a_flipped_sign_in_the_product_reaches_every_output(kernel):
    operands = _operands(*STAGES[kernel])
    function = getattr(matmul_kernels, kernel)
    right = trena.simulate(function, target="trn2")(*operands)
    with flipped_sign():
        wrong = trena.simulate(function, target="trn2")(*operands)
    assert not np.array_equal(right.outputs, wrong.outputs)
    assert wrong.time_ns == right.time_ns


def test_time_only_gives_the_same_time():
    operands = _operands(256, 256, 1024)
    whole = trena.simulate(matmul_kernels.hoisted, target="trn2")(*operands)
    clock = trena.simulate(matmul_kernels.hoisted, target="trn2", time_only=True)(*operands)
    assert clock.time_ns == whole.time_ns
    assert clock.outputs is None


def test_what_python_keeps_alive_has_no_influence_on_time():
    @nki.jit
    def chain(x, keep):
        kept = []
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        for _ in range(64):
            tile = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x)
            if keep:
                kept.append(tile)
        nisa.dma_copy(dst=out, src=tile)
        return out

    x = np.ones((128, 8192), np.float32)
    assert (trena.simulate(chain, target="trn2")(x, True).time_ns
            == trena.simulate(chain, target="trn2")(x, False).time_ns)


@pytest.mark.parametrize("kernel", STAGES)
def test_same_bytes_for_any_thread_count_and_simd_target(kernel):
    operands = _operands(*STAGES[kernel])
    function = getattr(matmul_kernels, kernel)
    threads, target = _core.thread_count(), _core.simd_target()
    results = {}
    try:
        for count in (1, 2, 8):
            _core.set_thread_count(count)
            run = trena.simulate(function, target="trn2")(*operands)
            results[f"{count} threads"] = (run.outputs.tobytes(), run.time_ns)
        for name in _core.simd_targets() if kernel == "hoisted" else ():
            _core.force_simd_target(name)
            run = trena.simulate(function, target="trn2")(*operands)
            results[name] = (run.outputs.tobytes(), run.time_ns)
    finally:
        _core.set_thread_count(threads)
        _core.force_simd_target("")
    assert len(set(results.values())) == 1, sorted(results)
    assert _core.simd_target() == target
