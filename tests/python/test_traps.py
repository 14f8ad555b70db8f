"""Where front ends of NKI usually go wrong (nki.md §5.2-5.5, §6.2-6.4): one test per trap, listed in TRAPS.

Expected values are NumPy's or ml_dtypes', or follow from the rule as the documents state it.
"""

import enum
import functools
import inspect
import os

import ml_dtypes
import numpy as np
import pytest

import trena
import trena.nki as nki
import trena.nki.isa as nisa
import trena.nki.language as nl
from trena import errors

BF16 = ml_dtypes.bfloat16

# item -> the test that holds it: of this file, or file::test.
TRAPS = {
    "5 a pattern outside its tensor": "test_a_pattern_outside_its_tensor_is_refused_where_it_is_used",
    "9 fp32 inside, one rounding on the way out": "test_bfloat16_rounds_once",
    "9 int32 through the vector engine loses bits, all-int32 on gpsimd does not": "test_int32_is_exact_on_gpsimd_only",
    "10 to integers: half to even, saturating": "test_casts_to_integers",
    "11 DMA casts, except by hardware descriptors": "test_dma_casts",
    "12 float32 pairs with float32 only": "test_matmul_pairs",
    "12 a transpose moves bits": "test_transpose_moves_bits",
    "13 packed MX types": "test_mx.py::test_nc_matmul_mx",
    "15 reductions name their axes as written": "test_reduce_axes",
    "16 one name is an operator and a function": "test_an_operator_is_callable_and_comparable",
    "17 classes of operators, engines, logical shift": "test_tensor_scalar_rules",
    "18 two PSUM inputs; ranks may differ; false keeps dst": "test_two_tensor_rules",
    "19 the reduce register counts once": "test_activation_reduce_register",
    "20 nc_transpose keeps the dtype in PSUM": "test_transpose_moves_bits",
    "21 dma_transpose": "test_nki_pair.py::test_transpose",
    "22 memset and shuffles": "test_isa_numpy.py::test_stream_shuffle",
    "23 start partitions": "test_start_partitions",
    "24 dma_compute": "test_nki_pair.py::test_dma_compute",
    "25 rendezvous of two cores": "test_nki_pair.py::test_a_barrier_nobody_joins_names_both_cores",
    "26 indices outside": "test_nki_language.py::test_run_time_index_outside_its_tensor",
    "27 dge_mode changes no value": "test_dge_mode_changes_no_value",
    "36 a loop's register is frozen": "test_loop_registers",
    "37 kernels are traced anew": "test_globals_are_read_at_every_launch",
    "38 arguments of every kind": "test_arguments_of_every_kind",
    "39 kernel[lnc] is a launcher": "test_nki_launch.py::test_grid_is_lnc",
    "40 program_id without a grid": "test_program_id_without_a_grid",
    "41 any Python inside a kernel": "test_any_python_inside_a_kernel",
    "42 harnesses look inside": "test_harnesses_look_inside",
    "43 names of instructions and tensors": "test_names",
    "43 schedules by name": "test_a_schedule_orders_named_instructions",
    "44 nl functions make tiles": "test_nl_functions_make_tiles",
    "45 neighbour modules": "test_neighbour_modules_are_not_invented",
    "38 jax arrays": "test_jax_arrays_go_in_and_come_out",
    "device_print": "test_device_print_shows_the_values",
    "nki.typing": "test_types_for_annotations",
    "46 the compiler allocates": "test_dead_tiles_need_no_room",
    "6.2 keywords of jit": "test_keywords_of_jit",
    "6.2 the target is resolved at launch": "test_nki_launch.py::test_target_is_resolved_at_launch",
    "6.2 a nested kernel returns a tile": "test_a_nested_kernel_returns_a_tile",
    "6.2 lists of tensors": "test_nki_launch.py::test_lists_in_tuples_out",
    "6.2 shared tensors of both cores": "test_nki_launch.py::test_diverging_shared_tensors_are_reported",
    "6.3 dtypes are names, keys and NumPy's": "test_dtypes_everywhere",
    "6.3 NKIObject without __init__": "test_nki_types.py::test_objects_take_keywords",
    "6.3 tile_size are ints": "test_nki_types.py::test_tile_sizes_are_plain_integers",
    "6.3 names that the stubs lack": "test_names_that_the_stubs_lack",
    "6.4 copies carry what was never written": "test_copies_carry_unwritten_bytes",
    "6.4 DMA compares counts": "test_dma_compares_counts",
    "6.4 a window does not fill": "test_a_psum_window_keeps_its_bytes",
    "6.4 registers are live values": "test_nki_language.py::test_registers_steer_python",
    "6.4 constants of files": "test_nki_language.py::test_constants",
}


