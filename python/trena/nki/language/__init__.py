"""nki.language: tensors, loops, operators and functions on tiles."""

from __future__ import annotations

import contextlib as _contextlib
import operator as _operator
import os as _os

import numpy as _np

from trena import _core, dtypes as _dtypes, errors as _errors
from trena import launch as _launch
from trena.nki.language import operators as _operators
from trena.nki.objects import PLACES as _PLACES
from trena.nki.objects import DynamicSlice, MemoryRegion, NKIObject
from trena.nki.registers import VirtualRegister as _VirtualRegister

_min, _range, _any = min, range, any  # nl.min and nl.range hide the built-ins below

globals().update(_dtypes.ALL)  # float32, bfloat16 …
bool_ = _dtypes.ALL["bool"]
DType = _dtypes.dtype
NkiTensor = _core.Tensor

sbuf = MemoryRegion.sbuf
psum = MemoryRegion.psum
private_hbm = MemoryRegion.private_hbm
hbm = private_hbm
shared_hbm = MemoryRegion.shared_hbm

globals().update(_operators.TABLE)  # add, exp …
globals().update(_operators.REDUCTIONS)  # sum, max …

from trena.nki import isa as _isa  # its missing instructions say "not modelled"
_tile = _operators.tile


# ---- Tensors -----------------------------------------------------------------------------------------


def ndarray(shape, dtype, buffer=sbuf, name="", address=None):
    """A new tensor, unwritten.

    shape    on the chip (P, F…): dimension 0 is the partition axis
    dtype    an element type of nki.language, NumPy or PyTorch
    buffer   nl.sbuf, nl.psum, nl.shared_hbm, nl.private_hbm
    address  (partition, byte offset inside the partition): the kernel's own placement
    """
    core = getattr(_launch._thread, "core", None) or _launch.require("nl.ndarray")
    try:
        space, role = _PLACES[buffer]
    except (KeyError, TypeError):
        raise _errors.UsageError("a tensor lives in a memory of the device", id="unknown-memory",
                                 here=f"buffer={buffer!r}", limit="nl.sbuf, nl.psum, nl.shared_hbm, nl.private_hbm"
                                 ) from None
    if type(dtype) is not DType:
        dtype = _dtypes.as_dtype(dtype)
    return core.tensor(space, role, shape if type(shape) is tuple else _shape(shape), dtype, name or "", address)


def _shape(shape):
    return (int(shape),) if isinstance(shape, (int, _VirtualRegister)) else tuple(int(n) for n in shape)


def full(shape, fill_value, dtype, buffer=sbuf, name=""):
    """A new tensor with every element set to a number. On HBM a tile of SBUF is stored row block by row block."""
    tensor = ndarray(shape, dtype, buffer, name)
    if _is_hbm(tensor.buffer):
        _fill_hbm(tensor, fill_value)
    else:
        _isa.memset(dst=tensor, value=fill_value)
    return tensor


def _fill_hbm(tensor, fill_value):
    rows = tensor.reshape((tensor.shape[0], -1)) if tensor.ndim > 1 else tensor.reshape((1, tensor.shape[0]))
    height, width = rows.shape
    partitions = tile_size.pmax
    tile = _tile((_min(height, partitions), width), tensor.dtype)
    _isa.memset(dst=tile, value=fill_value)
    for start in _range(0, height, partitions):
        count = _min(partitions, height - start)
        _isa.dma_copy(dst=rows[start : start + count, 0:width], src=tile[0:count, 0:width])


_full = full  # older versions of NKI lack the public name (versions.py)


def zeros(shape, dtype, buffer=sbuf, name=""):
    """A new tensor of zeros."""
    return _full(shape, 0, dtype, buffer, name)


def ones(shape, dtype, buffer=sbuf, name=""):
    """A new tensor of ones."""
    return _full(shape, 1, dtype, buffer, name)


