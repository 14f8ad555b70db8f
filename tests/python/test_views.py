"""Views against NumPy's strided views, and the rules of the chip (nki.md §5.1-5, §5.1-6)."""

import warnings

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from trena import _core, dtypes, errors


def tensor(array, space="hbm", pitch_bytes=0, origin_bytes=0):
    return _core.tensor_from_bytes(np.ascontiguousarray(array), array.dtype, array.shape, space, pitch_bytes,
                                   origin_bytes)


def array(view):
    data, shape, dtype = _core.to_numpy(view)
    return np.frombuffer(data, dtypes.as_dtype(dtype).dtype).reshape(shape)


def numbers(*shape, dtype=np.int32):
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


# ---- random chains of views --------------------------------------------------------------------------------


def chip_int(view, reference, axis, position):
    """NumPy's result of t[…, position, …] with the rules of the chip: P stays, two dimensions stay."""
    index = [slice(None)] * reference.ndim
    keep = axis == 0 or reference.ndim == 2
    index[axis] = slice(position, position + 1) if keep else position
    return reference[tuple(index)]


@st.composite
def steps(draw, reference, space):
    """One random legal view: (what to do to a Tensor, what NumPy gives)."""
    chip = space != "hbm"
    ndim = reference.ndim
    free = list(range(1, ndim)) if chip else list(range(ndim))
    kind = draw(st.sampled_from(["index", "int", "slice", "permute", "expand", "split", "flatten", "ds", "rearrange",
                                 "squeeze", "broadcast", "reshape", "view"]))
    axis = draw(st.sampled_from(free))
    size = reference.shape[axis]
    if kind == "index":
        key = []
        for number, n in enumerate(reference.shape):
            start = draw(st.integers(0, n - 1))
            stop = draw(st.integers(start + 1, n))
            step = 1 if chip and number == 0 else draw(st.integers(1, 3))
            key.append(slice(draw(st.sampled_from([start, start - n])), stop, step))
        key = tuple(key[: draw(st.integers(1, ndim))])
        if draw(st.booleans()):
            key = key + (Ellipsis,)
        return (lambda t: t[key]), reference[key]
    if kind == "int":
        any_axis = draw(st.integers(0, ndim - 1))
        position = draw(st.integers(-reference.shape[any_axis], reference.shape[any_axis] - 1))
        key = (slice(None),) * any_axis + (position,)
        wrapped = position % reference.shape[any_axis]
        if chip:
            expected = chip_int(None, reference, any_axis, wrapped)
        else:
            expected = reference[key] if ndim > 1 else reference[wrapped:wrapped + 1]
        return (lambda t: t[key]), expected
    if kind == "slice":
        start = draw(st.integers(0, size - 1))
        stop = draw(st.integers(start + 1, size))
        step = draw(st.integers(1, 4))
        key = (slice(None),) * axis + (slice(start, stop, step),)
        return (lambda t: t.slice(axis, start, stop, step)), reference[key]
    if kind == "ds":
        count = draw(st.integers(1, size))
        start = draw(st.integers(0, size - count))
        key = (slice(None),) * axis
        return (lambda t: t[key + (_core.DynamicSlice(start, count),)]), reference[key + (slice(start, start + count),)]
    if kind == "permute":
        order = draw(st.permutations(free))
        order = ([0] if chip else []) + list(order)
        return (lambda t: t.permute(tuple(order))), reference.transpose(order)
    if kind == "expand" and ndim < 5:
        where = draw(st.integers(1 if chip else 0, ndim))
        return (lambda t: t.expand_dim(where)), np.expand_dims(reference, where)
    if kind == "squeeze":
        ones = [a for a in free if reference.shape[a] == 1]
        if ones and ndim > (2 if chip else 1):
            one = draw(st.sampled_from(ones))
            return (lambda t: t.squeeze_dim(one)), reference.squeeze(one)
    if kind == "broadcast":
        ones = [a for a in free if reference.shape[a] == 1]
        if ones:
            one = draw(st.sampled_from(ones))
            count = draw(st.integers(1, 3))
            shape = list(reference.shape)
            shape[one] = count
            return (lambda t: t.broadcast(one, count)), np.broadcast_to(reference, shape)
    if kind == "split" and ndim < 5:
        outer = draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0]))
        parts = draw(st.sampled_from([(outer, size // outer), (-1, size // outer), (outer, -1)]))
        shape = reference.shape[:axis] + (outer, size // outer) + reference.shape[axis + 1:]
        strides = reference.strides
        s = strides[:axis] + (strides[axis] * (size // outer), strides[axis]) + strides[axis + 1:]
        return (lambda t: t.reshape_dim(axis, parts)), as_strided(reference, shape, s)
    if kind == "flatten":
        first = draw(st.sampled_from(free))
        last = draw(st.integers(first, ndim - 1))
        dims = [(n, s) for n, s in zip(reference.shape[first:last + 1], reference.strides[first:last + 1]) if n > 1]
        dense = all(a[1] == b[0] * b[1] for a, b in zip(dims, dims[1:]))
        if dense and ndim - (last - first) >= (2 if chip else 1):
            shape = reference.shape[:first] + (-1,) + reference.shape[last + 1:]
            return (lambda t: t.flatten_dims(first, last)), reference.reshape(shape)
    if kind == "reshape" and reference.flags.c_contiguous:
        rest = reference.shape[1:] if chip else reference.shape
        total = int(np.prod(rest))
        inner = draw(st.sampled_from([d for d in range(1, total + 1) if total % d == 0]))
        shape = (reference.shape[:1] if chip else ()) + (total // inner, inner)
        return (lambda t: t.reshape(shape)), reference.reshape(shape)
    if kind == "rearrange" and ndim >= 3:
        names = "abcde"[:ndim]
        source = tuple(names)
        target = (names[0], names[2], names[1]) + tuple(names[3:])
        order = (0, 2, 1) + tuple(range(3, ndim))
        return (lambda t: t.rearrange(source, target)), reference.transpose(order)
    if kind == "view" and reference.strides[-1] == reference.itemsize and reference.itemsize == 4:
        return (lambda t: t.view("int16")), reference.view(np.int16)
    return (lambda t: t[...]), reference


@settings(max_examples=400, deadline=None)
@given(st.data(), st.sampled_from(["hbm", "sbuf", "window"]), st.lists(st.integers(1, 6), min_size=2, max_size=4))
def test_chains_of_views_are_numpys(data, place, shape):
    space = "hbm" if place == "hbm" else "sbuf"
    reference = numbers(*shape)
    window = {"pitch_bytes": reference[0].nbytes + 8, "origin_bytes": 16} if place == "window" else {}
    view = tensor(reference, space, **window)
    views = []
    for _ in range(data.draw(st.integers(1, 5))):
        act, reference = data.draw(steps(reference, space))
        view = act(view)
        views.append((view, reference))
        assert view.shape == reference.shape
        assert view.ndim == reference.ndim and view.size == reference.size and view.itemsize == reference.itemsize
        np.testing.assert_array_equal(array(view), reference)
        for number, (count, stride) in enumerate(zip(reference.shape, view.strides)):
            if count > 1:
                assert stride * view.itemsize == reference.strides[number]
    again = view.ap(view.get_pattern()) if view.ndim <= 5 else view
    np.testing.assert_array_equal(array(again), reference)
    # Overlap: never missed, and seen through the bytes themselves.
    for a, of_a in views:
        for b, of_b in views:
            shared = bool(np.shares_memory(of_a, of_b))
            assert _core.overlaps(a, b) or not shared
            if _core.covers(a, b):
                assert byte_set(of_b) <= byte_set(of_a)


def byte_set(reference):
    offsets = np.zeros((1,), np.int64)
    for count, stride in zip(reference.shape, reference.strides):
        offsets = (offsets[:, None] + np.arange(count) * stride).reshape(-1)
    base = reference.__array_interface__["data"][0]
    return {int(base + o + k) for o in offsets for k in range(reference.itemsize)}


# ---- overlap is exact for what kernels do ------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(st.data(), st.sampled_from(["hbm", "sbuf"]), st.lists(st.integers(1, 8), min_size=2, max_size=4))
def test_overlap_of_rectangles_is_exact(data, space, shape):
    reference = numbers(*shape)
    whole = tensor(reference, space)

    def rectangle():
        key = []
        for n in shape:
            start = data.draw(st.integers(0, n - 1))
            key.append(slice(start, data.draw(st.integers(start + 1, n))))
        return tuple(key)

    first, second = rectangle(), rectangle()
    shared = bool(np.shares_memory(reference[first], reference[second]))
    assert _core.overlaps(whole[first], whole[second]) == shared
    inside = all(a.start <= b.start and b.stop <= a.stop for a, b in zip(first, second))
    assert _core.covers(whole[first], whole[second]) == inside


def test_columns_and_phases_do_not_overlap():
    t = tensor(numbers(128, 64), "sbuf")
    assert not _core.overlaps(t[:, 3:4], t[:, 4:5])
    assert _core.overlaps(t[:, 3:5], t[:, 4:5])
    assert not _core.overlaps(t[:, 0:64:2], t[:, 1:64:2])
    assert not _core.overlaps(t[:, 0:64:2], t[:, 1:64:4])
    assert not _core.overlaps(t.reshape((128, 8, 8))[:, :, 0:4], t.reshape((128, 8, 8))[:, :, 4:8])
    assert _core.overlaps(t.reshape((128, 8, 8)).permute((0, 2, 1)), t[:, 9:10])
    assert not _core.overlaps(t[0:64], t[64:128])
    assert not _core.overlaps(t, tensor(numbers(128, 64), "sbuf"))


# ---- the examples of the public documents ------------------------------------------------------------------


def test_language_guide_indexing():
    t = tensor(numbers(64, 64, 64), "sbuf")
    assert t[0, 0, 10].shape == (1, 1)
    assert t[:, 0].shape == (64, 64)
    assert t[:, 0, 10].shape == (64, 1)
    assert t[0:64, 0, 0:64].shape == (64, 64)
    assert t[:, :, ::2].shape == (64, 64, 32)
    assert t[...].shape == (64, 64, 64)
    assert t[0, ..., :].shape == (1, 64, 64)
    h = tensor(numbers(4, 128, 32))
    assert h[0].shape == (128, 32)
    assert h[0, 0, 3].shape == (1,)
    assert array(h[1, 2, 3])[0] == (1 * 128 + 2) * 32 + 3


def test_attributes_of_a_fresh_tile():
    t = _core.tensor_from_bytes(np.zeros((128, 64), np.float32), "float32", (128, 64), "sbuf", 4096, 64)
    assert (t.shape, t.strides, t.offset, t.ndim, t.size, t.itemsize) == ((128, 64), (64, 1), 0, 2, 8192, 4)
    assert t.is_contiguous() and not t.is_indirect()
    u = t.slice(dim=1, start=8, end=24)
    assert u.get_pattern() == [[64, 128], [1, 16]] and u.offset == 8
    v = t.ap(pattern=[[64, 128], [1, 16]], offset=8)
    assert v.get_pattern() == u.get_pattern() and v.offset == u.offset
    assert t[3:5, 2:].offset == 3 * 64 + 2
    assert not t.reshape((128, 8, 8)).permute((0, 2, 1)).is_contiguous()


def test_rearrange_splits_orders_and_merges():
    reference = numbers(8, 24)
    t = tensor(reference, "sbuf")
    got = t.rearrange(("b", ("h", "w")), ("b", "w", "h"), {"h": 4})
    assert got.shape == (8, 6, 4)
    np.testing.assert_array_equal(array(got), reference.reshape(8, 4, 6).transpose(0, 2, 1))
    h = tensor(numbers(2, 3, 4))
    merged = h.rearrange(("a", "b", "c"), (("a", "b"), "c"))
    np.testing.assert_array_equal(array(merged), numbers(6, 4))


def test_ap_addresses_the_storage():
    reference = numbers(16, 32)
    for space in ("hbm", "sbuf"):
        t = tensor(reference, space)
        flat = reference.reshape(-1)
        view = t.ap([[32, 16], [1, 8], [8, 3]], offset=2)
        expected = as_strided(flat[2:], (16, 8, 3), (128, 4, 32))
        np.testing.assert_array_equal(array(view), expected)
        # An ap of an ap starts again from the storage.
        again = view.ap([[32, 16], [2, 4]])
        np.testing.assert_array_equal(array(again), as_strided(flat[2:], (16, 4), (128, 8)))


def test_ap_reinterprets_and_counts_new_elements():
    reference = numbers(8, 16)
    t = tensor(reference, "sbuf", pitch_bytes=256)
    view = t.ap([[32, 8], [1, 32]], offset=0, dtype="bfloat16")
    assert array(view).dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(array(view).view(np.uint16), reference.view(np.uint16))
    np.testing.assert_array_equal(array(t.view("uint8")), reference.view(np.uint8))
    np.testing.assert_array_equal(array(t.view("uint8").view("int32")), reference)
    assert t.reinterpret_cast("float32").shape == (8, 16)


def test_ap_with_an_offset_on_a_shifted_view_adds_and_warns():
    t = tensor(numbers(4, 16), "sbuf")
    with pytest.warns(UserWarning, match="adds"):
        view = t[:, 4:].ap([[16, 4], [1, 2]], offset=3)
    assert view.offset == 7
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert t[:, 4:].ap([[16, 4], [1, 2]]).offset == 4
        assert t.ap([[16, 4], [1, 2]], offset=3).offset == 3


# ---- run-time indices --------------------------------------------------------------------------------------


def test_scalar_offset_is_scaled_by_the_base():
    reference = numbers(512, 16)
    t = tensor(reference)
    index = tensor(np.array([[384]], np.int32), "sbuf")
    view = t.ap([[16, 128], [1, 8]], offset=0, scalar_offset=index, indirect_dim=0)
    np.testing.assert_array_equal(array(view), reference[384:, :8])
    assert view.is_indirect()
    batch = tensor(numbers(4, 8, 2))
    three = tensor(np.array([[3]], np.uint32), "sbuf")
    np.testing.assert_array_equal(array(batch.select(0, three)), numbers(4, 8, 2)[3])
    np.testing.assert_array_equal(array(batch[three]), numbers(4, 8, 2)[3])
    np.testing.assert_array_equal(array(batch[:, _core.DynamicSlice(three, 2)]), numbers(4, 8, 2)[:, 3:5])
    with pytest.raises(errors.IllegalInstruction) as caught:
        batch.select(0, three).select(0, three)
    assert caught.value.id == "indirect-view"
    outside = batch.select(0, tensor(np.array([[4]], np.int32), "sbuf"))  # oob_mode decides: see the instructions
    with pytest.raises(errors.OutOfBounds):
        array(outside)


def test_vector_select_gathers_rows():
    reference = numbers(32, 6)
    t = tensor(reference)
    rows = np.array([[5], [0], [31], [5]], np.int32)
    view = t.vector_select(0, tensor(rows, "sbuf"))
    assert view.shape == (4, 6) and view.is_indirect()
    np.testing.assert_array_equal(array(view), reference[rows[:, 0]])
    same = t.ap([[6, 4], [1, 3]], 1, vector_offset=tensor(rows, "sbuf"), indirect_dim=0)
    np.testing.assert_array_equal(array(same), reference[rows[:, 0], 1:4])
    np.testing.assert_array_equal(array(view[:, 2:4]), reference[rows[:, 0], 2:4])
    with pytest.raises(errors.IllegalInstruction):
        view[0:2]
    with pytest.raises(errors.IllegalInstruction):
        view.view("int16")
    outside = t.vector_select(0, tensor(np.array([[32]], np.int32), "sbuf"))
    with pytest.raises(errors.OutOfBounds):
        array(outside)


# ---- mistakes ----------------------------------------------------------------------------------------------

TILE = (128, 4, 6)


@pytest.mark.parametrize(
    ("act", "kind", "id"),
    [
        (lambda t: t[128], errors.OutOfBounds, "out-of-bounds"),
        (lambda t: t[:, -5], errors.OutOfBounds, "out-of-bounds"),
        (lambda t: t[:, :5], errors.OutOfBounds, "out-of-bounds"),
        (lambda t: t[:, -5:], errors.OutOfBounds, "out-of-bounds"),
        (lambda t: array(t[:, 2:2]), errors.OutOfBounds, "out-of-bounds"),
        (lambda t: t[:, 2:2][:, 0:0], errors.OutOfBounds, "out-of-bounds"),
        (lambda t: t[:, 3:2], errors.OutOfBounds, "out-of-bounds"),
        (lambda t: t.slice(1, 2, 2), errors.OutOfBounds, "out-of-bounds"),
        (lambda t: t[:, _core.DynamicSlice(2, 3)], errors.OutOfBounds, "out-of-bounds"),
        (lambda t: t.slice(2, 0, 7), errors.OutOfBounds, "out-of-bounds"),
        (lambda t: t.select(1, 4), errors.OutOfBounds, "out-of-bounds"),
        (lambda t: array(t.ap([[24, 128], [1, 25]])), errors.OutOfBounds, "out-of-bounds"),
        (lambda t: array(t.ap([[24, 128], [1, 24]], offset=24)), errors.OutOfBounds, "out-of-bounds"),
        (lambda t: array(t.ap([[24, 128], [-1, 2]])), errors.OutOfBounds, "out-of-bounds"),
        (lambda t: array(t.ap([[24, 128], [1, 2]], offset=-1)), errors.OutOfBounds, "out-of-bounds"),
        (lambda t: t.ap([[48, 64], [1, 24]]), errors.IllegalInstruction, "partition-stride"),
        (lambda t: t[::2], errors.IllegalInstruction, "partition-stride"),
        (lambda t: t[:, ::-1], errors.UsageError, "slice-step"),
        (lambda t: t[0, 0, 0, 0], errors.UsageError, "too-many-indices"),
        (lambda t: t[..., ...], errors.UsageError, "too-many-indices"),
        (lambda t: t[None], errors.UsageError, "index-type"),
        (lambda t: t["a"], errors.UsageError, "index-type"),
        (lambda t: t.permute((1, 0, 2)), errors.IllegalInstruction, "partition-dim"),
        (lambda t: t.permute((0, 1)), errors.UsageError, "permute-dims"),
        (lambda t: t.permute((0, 1, 1)), errors.UsageError, "permute-dims"),
        (lambda t: t.expand_dim(0), errors.IllegalInstruction, "partition-dim"),
        (lambda t: t.expand_dim(4), errors.UsageError, "axis-out-of-range"),
        (lambda t: t[0:1].squeeze_dim(0), errors.IllegalInstruction, "partition-dim"),
        (lambda t: t.squeeze_dim(1), errors.UsageError, "squeeze-size"),
        (lambda t: t[:, 0:1, 0].squeeze_dim(1), errors.IllegalInstruction, "least-rank"),
        (lambda t: t[0:1].broadcast(0, 2), errors.IllegalInstruction, "partition-dim"),
        (lambda t: t.broadcast(1, 8), errors.UsageError, "broadcast-size"),
        (lambda t: t.reshape((64, 48)), errors.IllegalInstruction, "partition-dim"),
        (lambda t: t.reshape((128, 23)), errors.UsageError, "reshape-size"),
        (lambda t: t[:, :, :5].reshape((128, 20)), errors.IllegalInstruction, "reshape-layout"),
        (lambda t: t.permute((0, 2, 1)).reshape((128, 24)), errors.IllegalInstruction, "reshape-layout"),
        (lambda t: t.reshape_dim(0, (2, 64)), errors.IllegalInstruction, "partition-dim"),
        (lambda t: t.reshape_dim(1, (3, 2)), errors.UsageError, "reshape-size"),
        (lambda t: t.flatten_dims(0, 1), errors.IllegalInstruction, "partition-dim"),
        (lambda t: t[:, :, :5].flatten_dims(1, 2), errors.IllegalInstruction, "reshape-layout"),
        (lambda t: t[:, :, ::2].view("int16"), errors.IllegalInstruction, "view-dtype"),
        (lambda t: t[:, :, :3].view("int64"), errors.IllegalInstruction, "view-dtype"),
        (lambda t: t[:, :, 1:5].view("int64"), errors.IllegalInstruction, "view-dtype"),
        (lambda t: t.view("float7"), errors.UsageError, "unknown-dtype"),
        (lambda t: t.ap([[24, 128]]), errors.UsageError, "ap-pattern"),
        (lambda t: t.ap([[24, 128], [1, 2, 3]]), errors.UsageError, "ap-pattern"),
        (lambda t: t.rearrange(("a", "b"), ("a", "b")), errors.UsageError, "rearrange-pattern"),
        (lambda t: t.rearrange(("a", "b", "c"), ("a", "c")), errors.UsageError, "rearrange-pattern"),
        (lambda t: t.rearrange(("a", ("b", "d"), "c"), ("a", "c", "b", "d"), {"b": 3}), errors.UsageError,
         "rearrange-pattern"),
        (lambda t: t.vector_select(0, tensor(numbers(128, 1), "sbuf")), errors.IllegalInstruction, "indirect-space"),
        (lambda t: t.select(0, tensor(numbers(1, 1), "sbuf")), errors.IllegalInstruction, "partition-dim"),
        (lambda t: t.select(1, t), errors.UsageError, "indirect-offset"),
    ],
)
def test_mistakes_name_the_rule(act, kind, id):
    t = tensor(numbers(*TILE), "sbuf")
    with pytest.raises(kind) as caught:
        act(t)
    assert caught.value.id == id
    assert caught.value.here


def test_out_of_bounds_says_what_and_the_limit():
    with pytest.raises(errors.OutOfBounds) as caught:
        tensor(numbers(128, 64), "sbuf")[:, 60:70]
    assert "60:70" in caught.value.here and "[128, 64]" in caught.value.here and "64" in caught.value.limit