def test_every_trap_has_its_test():
    here = os.path.dirname(os.path.abspath(__file__))
    for item, name in TRAPS.items():
        file, _, test = name.rpartition("::")
        with open(os.path.join(here, file or os.path.basename(__file__)), encoding="utf-8") as source:
            assert f"def {test}(" in source.read(), (item, name)


def compute(body, *arrays, dtype=None, shape=None, target="trn2"):
    """The tile that `body` returns for tiles of the arrays, as NumPy sees it."""
    def kernel(*inputs):
        tile = body(*[nl.load(x) for x in inputs])
        out = nl.ndarray(tile.shape, tile.dtype, buffer=nl.shared_hbm)
        if str(tile.buffer) == "psum":
            held = nl.ndarray(tile.shape, tile.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=held, src=tile)
            tile = held
        nisa.dma_copy(dst=out, src=tile)
        return out

    return trena.simulate(kernel, target=target)(*arrays).outputs


def tile(like, dtype=None, buffer=None):
    return nl.ndarray(like.shape, like.dtype if dtype is None else dtype, buffer=buffer or nl.sbuf)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# ---- §5.1 Views --------------------------------------------------------------------------------------


def test_a_pattern_outside_its_tensor_is_refused_where_it_is_used():
    """Library kernels take a step beyond the last and then guard its use (output_projection_tkg.py of nki-library)."""
    x = normal(128, 12)

    def body(used):
        def take(x):
            result = nl.ndarray((128, 3), nl.float32, buffer=nl.sbuf)
            for first in range(5):  # the last would end one element behind the partition
                step = x.ap([[12, 128], [4, 3]], offset=first)
                assert step.shape == (128, 3)
                if first < used:
                    nisa.tensor_copy(dst=result, src=step)
            return result
        return take

    np.testing.assert_array_equal(compute(body(4), x), x[:, 3::4])
    with pytest.raises(errors.OutOfBounds) as caught:
        compute(body(5), x)
    assert caught.value.line == inspect.getsourcelines(body)[1] + 7
    assert caught.value.limit == "12 elements per partition"


# ---- §5.2 Types and rounding -------------------------------------------------------------------------


def test_bfloat16_rounds_once():
    a, b = normal(128, 64).astype(BF16), normal(128, 64, seed=1).astype(BF16)

    def body(x, y):
        result = tile(x)
        nisa.scalar_tensor_tensor(dst=result, data=x, op0=nl.multiply, operand0=3.0, op1=nl.add, operand1=y)
        return result

    expected = (a.astype(np.float32) * np.float32(3) + b.astype(np.float32)).astype(BF16)
    np.testing.assert_array_equal(compute(body, a, b), expected)


def test_int32_is_exact_on_gpsimd_only():
    big = np.full((128, 8), 2**24 + 1, np.int32)

    def body(x, engine):
        result = tile(x)
        nisa.tensor_tensor(dst=result, data1=x, data2=x, op=nl.add, **engine)
        return result

    assert (compute(lambda x: body(x, {}), big) == 2 * (2**24 + 1)).all()
    assert (compute(lambda x: body(x, {"engine": nisa.engine.vector}), big) == 2**25).all()


