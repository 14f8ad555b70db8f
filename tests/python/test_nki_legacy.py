"""The legacy API (neuronxcc.nki), in the manner of course kernels, against NumPy."""

import numpy as np
import pytest

import trena.nki_legacy as nki
import trena.nki_legacy.compiler as ncc
import trena.nki_legacy.isa as nisa
import trena.nki_legacy.language as nl
from trena import errors, launch

GENERATOR = np.random.default_rng(5)


def normal(*shape):
    return GENERATOR.standard_normal(shape).astype(np.float32)


# ---- Indices and masks -------------------------------------------------------------------------------


@nki.jit
def add_masked(a, b):
    """Tiles of 128 rows by arange; the last one is cut by a mask."""
    rows, columns = a.shape
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    i_p = nl.arange(128)[:, None]
    i_f = nl.arange(columns)[None, :]
    for tile in nl.affine_range((rows + 127) // 128):
        inside = tile * 128 + i_p < rows
        left = nl.load(a[tile * 128 + i_p, i_f], mask=inside)
        right = nl.load(b[tile * 128 + i_p, i_f], mask=inside)
        total = nl.add(left, right, mask=inside)
        nl.store(out[tile * 128 + i_p, i_f], total, mask=inside)
    return out


@pytest.mark.parametrize("rows", [64, 128, 200, 384])
def test_masks_cut_the_last_tile(rows):
    a, b = normal(rows, 32), normal(rows, 32)
    np.testing.assert_array_equal(nki.simulate_kernel(add_masked, a, b), a + b)


def test_mgrid_with_strides_and_several_axes():
    @nki.jit
    def kernel(image):
        channels, height, width = image.shape
        out = nl.ndarray((channels, height // 2, width // 2), dtype=image.dtype, buffer=nl.shared_hbm)
        tile = nl.load(image)
        i = nl.mgrid[0:channels, 0 : height // 2, 0 : width // 2]
        first = nl.maximum(tile[i.p, 2 * i.x, 2 * i.y], tile[i.p, 2 * i.x, 2 * i.y + 1])
        second = nl.maximum(tile[i.p, 2 * i.x + 1, 2 * i.y], tile[i.p, 2 * i.x + 1, 2 * i.y + 1])
        nl.store(out, nl.maximum(first, second))
        return out

    image = normal(64, 8, 12)
    expected = image.reshape(64, 4, 2, 6, 2).max(axis=(2, 4))
    np.testing.assert_array_equal(nki.simulate_kernel(kernel, image), expected)


def test_diagonals_and_sliding_windows():
    @nki.jit
    def kernel(x):
        windows = nl.ndarray((128, 5, 4), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        i_p, i_w, i_k = nl.mgrid[0:128, 0:5, 0:4]
        nl.store(windows, nl.copy(tile[i_p, i_w + i_k]))
        return windows

    x = normal(128, 8)
    expected = np.lib.stride_tricks.sliding_window_view(x, 4, axis=1)
    np.testing.assert_array_equal(nki.simulate_kernel(kernel, x), expected)


def test_indices_stay_affine():
    index = nl.arange(8)[:, None]
    for wrong in (lambda: index % 2, lambda: index // 2, lambda: index * nl.arange(4)[None, :]):
        with pytest.raises(errors.IllegalInstruction) as caught:
            wrong()
        assert caught.value.id == "index-not-affine"


def test_kinds_of_indices_do_not_mix():
    @nki.jit
    def kernel(x):
        nl.load(x[nl.arange(128)[:, None], 0:4])

    with pytest.raises(errors.IllegalInstruction) as caught:
        kernel(normal(128, 4))
    assert caught.value.id == "unsupported_mixing_basic_advanced_tensor_indexing"


def test_out_of_bounds_without_a_mask():
    @nki.jit
    def kernel(x):
        nl.load(x[nl.arange(128)[:, None] + 1, nl.arange(4)[None, :]])

    with pytest.raises(errors.OutOfBounds):
        kernel(normal(128, 4))


# ---- Products ----------------------------------------------------------------------------------------


@nki.jit
def matmul_tiled(lhsT, rhs):
    """Accumulates in PSUM with +=, the zeros never written."""
    K, M = lhsT.shape
    _, N = rhs.shape
    out = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(M // 128):
        for n in nl.affine_range(N // 512):
            psum = nl.zeros((nl.par_dim(128), 512), nl.float32, buffer=nl.psum)
            for k in nl.affine_range(K // 128):
                left = nl.ndarray((nl.par_dim(128), 128), dtype=lhsT.dtype, buffer=nl.sbuf)
                right = nl.ndarray((nl.par_dim(128), 512), dtype=rhs.dtype, buffer=nl.sbuf)
                left[...] = nl.load(lhsT[k * 128 : (k + 1) * 128, m * 128 : (m + 1) * 128])
                right[...] = nl.load(rhs[k * 128 : (k + 1) * 128, n * 512 : (n + 1) * 512])
                psum[...] += nl.matmul(left, right, transpose_x=True)
            nl.store(out[m * 128 : (m + 1) * 128, n * 512 : (n + 1) * 512], value=nl.copy(psum, dtype=out.dtype))
    return out


def test_accumulation_in_psum():
    lhsT, rhs = normal(256, 256), normal(256, 1024)
    run = matmul_tiled.run(lhsT, rhs)
    np.testing.assert_allclose(run.outputs, lhsT.T @ rhs, rtol=1e-4, atol=1e-4)
    # 2 x 2 result tiles of 2 steps: 2 loads and 1 product per step, 1 copy and 1 store per tile. Nothing else: results
    # are written where they are wanted, and zeros that a product overwrites are not written.
    assert len(run.timing.events()["name"]) == 2 * 2 * (2 * 3 + 2)


def test_matmul_transposes_when_asked():
    a, b = normal(64, 128), normal(128, 96)

    @nki.jit
    def kernel(a, b):
        out = nl.ndarray((64, 96), dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.copy(nl.load(a) @ nl.load(b)))
        return out

    np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-4, atol=1e-4)


def test_zeros_in_psum_that_no_product_writes():
    @nki.jit
    def kernel(x):
        psum = nl.zeros((128, 4), nl.float32, buffer=nl.psum)
        psum[...] += nl.load(x)
        out = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(out, psum)
        return out

    x = normal(128, 4)
    np.testing.assert_array_equal(kernel(x), x)


# ---- Blocks and allocation ---------------------------------------------------------------------------


def test_block_dimensions():
    @nki.jit
    def kernel(x):
        blocks = nl.ndarray((4, nl.par_dim(128), 16), dtype=x.dtype, buffer=nl.sbuf)
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        for block in nl.affine_range(4):
            blocks[block] = nl.load(x[block])
        for block in nl.affine_range(4):
            nl.store(out[block], blocks[3 - block, :, :])
        return out

    x = normal(4, 128, 16)
    np.testing.assert_array_equal(kernel(x), x[::-1])


def modulo_kernel(first_read):
    """Two physical tiles for four blocks; blocks are read `first_read` iterations after they are loaded."""

    @nki.jit
    def kernel(x):
        blocks = nl.ndarray((4, nl.par_dim(128), 16), dtype=x.dtype,
                            buffer=ncc.sbuf.mod_alloc(base_addr=1024, num_free_tiles=(2,)))
        out = nl.ndarray((4, 128, 16), dtype=x.dtype, buffer=nl.shared_hbm)
        for block in nl.affine_range(4):
            blocks[block] = nl.load(x[block])
            if block >= first_read:
                nl.store(out[block - first_read], blocks[block - first_read])
        for block in range(4 - first_read, 4):
            nl.store(out[block], blocks[block])
        return out

    return kernel


def test_modulo_allocation_reuses_places():
    x = normal(4, 128, 16)
    np.testing.assert_array_equal(modulo_kernel(1)(x), x)
    with pytest.raises(errors.Hazard) as caught:  # block 2 is written over block 0 before that is read
        modulo_kernel(2)(x)
    assert caught.value.id == "address-overlap"


def test_allocation_by_a_function():
    """Places in the words of AWS's direct allocation guide: 0 + (block % 2) * 512 * sizeof(bfloat16)."""
    allocator = ncc.sbuf.mod_alloc(base_addr=0, num_free_tiles=(2,))
    assert [allocator.address((block,), (128, 512), 2) for block in range(4)] == [(0, 0), (0, 1024)] * 2
    banks = ncc.psum.mod_alloc(base_bank=1, num_bank_tiles=(3,))
    places = [banks.address((block,), (128, 512), 4) for block in range(4)]
    assert places == [(0, 2048), (0, 4096), (0, 6144), (0, 2048)]
    custom = ncc.sbuf.alloc(lambda block, partitions, size: (0, 64 + block[0] * size))
    assert custom.address((3,), (128, 4), 4) == (0, 64 + 3 * 16)


# ---- Values ------------------------------------------------------------------------------------------


def test_operators_on_tiles():
    @nki.jit
    def kernel(a, b):
        x, y = nl.load(a), nl.load(b)
        column = nl.max(x, axis=[1])
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, (x + y) * 2.0 - (1.0 - y) + column)
        return out

    a, b = normal(128, 32), normal(128, 32)
    expected = (a + b) * np.float32(2) - (np.float32(1) - b) + a.max(1, keepdims=True)
    np.testing.assert_allclose(kernel(a, b), expected, rtol=1e-6, atol=1e-6)


def test_free_axis_broadcast_and_partition_broadcast():
    @nki.jit
    def kernel(x, row):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        wide = nl.broadcast_to(nl.load(row), shape=(128, 32))
        nl.store(out, nl.add(nl.load(x), wide))
        return out

    x, row = normal(128, 32), normal(1, 32)
    np.testing.assert_allclose(kernel(x, row), x + row, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("rows", [128, 50])
def test_division_broadcasts_columns_and_rows(rows):
    @nki.jit
    def kernel(x, y):
        out = [nl.ndarray((rows, 32), dtype=x.dtype, buffer=nl.shared_hbm) for _ in range(4)]
        i_p, i_f = nl.arange(128)[:, None], nl.arange(32)[None, :]
        inside = i_p < rows
        left, right = nl.load(x[i_p, i_f], mask=inside), nl.load(y[i_p, i_f], mask=inside)
        column = nl.load(y[i_p, nl.arange(1)[None, :]], mask=inside)
        nl.store(out[0][i_p, i_f], nl.divide(left, column, mask=inside), mask=inside)
        nl.store(out[1][i_p, i_f], nl.divide(column, left, mask=inside), mask=inside)
        nl.store(out[2][i_p, i_f], nl.divide(left, right, mask=inside), mask=inside)
        nl.store(out[3][i_p, i_f], nl.mod(left, column, mask=inside), mask=inside)
        return tuple(out)

    x, y = normal(rows, 32) + 8, normal(rows, 32) + 8
    answers = x / y[:, :1], y[:, :1] / x, x / y, np.mod(x, y[:, :1])
    for result, answer in zip(nki.simulate_kernel(kernel, x, y), answers):
        np.testing.assert_allclose(result, answer, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("rows", [128, 72, 200])
def test_layer_norm_under_a_mask(rows):
    """Functions of several instructions give whole tiles of which the mask's part is written."""

    @nki.jit
    def kernel(x, floor):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.arange(128)[:, None], nl.arange(64)[None, :]
        for tile in nl.affine_range((rows + 127) / 128 // 1):
            inside = tile * 128 + i_p < rows
            data = nl.load(x[tile * 128 + i_p, i_f], mask=inside)
            low = nl.load(floor[tile * 128 + i_p, nl.arange(1)[None, :]], mask=inside)
            centred = nl.subtract(data, nl.mean(data, axis=1, mask=inside, keepdims=True), mask=inside)
            variance = nl.var(data, axis=1, mask=inside)
            normal = nl.multiply(centred, nl.rsqrt(nl.add(variance, 1e-5, mask=inside), mask=inside), mask=inside)
            above = nl.where(nl.greater(normal, low, mask=inside), nl.floor(normal, mask=inside), low, mask=inside)
            nl.store(out[tile * 128 + i_p, i_f], above, mask=inside)
        return out

    x, floor = normal(rows, 64), normal(rows, 1)
    result = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(kernel(x, floor), np.where(result > floor, np.floor(result), floor), rtol=1e-4)


def test_what_masks_and_bounds_refuse():
    inside = nl.arange(4)[:, None] < 3
    for act, id in ((lambda: inside | inside, "unsupported_expression_in_mask"),
                    (lambda: ~inside, "unsupported_expression_in_mask"),
                    (lambda: nl.arange(1.5), "argument-type"), (lambda: nl.affine_range(1.5), "argument-type")):
        with pytest.raises(errors.Error) as caught:
            act()
        assert caught.value.id == id


def test_softmax_as_it_is_written():
    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        weights = nl.exp(tile - nl.max(tile, axis=1, keepdims=True))
        nl.store(out, weights / nl.sum(weights, axis=1, keepdims=True))
        return out

    x = normal(128, 64)
    weights = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(kernel(x), weights / weights.sum(1, keepdims=True), rtol=1e-5)


def test_numpy_functions_are_operators():
    @nki.jit
    def kernel(x):
        tile = nl.load(x)
        out = nl.ndarray((128, 3), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out[:, 0:1], nisa.tensor_reduce(np.add, tile, axis=(1,)))
        nl.store(out[:, 1:2], nisa.tensor_reduce(np.max, tile, axis=[1]))
        nl.store(out[:, 2:3], nisa.tensor_scalar(nl.max(tile, axis=1), np.subtract, 1.0, op1=np.multiply, operand1=3.0))
        return out

    x = normal(128, 16)
    expected = np.stack([x.sum(1), x.max(1), (x.max(1) - 1) * 3], axis=1)
    np.testing.assert_allclose(kernel(x), expected, rtol=1e-5, atol=1e-5)


def test_program_order_is_kept():
    """A result that waits for its destination is computed before anything that comes after it."""

    @nki.jit
    def kernel(x):
        tile = nl.ndarray((128, 4), dtype=x.dtype, buffer=nl.sbuf)
        tile[...] = nl.load(x)
        doubled = nl.multiply(tile, 2.0)
        tile[...] = 0.0
        out = nl.ndarray((128, 4), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, doubled + tile)
        return out

    x = normal(128, 4)
    np.testing.assert_array_equal(kernel(x), 2 * x)


def test_loop_reduce():
    @nki.jit
    def kernel(x):
        out = nl.ndarray((2, 128, 4), dtype=x.dtype, buffer=nl.shared_hbm)
        for half in nl.affine_range(2):
            for i in nl.affine_range(3):
                total = nl.loop_reduce(nl.load(x[3 * half + i]), op=np.add, loop_indices=[i])
            nl.store(out[half], total)
        return out

    x = normal(6, 128, 4)
    np.testing.assert_allclose(kernel(x), [x[:3].sum(0), x[3:].sum(0)], rtol=1e-6, atol=1e-6)


def test_a_tile_is_no_condition():
    @nki.jit
    def kernel(x):
        if nl.load(x) > 0:
            pass

    with pytest.raises(errors.UsageError) as caught:
        kernel(normal(128, 4))
    assert caught.value.id == "ambiguous_tensor_truth_value"


# ---- Launching ---------------------------------------------------------------------------------------


def test_output_as_last_argument():
    @nki.trace
    def kernel(x, out):
        nl.store(out, nl.copy(nl.load(x)))

    x, out = normal(128, 4), np.zeros((128, 4), np.float32)
    nki.simulate_kernel(kernel, x, out)
    np.testing.assert_array_equal(out, x)


@nki.jit
def spmd(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    row, column = nl.program_id(0), nl.program_id(1)
    part = slice(row * 128, (row + 1) * 128), slice(column * 8, (column + 1) * 8)
    nl.store(out[part], nl.add(nl.load(x[part]), float(nl.num_programs() * 10 + nl.program_ndim())))
    return out


def test_spmd_grid():
    x = normal(256, 24)
    np.testing.assert_array_equal(nki.simulate_kernel(spmd[2, 3], x), x + np.float32(62))
    run = spmd[nl.nc(2) * 1, 3].run(x)
    np.testing.assert_array_equal(run.outputs, x + np.float32(62))
    assert run.core_count == 2


def test_forms_of_the_decorators():
    x, y = normal(128, 32), normal(128, 32)
    function = add_masked.func
    for decorate in (nki.jit(mode="simulation"), nki.baremetal, nki.baremetal(artifacts_dir="x"),
                     nki.jit(platform_target="trn2"), ncc.skip_middle_end_transformations):
        kernel = decorate(function)
        kernel = kernel if hasattr(kernel, "run") else nki.jit(kernel)
        np.testing.assert_array_equal(kernel(x, y), x + y)
    timed = nki.benchmark(warmup=1, iters=2)(function)
    timed(x, y)
    assert timed.benchmark_result.nc_latency.get_latency_percentile(99) > 0


def test_errors_name_the_line_of_a_result_that_waited():
    @nki.jit
    def kernel(x):
        tile = nl.ndarray((128, 4), dtype=x.dtype, buffer=nl.sbuf)
        doubled = nl.multiply(tile, 2.0)  # the culprit
        return nl.copy(doubled)

    with pytest.raises(errors.UnwrittenRead) as caught:
        kernel(normal(128, 4))
    assert "# the culprit" in str(caught.value)
    assert launch.current() is None


def test_divide_by_a_column():
    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        nl.store(out, nl.divide(tile, nl.sum(tile, axis=1)))
        return out

    x = np.exp2(GENERATOR.integers(0, 4, (64, 32))).astype(np.float32)
    x[:, 0] += 512 - x.sum(axis=1)  # sums of 512 have an exact reciprocal
    np.testing.assert_array_equal(nki.simulate_kernel(kernel, x), x / 512)


def test_static_cast_of_an_array_of_the_host():
    cast = nl.static_cast(np.float32([[1.00390625, 3.0]]), nl.bfloat16)
    assert cast.dtype == nl.bfloat16 and cast.tolist() == [[1.0, 3.0]]


def test_directives_of_a_loop_hold_inside_it():
    """The last activation waits for nothing: only the directive keeps it behind those before."""

    def starts(directives):
        @nki.jit
        def kernel(x):
            out = nl.ndarray((2, 64, 512), dtype=x.dtype, buffer=nl.shared_hbm)
            slow, quick = nl.load(x[0]), nl.load(x[1])
            for i in nl.sequential_range(1, directives=directives()):
                first = nisa.activation(nl.exp, nisa.activation(nl.exp, slow))
                second = nisa.activation(nl.exp, quick)
                nl.store(out[i], first)
                nl.store(out[1], second)
            return out

        events = kernel.run(normal(2, 64, 512)).timing.events()
        return [start for name, start in zip(events["name"], events["start_ns"]) if name == "activation"]

    free, ordered = starts(tuple), starts(ncc.no_reorder)
    assert free[2] < free[1] and ordered[0] < ordered[1] < ordered[2]


def test_a_grid_of_nothing_is_traced_once():
    np.testing.assert_array_equal(add_masked[0](np.ones((128, 32), np.float32), np.ones((128, 32), np.float32)), 2.0)


@pytest.mark.parametrize("call, here", [
    (lambda tile: nl.load(np.zeros((4, 4))), "nl.load: 'numpy.ndarray' object has no attribute 'resolve'"),
    (lambda tile: nisa.activation(nl.exp, [1, 2]), "nisa.activation: 'list' object has no attribute 'shape'"),
])
def test_what_is_no_tile_is_named(call, here):
    @nki.jit
    def kernel(x):
        call(nl.load(x))
        return x

    with pytest.raises(errors.UsageError) as caught:
        nki.simulate_kernel(kernel, normal(4, 4))
    assert caught.value.id == "argument-type" and caught.value.here == here and caught.value.file == __file__


def test_partitions_come_first_when_free_axes_are_repeated():
    @nki.jit
    def kernel(image, bias):
        out = nl.ndarray(image.shape, dtype=image.dtype, buffer=nl.shared_hbm)
        nl.store(out, nisa.tensor_tensor(nl.load(image), nl.load(bias), nl.add))
        nl.store(out, nisa.tensor_tensor(nl.load(bias), nl.load(out), nl.subtract, engine=nisa.vector_engine))
        return out

    image, bias = np.round(8 * normal(64, 6, 10)), np.round(8 * normal(64, 1))
    np.testing.assert_array_equal(nki.simulate_kernel(kernel, image, bias), -image)


def test_two_loop_reductions_of_one_loop():
    @nki.jit
    def kernel(x):
        out = nl.ndarray((2, 64, 16), dtype=x.dtype, buffer=nl.shared_hbm)
        for i in nl.affine_range(4):
            tile = nl.load(x[i])
            total = nl.loop_reduce(tile, op=np.add, loop_indices=[i])
            doubled = nl.loop_reduce(nl.multiply(tile, 2.0), op=np.add, loop_indices=[i])
        nl.store(out[0], total)
        nl.store(out[1], doubled)
        return out

    x = np.round(8 * normal(4, 64, 16))
    np.testing.assert_array_equal(nki.simulate_kernel(kernel, x), [x.sum(axis=0), 2 * x.sum(axis=0)])


# ---- Rows that a masked load leaves out --------------------------------------------------------------


def ragged(compute):
    """Only loads and stores have masks, as in AWS's tutorials; of three tiles the second is cut, the third empty."""

    @nki.jit
    def kernel(x):
        rows, columns = x.shape
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.arange(128)[:, None], nl.arange(columns)[None, :]
        for tile in nl.affine_range(3):
            inside = tile * 128 + i_p < rows
            data = nl.load(x[tile * 128 + i_p, i_f], mask=inside)
            nl.store(out[tile * 128 + i_p, i_f], compute(data), mask=inside)
        return out

    return kernel


def own_buffer(data):
    copied = nl.ndarray((128, 32), dtype=np.float32)
    copied[...] = data
    copied[...] = nl.multiply(copied, 2.0)
    return nl.add(copied, data)


@pytest.mark.parametrize("compute, expected, tolerance", [
    (lambda t: nl.add(nl.multiply(t, t), 1.0), lambda x: x * x + 1, 0),
    (lambda t: nl.subtract(t, nl.max(t, axis=1)), lambda x: x - x.max(axis=1, keepdims=True), 0),
    (lambda t: nl.divide(t, nl.sum(nl.abs(t), axis=[1])), lambda x: x / np.abs(x).sum(axis=1, keepdims=True), 1e-5),
    (lambda t: nl.multiply(t, nl.rsqrt(nl.mean(nl.square(t), axis=1))),
     lambda x: x / np.sqrt((x * x).mean(axis=1, keepdims=True)), 1e-4),
    (lambda t: nisa.activation(nl.square, t, bias=nl.min(t, axis=1), scale=2.0),
     lambda x: (2 * x + x.min(axis=1, keepdims=True)) ** 2, 1e-5),
    (lambda t: nl.copy(nl.softmax(t, axis=1)),
     lambda x: np.exp(x) / np.exp(x).sum(axis=1, keepdims=True), 1e-4),
    (own_buffer, lambda x: 3 * x, 1e-6),
    (lambda t: nisa.tensor_scalar(nl.broadcast_to(nisa.max8(src=t)[:, 0:1], shape=(128, 32)), nl.add, 1.0),
     lambda x: np.broadcast_to(x.max(axis=1, keepdims=True) + 1, x.shape), 0),
])
def test_what_a_mask_left_out_stays_out(compute, expected, tolerance):
    x = normal(200, 32)
    np.testing.assert_allclose(nki.simulate_kernel(ragged(compute), x), expected(x), rtol=tolerance, atol=tolerance)


def added_to_whole(data):
    """A sum that starts whole is garbage in the rows that its summand lacks."""
    total = nl.zeros((128, 32), dtype=np.float32, buffer=nl.sbuf)
    total += data
    return total


@pytest.mark.parametrize("rows", [100, 0])
@pytest.mark.parametrize("compute", [
    lambda t: nl.copy(nl.transpose(t[:, 0:32])),  # rows become columns
    lambda t: nisa.tensor_partition_reduce(nl.add, t),  # rows mix
    lambda t: nl.multiply(t, 2.0),  # all of it goes to the output
    added_to_whole,
])
def test_what_a_mask_left_out_is_missed(compute, rows):
    @nki.jit
    def kernel(x):
        inside = nl.arange(128)[:, None] < rows
        value = compute(nl.load(x[nl.arange(128)[:, None], nl.arange(32)[None, :]], mask=inside))
        out = nl.ndarray(value.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, value)
        return out

    with pytest.raises(errors.UnwrittenRead):
        nki.simulate_kernel(kernel, normal(128, 32))


def test_a_result_keeps_its_values_when_its_place_changes():
    """`tile[...] = value` writes value straight into tile; value is not tile."""

    @nki.jit
    def kernel(x):
        value = nl.multiply(nl.load(x), 2.0)
        tile = nl.ndarray(x.shape, dtype=x.dtype)
        tile[...] = value
        tile += 1.0
        tile[...] = nl.multiply(tile, 10.0)
        return nl.add(value, tile)

    x = np.round(8 * normal(64, 16))
    np.testing.assert_array_equal(nki.simulate_kernel(kernel, x), 2 * x + 10 * (2 * x + 1))


def test_a_product_is_not_the_sum_it_was_added_to():
    @nki.jit
    def kernel(x, y):
        out = nl.ndarray((3, 32, 32), dtype=np.float32, buffer=nl.shared_hbm)
        total = nl.zeros((32, 32), dtype=np.float32, buffer=nl.psum)
        first = nl.matmul(nl.load(x), nl.load(y), transpose_x=True)
        total += first
        second = nl.matmul(nl.load(y), nl.load(x), transpose_x=True)
        total += second
        nl.store(out[0], nl.copy(total))
        nl.store(out[1], nl.copy(first))
        nl.store(out[2], nl.copy(second))
        return out

    x, y = np.round(4 * normal(64, 32)), np.round(4 * normal(64, 32))
    np.testing.assert_array_equal(nki.simulate_kernel(kernel, x, y), [x.T @ y + y.T @ x, x.T @ y, y.T @ x])
