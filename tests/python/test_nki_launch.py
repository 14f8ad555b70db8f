"""Launching: decorators, targets, arguments, results. Values against NumPy."""

import dataclasses
import inspect
import threading

import ml_dtypes
import numpy as np
import pytest

import trena
import trena.nki as nki
import trena.nki.isa as nisa
import trena.nki.language as nl
from trena import errors, launch


@nki.jit
def add_kernel(a, b):
    """c = a + b, one tile."""
    c = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    a_tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    b_tile = nl.ndarray(b.shape, dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=a_tile, src=a)
    nisa.dma_copy(dst=b_tile, src=b)
    nisa.tensor_tensor(dst=a_tile, data1=a_tile, data2=b_tile, op=nl.add)
    nisa.dma_copy(dst=c, src=a_tile)
    return c


@pytest.fixture
def pair():
    generator = np.random.default_rng(7)
    return [generator.standard_normal((128, 64)).astype(np.float32) for _ in range(2)]


def test_numpy_in_numpy_out(pair):
    c = add_kernel(*pair)
    assert isinstance(c, np.ndarray) and c.dtype == np.float32
    np.testing.assert_array_equal(c, pair[0] + pair[1])


def test_keyword_call(pair):
    np.testing.assert_array_equal(add_kernel(b=pair[1], a=pair[0]), pair[0] + pair[1])


def test_decorator_keeps_the_function():
    assert add_kernel.__name__ == "add_kernel"
    assert add_kernel.__doc__ == "c = a + b, one tile."
    assert list(inspect.signature(add_kernel).parameters) == ["a", "b"]
    assert "nisa.tensor_tensor" in inspect.getsource(add_kernel)
    assert add_kernel.__wrapped__ is add_kernel.func


@pytest.mark.parametrize("decorate", [
    nki.jit, nki.jit(), nki.jit(platform_target="trn2"),
    nki.jit(mode="trace", debug_kernel=True, experimental_flags=""),
])
def test_forms_of_the_decorator(decorate, pair):
    np.testing.assert_array_equal(decorate(add_kernel.func)(*pair), pair[0] + pair[1])


def test_simulate_forms(pair):
    expected = pair[0] + pair[1]
    for call in (nki.simulate(add_kernel), nki.simulate(add_kernel.func), nki.simulate(add_kernel[1]),
                 nki.simulate(add_kernel)[1], nki.baremetal(add_kernel)):
        np.testing.assert_array_equal(call(*pair), expected)


def test_trena_simulate_returns_a_run(pair):
    run = trena.simulate(add_kernel, target="trn2")(*pair)
    np.testing.assert_array_equal(run.outputs, pair[0] + pair[1])
    assert run.machine.name == "trn2"
    assert run.time_us > 0
    assert "a[128,64]f32 b[128,64]f32" in run.line()


def test_benchmark_gives_microseconds(pair):
    timed = nki.benchmark(warmup=2, iters=5)(add_kernel)
    timed(*pair)
    latency = timed.benchmark_result.nc_latency
    assert latency.get_latency_percentile(50) == latency.get_latency_percentile(99) > 0


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_dtypes_of_arguments(dtype, pair):
    a, b = (array.astype(dtype) for array in pair)
    c = add_kernel(a, b)
    assert c.dtype == np.dtype(dtype)
    expected = (a.astype(np.float32) + b.astype(np.float32)).astype(dtype)
    np.testing.assert_array_equal(c.astype(np.float32), expected.astype(np.float32))


def test_strided_and_read_only_arguments(pair):
    a, b = pair[0].T.copy().T, pair[1].copy()
    b.flags.writeable = False
    np.testing.assert_array_equal(add_kernel(a, b), a + b)


def test_torch_in_torch_out(pair):
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.bfloat16):
        a, b = (torch.from_numpy(array).to(dtype) for array in pair)
        c = add_kernel(a, b)
        assert isinstance(c, torch.Tensor) and c.dtype == dtype
        assert torch.equal(c, a + b)