def test_casts_to_integers():
    values = np.array([[0.5, 1.5, 2.5, -0.5, -1.5, 3e9, -3e9, 126.7, 1e3]], np.float32)

    def body(dtype):
        def cast(x):
            result = tile(x, dtype)
            nisa.tensor_copy(dst=result, src=x)
            return result
        return cast

    np.testing.assert_array_equal(compute(body(nl.int32), values),
                                  [[0, 2, 2, 0, -2, 2**31 - 1, -2**31, 127, 1000]])
    np.testing.assert_array_equal(compute(body(nl.int8), values), [[0, 2, 2, 0, -2, 127, -128, 127, 127]])
    np.testing.assert_array_equal(compute(body(nl.uint8), values), [[0, 2, 2, 0, 0, 255, 0, 127, 255]])


def test_dma_casts():
    x = normal(128, 32)

    def kernel(x, mode=None):
        out = nl.ndarray(x.shape, nl.bfloat16, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=x, **({} if mode is None else {"dge_mode": mode}))
        return out

    np.testing.assert_array_equal(trena.simulate(kernel, target="trn2")(x).outputs, x.astype(BF16))
    with pytest.raises(errors.IllegalInstruction):
        trena.simulate(kernel, target="trn2")(x, nisa.dge_mode.hwdge)


def test_matmul_pairs():
    def body(x, y):
        result = nl.ndarray((128, 64), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=result, stationary=x, moving=y)
        return result

    a, b = normal(128, 128), normal(128, 64)
    half = (a.astype(BF16), b.astype(np.float16))
    np.testing.assert_allclose(compute(body, *half), half[0].astype(np.float32).T @ half[1].astype(np.float32),
                               rtol=1e-5, atol=1e-4)
    with pytest.raises(errors.IllegalInstruction):
        compute(body, a, b.astype(BF16))


def test_transpose_moves_bits():
    x = normal(64, 64)
    x[3, 5], x[7, 1] = np.nan, np.inf

    def body(x):
        result = nl.ndarray((64, 64), x.dtype, buffer=nl.psum)
        nisa.nc_transpose(dst=result, data=x, engine=nisa.engine.tensor)
        return result

    np.testing.assert_array_equal(compute(body, x), x.T)
    half = x.astype(BF16)
    np.testing.assert_array_equal(compute(body, half).view(np.uint16), half.view(np.uint16).T)
    with pytest.raises(errors.IllegalInstruction):  # the result has the dtype of the data
        compute(lambda x: nisa.nc_transpose(dst=nl.ndarray((64, 64), nl.float32, buffer=nl.psum), data=x),
                x.astype(BF16))


def test_reduce_axes():
    x = normal(128, 4, 8)

    def body(axis, shape, **more):
        def reduce(x):
            result = nl.ndarray(shape, nl.float32, buffer=nl.sbuf)
            nisa.tensor_reduce(dst=result, op=nl.maximum, data=x, axis=axis, **more)
            return result
        return reduce

    np.testing.assert_array_equal(compute(body(2, (128, 4)), x), x.max(2))
    np.testing.assert_array_equal(compute(body((1, 2), (128, 1)), x), x.max((1, 2))[:, None])
    np.testing.assert_array_equal(compute(body(2, (128, 4, 1), keepdims=True, negate=True), x), -x.max(2)[..., None])
    for axis in (0, (0, 1)):  # partitions are not reduced
        with pytest.raises(errors.Error):
            compute(body(axis, (128, 4)), x)


def test_an_operator_is_callable_and_comparable():
    assert nl.add == nl.add and nl.add != nl.subtract and {nl.add: 1}[nl.add] == 1
    x = normal(128, 16)
    np.testing.assert_array_equal(compute(lambda x: nl.add(x, x), x), x + x)


# ---- §5.3 Corner cases of instructions ---------------------------------------------------------------