def zeros_like(x, dtype=None, buffer=None, name=""):
    """Zeros in the shape of `x`; dtype and buffer too unless given."""
    return zeros(x.shape, dtype or x.dtype, buffer or x.buffer, name)


def empty_like(x, dtype=None, buffer=None, name=""):
    """Unwritten, in the shape of `x`; dtype and buffer too unless given."""
    return ndarray(x.shape, dtype or x.dtype, buffer or x.buffer, name)


def rand(shape, dtype, buffer=sbuf, name=""):
    """Uniform random numbers in [0, 1): rand2 on trn3; before, 24 bits of rng, scaled, as the vendor's wrapper uses rng
    there and does not say how."""
    tensor = ndarray(shape, dtype, buffer, name)
    if _isa.get_nc_version() >= _isa.nc_version.gen4:
        _isa.rand2(dst=tensor, min=0.0, max=1.0)
        return tensor
    bits = _tile(tensor.shape, _dtypes.ALL["uint32"])
    _isa.rng(dst=bits)
    _isa.tensor_scalar(dst=bits, data=bits, op0=right_shift, operand0=8)
    _isa.tensor_scalar(dst=tensor, data=bits, op0=multiply, operand0=2.0**-24)
    return tensor


def random_seed(seed):
    """Seeds the generator behind rand: a [1, 1] tile of 32 bits."""
    _isa.set_rng_seed(src_seeds=seed)


def shared_constant(constant):
    """HBM that holds data known before the launch: an array, or the path of a .npy file."""
    core = _launch.require("nl.shared_constant")
    array = _np.load(constant) if isinstance(constant, (str, _os.PathLike)) else _np.asarray(constant)
    dtype = _constant_dtype(array)
    array = _np.array(array.view(dtype.dtype), order="C")
    return core.program.external(array, dtype, array.shape, "constant", "constant")


def _constant_dtype(array):
    """Of a saved array; NumPy saves types it does not know as raw bytes (nki.md §6.4)."""
    if array.dtype.kind != "V" or array.dtype.fields or array.dtype.name in _dtypes.ALL:
        return _dtypes.as_dtype(array.dtype)
    if array.dtype.itemsize == 2:
        return _dtypes.ALL["bfloat16"]
    raise _errors.UsageError(
        "the dtype of a constant is known", id="unknown-dtype", here=f"{array.dtype.itemsize} raw bytes per element",
        fix="load the file yourself and view it with the right dtype",
    )


def shared_identity_matrix(n, dtype=_dtypes.ALL["uint8"], dst=None):
    """The n by n identity in SBUF, loaded from a constant."""
    dtype = _dtypes.as_dtype(dtype)
    constant = shared_constant(_np.eye(n, dtype=_np.float32).astype(dtype.dtype))
    if dst is None:
        dst = _tile((n, n), dtype)
    _isa.dma_copy(dst=dst, src=constant)
    return dst


def load(src, dtype=None):
    """A new SBUF tile with the values of an HBM tensor."""
    tile = _tile(_tile_shape(src), src.dtype if dtype is None else dtype)
    _isa.dma_copy(dst=tile, src=src)
    return tile


def _tile_shape(tensor):
    return tuple(tensor.shape) if tensor.ndim > 1 else (1, tensor.shape[0])


def store(dst, value):
    """Writes an SBUF tile to an HBM tensor."""
    _isa.dma_copy(dst=dst, src=value)


def load_transpose2d(src, dtype=None):
    """A new SBUF tile with the transpose of a 2-D HBM tensor."""
    rows, columns = src.shape
    tile = _tile((columns, rows), src.dtype)
    _isa.dma_transpose(dst=tile, src=src)
    return tile if dtype is None or _dtypes.as_dtype(dtype) == src.dtype else _operators.cast(tile, dtype)