@nki.jit
def double_in_place(x):
    tile = nl.load(x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
    nl.store(x, tile)
    return x


def test_in_place_reaches_the_callers_array(pair):
    x, before = pair[0], pair[0].copy()
    assert double_in_place(x) is x
    np.testing.assert_array_equal(x, 2 * before)


def test_in_place_reaches_a_strided_array(pair):
    whole = np.zeros((128, 128), np.float32)
    view = whole[:, ::2]
    view[...] = pair[0]
    double_in_place(view)
    np.testing.assert_array_equal(whole[:, ::2], 2 * pair[0])
    assert not whole[:, 1::2].any()


@nki.jit
def garbage(x):
    out = nl.ndarray((128, 2), nl.float32, buffer=nl.shared_hbm)
    nl.store(out[:, 0:1], nl.copy(nl.ndarray((128, 1), nl.float32, buffer=nl.sbuf)))
    nl.store(out[:, 1:2], nl.cast(nl.ndarray((128, 1), nl.int32, buffer=nl.sbuf), nl.float32))
    return out


def test_sentinel_of_the_vendors_simulator(pair):
    result = trena.simulate(garbage, unwritten="sentinel")(pair[0]).outputs
    assert np.isnan(result[:, 0]).all() and (result[:, 1] == 4).all()
    with pytest.raises(errors.UnwrittenRead):
        garbage(pair[0])


@nki.jit
def both_orders(pair):
    a, b = nl.load(pair[0]), nl.load(pair[1])
    results = []
    for x, y in ((a, b), (b, a)):
        out = nl.ndarray(pair[0].shape, dtype=pair[0].dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.subtract(x, y))
        results.append(out)
    return tuple(results)


def test_lists_in_tuples_out(pair):
    first, second = both_orders(pair)
    np.testing.assert_array_equal(first, pair[0] - pair[1])
    np.testing.assert_array_equal(second, pair[1] - pair[0])
    assert isinstance(both_orders(tuple(pair)), tuple)


class Config(nl.NKIObject):
    pass


@dataclasses.dataclass(frozen=True)
class Frozen(nl.NKIObject):
    left: object
    factor: float


@nki.jit
def scaled(config):
    out = nl.ndarray(config.left.shape, dtype=config.left.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.multiply(nl.load(config.left), config.factor))
    return out


def test_objects_that_hold_arrays(pair):
    for config in (Config(left=pair[0], factor=3.0), Frozen(pair[0], 3.0)):
        np.testing.assert_array_equal(scaled(config), 3 * pair[0])
        assert config.left is pair[0]  # the caller's object is untouched


@nki.jit
def outer(a, b):
    return add_kernel(a, b)


def test_nested_kernel_is_a_plain_call(pair):
    before = launch.launch_count
    np.testing.assert_array_equal(outer(*pair), pair[0] + pair[1])
    assert launch.launch_count == before + 1


@nki.jit
def generation(a):
    out = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.shared_hbm)
    nl.store(out, nl.full((1, 1), int(nisa.get_nc_version().value), nl.int32))
    return out


def test_target_is_resolved_at_launch(monkeypatch):
    a = np.zeros((1, 1), np.float32)
    monkeypatch.delenv("NEURON_PLATFORM_TARGET_OVERRIDE", raising=False)
    assert generation(a)[0, 0] == 4  # the vendor's default: trn3
    for target, expected in (("trn1", 2), ("gen3", 3), ("trn2", 3), ("trn3", 4)):
        monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", target)
        assert generation(a)[0, 0] == expected
    monkeypatch.setattr(launch, "defaults", launch.Options(target="trn1"))
    assert generation(a)[0, 0] == 2  # --target beats the variable


def test_no_kernel_no_tensors():
    with pytest.raises(errors.UsageError) as caught:
        nl.ndarray((128, 4), nl.float32)
    assert caught.value.id == "nki-outside-kernel"


@nki.jit
def raises_midway(a):
    nl.load(a)
    raise ValueError("the kernel's own")


def test_a_kernel_that_raises_leaves_the_process_usable(pair):
    with pytest.raises(ValueError, match="the kernel's own"):
        raises_midway(pair[0])
    assert launch.current() is None
    np.testing.assert_array_equal(add_kernel(*pair), pair[0] + pair[1])


def test_grid_is_lnc():
    for wrong in (3, (1, 2), 0):
        with pytest.raises(errors.UsageError) as caught:
            add_kernel[wrong]
        assert caught.value.id == "lnc-grid"


@nki.jit
def halves(a):
    """Each core copies its half of the rows."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    rows = a.shape[0] // nl.num_programs()
    mine = slice(nl.program_id(0) * rows, (nl.program_id(0) + 1) * rows)
    nl.store(out[mine, :], nl.load(a[mine, :]))
    return out


@pytest.mark.parametrize("lnc", [1, 2])
def test_shared_output_of_both_cores(lnc, pair):
    np.testing.assert_array_equal(nki.simulate(halves[lnc])(pair[0]), pair[0])


def test_failure_on_the_second_core_is_raised():
    @nki.jit
    def kernel(a):
        if nl.program_id(0) == 1:
            raise RuntimeError("core 1")
        return None

    with pytest.raises(RuntimeError, match="core 1"):
        kernel[2](np.zeros((1, 1), np.float32))
    assert threading.active_count() < 20


def test_diverging_shared_tensors_are_reported():
    @nki.jit
    def kernel(a):
        return nl.ndarray((4, 4 + nl.program_id(0)), dtype=nl.float32, buffer=nl.shared_hbm)

    with pytest.raises(errors.Hazard) as caught:
        kernel[2](np.zeros((1, 1), np.float32))
    assert caught.value.id == "lnc-divergence"


def test_error_prints_the_users_line():
    @nki.jit
    def kernel(a):
        tile = nl.ndarray((128, 4), nl.float32, buffer=nl.sbuf)
        nl.store(a, tile)  # nobody wrote the tile

    with pytest.raises(errors.UnwrittenRead) as caught:
        kernel(np.zeros((128, 4), np.float32))
    text = str(caught.value)
    assert "test_nki_launch.py:" in text and "nobody wrote the tile" in text and "^" in text
    assert f"trena explain {caught.value.id}" in text