def test_tensor_scalar_rules():
    numbers = np.array([[-8, 8, -1]], np.int32)

    def body(**more):
        def act(x):
            result = tile(x)
            nisa.tensor_scalar(dst=result, data=x, **more)
            return result
        return act

    np.testing.assert_array_equal(compute(body(op0=nl.right_shift, operand0=1), numbers),
                                  (numbers.view(np.uint32) >> 1).view(np.int32))
    x = normal(128, 8)
    np.testing.assert_array_equal(compute(body(op0=nl.subtract, operand0=1.0, reverse0=True), x), 1 - x)
    with pytest.raises(errors.Error):  # a bit operator and an arithmetic one
        compute(body(op0=nl.bitwise_and, operand0=1, op1=nl.add, operand1=1.0), numbers)
    with pytest.raises(errors.IllegalInstruction):
        compute(body(op0=nl.subtract, operand0=1.0, engine=nisa.engine.scalar), x)
    with pytest.raises(errors.IllegalInstruction):
        compute(body(op0=nl.add, operand0=1.0, engine=nisa.engine.gpsimd), x)


def test_two_tensor_rules():
    x = normal(128, 32)

    def in_psum(x):
        result = nl.ndarray(x.shape, nl.float32, buffer=nl.psum)
        nisa.tensor_copy(dst=result, src=x)
        return result

    def both(x, y):
        result = tile(x)
        nisa.tensor_tensor(dst=result, data1=x, data2=y, op=nl.add)
        return result

    np.testing.assert_array_equal(compute(lambda x: both(x, in_psum(x)), x), 2 * x)
    with pytest.raises(errors.IllegalInstruction):
        compute(lambda x: both(in_psum(x), in_psum(x)), x)
    np.testing.assert_array_equal(compute(lambda x: both(x, x.reshape((128, 4, 8))), x), 2 * x)  # counts, not ranks

    def keep(x, mask):
        result = tile(x)
        nisa.memset(dst=result, value=7.0)
        nisa.tensor_copy_predicated(dst=result, src=x, predicate=mask)
        return result

    mask = (x > 0).astype(np.uint8)
    np.testing.assert_array_equal(compute(keep, x, mask), np.where(x > 0, x, np.float32(7)))


def test_activation_reduce_register():
    x = np.ones((128, 16), np.float32)

    def body(x):
        result, sums = tile(x), nl.ndarray((128, 1), nl.float32, buffer=nl.sbuf)
        for command in (nisa.reduce_cmd.reset_reduce, nisa.reduce_cmd.reduce):
            nisa.activation(dst=result, op=nl.copy, data=x, reduce_op=nl.add, reduce_res=sums, reduce_cmd=command)
        return sums

    np.testing.assert_array_equal(compute(body, x), np.full((128, 1), 32, np.float32))


def test_start_partitions():
    x = normal(128, 8)

    def body(first, count):
        def copy(x):
            result = tile(x)
            nisa.memset(dst=result, value=0.0)
            nisa.tensor_copy(dst=result[first:first + count], src=x[first:first + count])
            return result
        return copy

    for first, count in ((0, 128), (64, 64), (32, 32), (96, 17)):
        expected = np.zeros_like(x)
        expected[first:first + count] = x[first:first + count]
        np.testing.assert_array_equal(compute(body(first, count), x), expected)
    for first, count in ((1, 4), (32, 64), (16, 16)):
        with pytest.raises(errors.Error):
            compute(body(first, count), x)


def test_dge_mode_changes_no_value():
    x = normal(128, 32)

    def kernel(x, mode):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        held = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=held, src=x, dge_mode=mode)
        nisa.dma_copy(dst=out, src=held, dge_mode=mode)
        return out

    for mode in (nisa.dge_mode.none, nisa.dge_mode.swdge, nisa.dge_mode.unknown):
        np.testing.assert_array_equal(trena.simulate(kernel, target="trn2")(x, mode).outputs, x)


# ---- §5.5 The front end ------------------------------------------------------------------------------