def _assign(tensor, key, value):
    """t[key] = tile or number. The stubs have the method and no text: a copy, or a memset, is Trena's reading."""
    part = tensor[key]
    if not _operators.is_tile(value):
        _isa.memset(dst=part, value=value)
    elif "sbuf" in (str(part.buffer), str(value.buffer)) and not (_is_hbm(part.buffer) or _is_hbm(value.buffer)):
        _isa.tensor_copy(dst=part, src=value)
    else:
        _isa.dma_copy(dst=part, src=value)


def _no_numpy(tensor, *args, **more):
    raise _errors.UsageError("NumPy does not compute with tensors of the device", id="argument-type",
                             here=f"{tensor!r} as an array", fix="use the functions of nki.language and nki.isa")


def ds(start, size):
    """`size` elements from `start`, as an index: t[:, nl.ds(i * 512, 512)]."""
    return DynamicSlice(start, size)


def is_hbm(buffer) -> bool:
    """Is it any HBM region?"""
    return _PLACES[buffer][0] == "hbm"


_is_hbm = is_hbm


def is_sbuf(buffer) -> bool:
    """Is it SBUF?"""
    return _PLACES[buffer][0] == "sbuf"


def is_psum(buffer) -> bool:
    """Is it PSUM?"""
    return _PLACES[buffer][0] == "psum"


def is_on_chip(buffer) -> bool:
    """Is it SBUF or PSUM?"""
    return not is_hbm(buffer)


# ---- Loops and the grid ------------------------------------------------------------------------------


def _loop(start, stop=None, step=1):
    """A loop that is unrolled while tracing: its indices are plain integers."""
    return _range(_whole(start)) if stop is None else _range(_whole(start), _whole(stop), _whole(step))


def _whole(number):
    """A bound of an index or a loop: an integer, a register, or a float without a fraction (rows / 128)."""
    if isinstance(number, float) and number.is_integer():
        return int(number)
    try:
        return _operator.index(number)
    except TypeError:
        raise _errors.UsageError("a bound is an integer", id="argument-type", here=f"{number!r}") from None


affine_range = sequential_range = static_range = range = _loop


def dynamic_range(start, stop=None, step=1):
    """A loop on the device whose bounds may be registers. Its index is a frozen register."""
    first, past = (0, start) if stop is None else (start, stop)
    return _on_device(_range(int(first), int(past), _loop_step(step)))


def _loop_step(step):
    if isinstance(step, int) and step > 0:
        return int(step)
    raise _errors.UsageError("the step of a device loop is a positive integer", id="loop-step", here=f"step={step!r}")


def _on_device(indices):
    """The body runs for each index; each engine that works in it ends an iteration with a compare-and-branch."""
    for index in indices:
        first = _core.begin_iteration()
        try:
            yield _VirtualRegister(index, frozen=True)
            _core.branch(first)
        finally:
            _core.leave_iteration()


def fori_loop(lower, upper, body_fun, step=1):
    """body_fun(i) for i in lower, lower + step, … below upper; bounds may be registers."""
    for index in _on_device(_range(int(lower), int(upper), _loop_step(step))):
        body_fun(index)


def while_loop(init, body_fun):
    """r = init; while r is not zero: r = body_fun(r)."""
    register = init
    while int(register) != 0:
        first = _core.begin_iteration()
        try:
            register = body_fun(_VirtualRegister(int(register)))
            if not isinstance(register, _VirtualRegister):
                raise _errors.UsageError("the body of nl.while_loop returns the register that it goes on by",
                                         id="loop-condition", here=f"{register!r}")
            _core.branch(first)
        finally:
            _core.leave_iteration()


def program_id(axis=0):
    """This core's number in the launch grid; 0 without a grid."""
    core = _launch.require("nl.program_id")
    _check_axis(axis, core)
    return core.index


def num_programs(axes=0):
    """How many cores run the kernel; 1 without a grid."""
    return _launch.require("nl.num_programs").launch.core_count


def program_ndim():
    """Dimensions of the launch grid: 0 without one."""
    return len(_launch.require("nl.program_ndim").launch.grid)