def doubled(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.multiply(nl.load(x), 2.0))
    return out


def test_loop_registers():
    def kernel(x, step):
        for k in nl.dynamic_range(0, 2, step):
            if step == 1:
                k += 1
        return doubled(x)

    for step in (0, -1):
        with pytest.raises((errors.Error, ValueError)):
            trena.simulate(kernel, target="trn2")(normal(128, 8), step)


FACTOR = 2.0


def test_globals_are_read_at_every_launch(monkeypatch):
    @nki.jit
    def scaled(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.multiply(nl.load(x), FACTOR))
        return out

    x = np.ones((128, 8), np.float32)
    assert scaled(x)[0, 0] == 2
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert scaled(x)[0, 0] == 3


def test_arguments_of_every_kind():
    class Mode(enum.Enum):
        FAST = 1

    @nki.jit
    def kernel(x, *, dtype, mode, nothing=None, settings=None):
        assert mode is Mode.FAST and nothing is None and settings == {"a": (1, "b")}
        out = nl.ndarray(x.shape, dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=x)
        return out

    x = normal(4, 8)
    for dtype in (nl.bfloat16, np.dtype(BF16), BF16, "bfloat16"):
        result = kernel(x=x, dtype=dtype, mode=Mode.FAST, settings={"a": (1, "b")})
        np.testing.assert_array_equal(result, x.astype(BF16))


def test_program_id_without_a_grid():
    def kernel(x):
        assert (nl.program_id(0), nl.program_id(axis=0), nl.num_programs(), nl.program_ndim()) == (0, 0, 1, 0)
        return doubled(x)

    trena.simulate(kernel, target="trn2")(np.ones((4, 4), np.float32))


def test_any_python_inside_a_kernel():
    def kernel(x):
        def tiles():
            yield from (nl.load(x[k:k + 1]) for k in range(x.shape[0]))

        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        for k, part in enumerate([nl.multiply(one, 2.0) for one in tiles() if one is not None]):
            nl.store(out[k:k + 1], part)
        return out

    x = normal(3, 8)
    np.testing.assert_array_equal(trena.simulate(kernel, target="trn2")(x).outputs, 2 * x)


def test_harnesses_look_inside():
    kernel = nki.jit(doubled)
    assert kernel.func is kernel.__wrapped__ is doubled and kernel.__name__ == "doubled"
    assert inspect.getsource(kernel.func).startswith("def doubled")
    assert list(inspect.signature(kernel).parameters) == ["x"]
    x = normal(4, 8)
    np.testing.assert_array_equal(functools.partial(kernel, x=x)(), 2 * x)


def test_names():
    def kernel(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm, name="result")
        held = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf, name=f"tile{0}")
        nisa.dma_copy(dst=held, src=x, name="load")
        nisa.tensor_copy(dst=held, src=held, name=f"copy_{1}")
        nisa.dma_copy(dst=out, src=held)
        return out

    run = trena.simulate(kernel, target="trn2")(normal(4, 8))
    assert run.results[0].startswith("result[4,8]")


def test_a_schedule_orders_named_instructions():
    def kernel(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        held, a, b = nl.load(x), tile(x), tile(x)
        nisa.reciprocal(dst=a, data=held, name="slow")
        nisa.activation(dst=b, op=nl.exp, data=held, name="other")
        nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)
        nisa.dma_copy(dst=out, src=a)
        return out

    x = np.full((128, 2048), 2, np.float32)
    free = trena.simulate(nki.jit(kernel), target="trn2")(x)
    for schedule in ([("other", "slow")], [("other", ["slow"])]):
        ordered = trena.simulate(nki.jit(kernel).with_schedule(schedule), target="trn2")(x)
        np.testing.assert_array_equal(ordered.outputs, free.outputs)
        # The two run on different engines, side by side unless told otherwise: 2048 columns at 1.2 GHz.
        assert ordered.time_us > free.time_us + 1
    with pytest.raises(errors.UsageError) as raised:
        trena.simulate(nki.jit(kernel).with_schedule([("other", "missing")]), target="trn2")(x)
    assert raised.value.id == "schedule-name"
    with pytest.raises(errors.NotModelled):
        trena.simulate(nki.jit(kernel).with_schedule([("slow", "other")]), target="trn2")(x)


def test_nl_functions_make_tiles():
    def body(x):
        first, second = nl.exp(x), nl.exp(x)
        assert not first.same_buffer(second) and not first.same_buffer(x) and str(first.buffer) == "sbuf"
        return nl.add(first, second)

    x = normal(128, 8)
    np.testing.assert_allclose(compute(body, x), 2 * np.exp(x), rtol=1e-5)


def test_neighbour_modules_are_not_invented():
    trena.install("always")
    with pytest.raises(ImportError):
        __import__("neuronxcc.nki._private_kernels.attention")


def test_dead_tiles_need_no_room():
    def kernel(x):  # 64 tiles of 16 KiB per partition: 1 MiB, of which two live at once
        out = nl.ndarray((128, 4096), x.dtype, buffer=nl.shared_hbm)
        for _ in range(64):
            nl.store(out, nl.load(x))
        return out

    run = trena.simulate(kernel, target="trn2", spill="error")(normal(128, 4096))
    assert run.spilled_bytes == 0


def test_device_print_shows_the_values(capsys):
    def kernel(x):
        nl.device_print("held", nl.load(x))
        return doubled(x)

    trena.simulate(kernel, target="trn2")(np.full((2, 2), 1.25, np.float32))
    assert "held" in (out := capsys.readouterr().out) and "1.25" in out


def test_jax_arrays_go_in_and_come_out():
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp

    x = jnp.arange(12, dtype=jnp.bfloat16).reshape(3, 4)
    result = nki.jit(doubled)(x)
    assert isinstance(result, jax.Array) and result.dtype == jnp.bfloat16
    np.testing.assert_array_equal(np.asarray(result, np.float32), 2 * np.asarray(x, np.float32))
    assert nl.bfloat16 == jnp.dtype(jnp.bfloat16) and nl.float32 == jnp.float32


def test_types_for_annotations():
    from trena.nki.typing import tensor

    def kernel(x: tensor[nl.float32]) -> tensor:
        return doubled(x)

    np.testing.assert_array_equal(nki.jit(kernel)(np.ones((2, 2), np.float32)), 2)


# ---- §6.2-6.4 What public kernels rely on ------------------------------------------------------------


def test_keywords_of_jit():
    x = normal(4, 8)
    for kernel in (nki.jit(mode="trace")(doubled), nki.jit(debug_kernel=True, show_compiler_tb=True)(doubled),
                   nki.jit()(doubled), nki.jit(doubled, experimental_flags="x")):
        np.testing.assert_array_equal(kernel(x), 2 * x)