def _check_axis(axis, core):
    if axis not in (0, -1):
        raise _errors.UsageError("the launch grid has one axis", id="grid-axis", here=f"axis={axis}", limit="0")


@_contextlib.contextmanager
def no_reorder():
    """`with nl.no_reorder():` keeps what is inside in program order on each engine; engines overlap as ever."""
    _launch.require("nl.no_reorder")
    _core.keep_order(True)
    try:
        yield
    finally:
        _core.keep_order(False)


def device_print(print_prefix, tensor):
    """Prints the values a tensor has now."""
    print(print_prefix, _launch.to_array(tensor))


def par_dim(size):
    """Marks the partition dimension of a shape; in this API it is always dimension 0."""
    return size


# ---- Functions on tiles ------------------------------------------------------------------------------


def cast(x, dtype):
    """A copy of `x` in another element type."""
    return _operators.cast(x, dtype)


def mean(x, axis, dtype=None, keepdims=False):
    """Arithmetic mean over free axes, in float32."""
    total = _operators.reduce(add, x, axis, _dtypes.ALL["float32"], keepdims)
    return _operators.scale(total, multiply, 1.0 / _count(x, axis), x.dtype if dtype is None else dtype)


def _count(x, axis):
    axes = (axis,) if isinstance(axis, int) else axis
    return int(_np.prod([x.shape[a] for a in axes]))


def _per_partition(x, op0, operand0, dtype=None, op1=None, operand1=None):
    """x op0 operand0 [op1 operand1], operands [P, 1] or numbers."""
    dst = _tile(x.shape, x.dtype if dtype is None else dtype)
    _isa.tensor_scalar(dst=dst, data=x, op0=op0, operand0=operand0, op1=op1, operand1=operand1)
    return dst


def _flat(x):
    """All free axes as one: what the [P, 1] forms want."""
    return x if x.ndim == 2 else x.reshape((x.shape[0], _count(x, tuple(_range(1, x.ndim)))))


def _last_axes(x, axis, name):
    axes = sorted(a % x.ndim for a in ((axis,) if isinstance(axis, int) else axis))
    if axes != list(_range(1, x.ndim)):
        raise _errors.NotModelled(f"nl.{name} over some of the free axes is not modelled", id="not-modelled",
                                  here=f"axis={axis} of {list(x.shape)}", limit="all free axes")


def var(x, axis, dtype=None, keepdims=False):
    """Variance over the free axes, in float32; the reduced axes are kept whatever keepdims says, as the vendor's."""
    _last_axes(x, axis, "var")
    wide = _dtypes.ALL["float32"]
    centred = _per_partition(_flat(x), subtract, mean(_flat(x), 1, wide), wide)
    return mean(square(centred), 1, x.dtype if dtype is None else dtype, True).reshape(
        _operators.reduced_shape(x, axis, True))


def softmax(x, axis=-1, dtype=None):
    """exp(x - max) / sum over the free axes, in float32."""
    _last_axes(x, axis, "softmax")
    wide = _dtypes.ALL["float32"]
    flat = _flat(x)
    lowest = _operators.reduce(maximum, flat, 1, wide, True, negate=True)
    powers, total, inverse = _tile(flat.shape, wide), _tile((x.shape[0], 1), wide), _tile((x.shape[0], 1), wide)
    _isa.activation_reduce(dst=powers, op=exp, data=flat, reduce_op=add, reduce_res=total, bias=lowest)
    _isa.reciprocal(dst=inverse, data=total)
    return _per_partition(powers, multiply, inverse, x.dtype if dtype is None else dtype).reshape(tuple(x.shape))