def test_a_nested_kernel_returns_a_tile():
    @nki.jit
    def inner(data):
        return nl.multiply(data, 2.0)

    @nki.jit
    def outer(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        half = inner(nl.load(x))
        assert str(half.buffer) == "sbuf"
        nl.store(out, inner(half))
        return out

    x = normal(4, 8)
    np.testing.assert_array_equal(outer(x), 4 * x)


def test_dtypes_everywhere():
    names = ("float32", "bfloat16", "float16", "int32", "uint8", "float8_e4m3", "float8_e5m2")
    table = {getattr(nl, name): name for name in names}
    for name in names:
        dtype = getattr(nl, name)
        assert str(dtype) == name and getattr(nl, str(dtype)) is dtype and table[dtype] == name
        assert hash(dtype) == hash(getattr(nl, name)) and np.zeros(2, dtype=dtype).dtype.itemsize in (1, 2, 4)
    assert nl.float32 == np.float32 == nl.float32 and nl.float32 == np.dtype("float32") == nl.float32
    assert nl.bfloat16 == BF16 == nl.bfloat16 and nl.float32 != nl.bfloat16 and nl.float32 != np.float64
    assert nl.float32 not in (None, "x") and nl.float32 != 3 and nl.int32 != int
    torch = pytest.importorskip("torch")
    assert nl.bfloat16 == torch.bfloat16 == nl.bfloat16 and nl.int32 == torch.int32 != nl.int8


def test_names_that_the_stubs_lack():
    import trena.nki.isa.constants as constants

    trena.install("always")
    import neuronxcc.nki.typing as legacy_typing
    import nki.dtype  # noqa: F401

    assert list(nl.range(3)) == [0, 1, 2] and str(nl.bool) in ("bool", "bool_")
    assert constants.dge_mode is nisa.dge_mode and constants.oob_mode is nisa.oob_mode
    assert hasattr(constants, "matmul_perf_mode") and hasattr(legacy_typing, "mutable_tensor")


def test_copies_carry_unwritten_bytes():
    def kernel(x):
        out = nl.ndarray((256, 8), x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out[0:128], src=x)
        nisa.dma_copy(dst=out, src=out)  # rows 128 to 255 were never written
        held = nl.ndarray((128, 8), x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=held, src=out[0:128])
        last = nl.ndarray((128, 8), x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=last, src=held)
        return last

    x = normal(128, 8)
    np.testing.assert_array_equal(trena.simulate(kernel, target="trn2")(x).outputs, x)


def test_dma_compares_counts():
    def kernel(x):
        out = nl.ndarray((1, 1), x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=x)
        return out

    assert trena.simulate(kernel, target="trn2")(np.array([5.0], np.float32)).outputs.tolist() == [[5.0]]


def test_a_psum_window_keeps_its_bytes():
    def body(x):
        first = nl.ndarray((128, 8), nl.float32, buffer=nl.psum, address=(0, 2048))
        nisa.tensor_copy(dst=first, src=x)
        nl.ndarray((128, 8), nl.float32, buffer=nl.psum, address=(0, 2048))  # another name for the bank
        return first

    x = normal(128, 8)
    np.testing.assert_array_equal(compute(body, x), x)


# ---- What new users tried ----------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize("dtype", [nl.float32, nl.bfloat16])
def test_rand_is_uniform_on_every_generation(target, dtype):
    def body(x):
        nl.random_seed(nl.full((1, 1), 42, nl.int32))
        return nl.rand((128, 256), dtype)

    numbers = compute(body, normal(128, 4), target=target).astype(np.float32)
    assert numbers.min() >= 0 and numbers.max() <= 1 and abs(numbers.mean() - 0.5) < 0.01
    assert abs(numbers.var() - 1 / 12) < 0.005 and len(np.unique(numbers)) > 100


def test_magnitudes_take_a_column():
    x, column = normal(128, 16), normal(128, 1, seed=1)
    for function, chosen in ((nl.abs_max, abs(x) > abs(column)), (nl.abs_min, abs(x) < abs(column))):
        np.testing.assert_array_equal(compute(function, x, column, target="trn3"), np.where(chosen, x, column))


def test_assignment_copies():
    x = normal(128, 16)

    def body(x):
        result = tile(x)
        result[:, 0:8] = nl.add(x, x)[:, 8:16]
        result[:, 8:16] = 1.5
        return result

    expected = np.concatenate([2 * x[:, 8:], np.full((128, 8), 1.5, np.float32)], 1)
    np.testing.assert_array_equal(compute(body, x), expected)
    with pytest.raises(errors.OutOfBounds):
        compute(lambda x: x.__setitem__((slice(None), slice(0, 17)), x), x)


def test_numpy_does_not_compute_with_tiles():
    for act in (np.sum, np.exp, np.asarray, lambda x: np.ones(16, np.float32) * x):
        with pytest.raises((errors.UsageError, TypeError)):
            compute(lambda x: act(x), normal(128, 16))