def rms_norm(x, w, axis, n, epsilon=1e-06, dtype=None, compute_dtype=None):
    """x / sqrt(sum(x²) / n + epsilon) * w over the free axes."""
    _last_axes(x, axis, "rms_norm")
    wide = _dtypes.ALL["float32"] if compute_dtype is None else _dtypes.as_dtype(compute_dtype)
    flat = _flat(x)
    total = _operators.reduce(add, _operators.activate(square, flat, wide), 1, wide, True)
    shifted = _per_partition(total, multiply, 1.0 / n, wide, add, float(epsilon))
    normal = _per_partition(flat, multiply, _operators.activate(rsqrt, shifted, wide), wide).reshape(tuple(x.shape))
    return _operators.elementwise(multiply, normal, w, x.dtype if dtype is None else dtype)


def where(condition, x, y, dtype=None):
    """x where the condition is not zero, else y; x and y may be numbers."""
    dst = _tile(condition.shape, dtype or _operators.result_dtype(x, y, None) if _any_tile(x, y) else condition.dtype)
    chosen, other = (_as_tile(v, dst) for v in (x, y))
    predicate = _operators.scale(condition, not_equal, 0.0, _dtypes.ALL["uint8"])
    _isa.tensor_copy(dst=dst, src=other)
    _isa.tensor_copy_predicated(dst=dst, src=chosen, predicate=predicate)
    return dst


def _any_tile(*values):
    return _operators.is_tile(values[0]) or _operators.is_tile(values[1])


def _as_tile(value, like):
    """A tile of the dtype and shape of `like`."""
    if _operators.is_tile(value):
        return value if value.dtype == like.dtype else _operators.cast(value, like.dtype)
    return _full(like.shape, value, like.dtype)


def dropout(x, rate, dtype=None):
    """x with elements zeroed with probability `rate` (a number or [P, 1])."""
    dst = _tile(x.shape, x.dtype if dtype is None else dtype)
    _isa.dropout(dst=dst, data=x, prob=rate)
    return dst


def expand_dims(x, axis):
    """A view with a new axis of size 1."""
    return x.expand_dim(axis % (x.ndim + 1))


def broadcast_to(x, shape, dtype=None):
    """A tile of that shape with size-1 axes repeated.

    Free axes are read again and again by a copy. The partition axis is spread by a product with ones on the
    tensor engine: the vendor documents no lowering, so the time of that case is an estimate.
    """
    shape, dtype = _shape(shape), x.dtype if dtype is None else _dtypes.as_dtype(dtype)
    if tuple(x.shape) == shape:
        return x if dtype == x.dtype else _operators.cast(x, dtype)
    if len(shape) != x.ndim or _any(have not in (1, want) for have, want in zip(x.shape, shape)):
        raise _errors.UsageError("a broadcast repeats axes of size 1 and keeps the others", id="shape-mismatch",
                                 here=f"{list(x.shape)} to {list(shape)}")
    if x.shape[0] != shape[0]:
        x = _spread_partitions(x, shape[0], dtype)
        if tuple(x.shape) == shape:
            return x
    view = x
    for axis, want in enumerate(shape):
        if axis > 0 and view.shape[axis] != want:
            view = view.broadcast(axis, want)
    return _operators.cast(view, dtype)


def _spread_partitions(x, partitions, dtype):
    """[1, F…] to [partitions, F…]: ones[1, partitions].T @ x, a bank of PSUM at a time; integers by way of HBM."""
    flat = _flat(x)
    width, step = flat.shape[1], tile_size.gemm_moving_fmax
    dst = _tile((partitions, width), dtype)
    if flat.dtype.is_integer:
        row = ndarray((1, width), flat.dtype, buffer=private_hbm)
        _isa.dma_copy(dst=row, src=flat)
        _isa.dma_copy(dst=dst, src=row.broadcast(0, partitions))
        return dst.reshape((partitions,) + tuple(x.shape)[1:])
    weights = _full((1, partitions), 1.0, flat.dtype)
    for start in _range(0, width, step):
        stop = _min(start + step, width)
        product = _tile((partitions, stop - start), _dtypes.ALL["float32"], "psum")
        _isa.nc_matmul(dst=product, stationary=weights, moving=flat[0:1, start:stop], is_stationary_onezero=True)
        _isa.tensor_copy(dst=dst[0:partitions, start:stop], src=product)
    return dst.reshape((partitions,) + tuple(x.shape)[1:])


def transpose(x, dtype=None):
    """The transpose of a 2-D tile, in PSUM."""
    dst = _tile((x.shape[1], x.shape[0]), x.dtype if dtype is None else dtype, "psum")
    _isa.nc_transpose(dst=dst, data=x)
    return dst


def matmul(x, y, transpose_x=False):
    """x @ y in PSUM as float32; transpose_x=True: x is already [K, M]."""
    stationary = x if transpose_x else copy(transpose(x))
    dst = _tile((stationary.shape[1], y.shape[1]), _dtypes.ALL["float32"], "psum")
    _isa.nc_matmul(dst=dst, stationary=stationary, moving=y)
    return dst


def gather_flattened(data, indices, axis=0, dtype=None):
    """dst[p, i] = data[p, indices[p, i]], the free axes of data flattened."""
    dst = _tile(indices.shape, data.dtype if dtype is None else dtype)
    _isa.nc_n_gather(dst=dst, data=data, indices=indices)
    return dst


# ---- Limits of the machine ---------------------------------------------------------------------------


class _TileSize(NKIObject):
    """Sizes of the machine the kernel runs on, as plain integers."""

    def _figure(self, key):
        return _launch.read_figure(key)

    @property
    def pmax(self) -> int:
        """Partitions of a tile."""
        return self._figure("core.sbuf.partitions")

    @property
    def psum_bank_fmax_bytes(self) -> int:
        """Bytes of one PSUM bank in one partition."""
        return self._figure("core.psum.bank_bytes")

    @property
    def psum_bank_fmax(self) -> int:
        """float32 elements of one PSUM bank in one partition."""
        return self._figure("core.psum.bank_bytes") // 4

    psum_fmax = psum_bank_fmax

    @property
    def psum_num_banks(self) -> int:
        """PSUM banks of one partition."""
        return self._figure("core.psum.banks")

    @property
    def gemm_stationary_fmax(self) -> int:
        """Free elements of the stationary operand of a product."""
        return self._figure("core.tensor.max_stationary_columns")

    @property
    def gemm_moving_fmax(self) -> int:
        """Free elements of the moving operand of a product with a float32 result in one bank."""
        return _min(self._figure("core.tensor.max_moving_columns"), self.psum_fmax)

    bn_stats_fmax = psum_bank_fmax

    @property
    def psum_min_align(self) -> int:
        """Bytes that an address in PSUM is a multiple of."""
        return self._figure("core.psum.alignment_bytes")

    @property
    def sbuf_min_align(self) -> int:
        """Bytes that an address in SBUF is a multiple of."""
        return self._figure("core.sbuf.alignment_bytes")

    @property
    def sbuf_size_bytes(self) -> int:
        """Bytes of SBUF, all partitions."""
        return int(self._figure("core.sbuf.partition_kib") * 1024) * self.pmax

    @property
    def sbuf_fmax_bytes(self) -> int:
        """Usable bytes of SBUF in one partition."""
        return int(self._figure("core.sbuf.partition_kib") * 1024) - self._figure("core.sbuf.reserved_bytes")

    @property
    def sbuf_fmax(self) -> int:
        """Usable float32 elements of SBUF in one partition."""
        return self.sbuf_fmax_bytes // 4

    total_available_sbuf_size = sbuf_fmax_bytes


tile_size = _TileSize()
NkiTensor.__setitem__ = _operators.guarded(_assign, "NkiTensor[…] = …")
NkiTensor.__array__ = _no_numpy


def __getattr__(name: str):
    from trena.nki.versions import why_absent

    raise AttributeError(f"module 'nki.language' has no attribute {name!r}" + why_absent("language", name))


# Wrong arguments end in an error of Trena, wherever inside Python they are noticed.
_operators.guard_functions(globals(), "nl", but=("fori_loop", "while_loop"))
