"""Tiles of the legacy API: values that instructions return, on top of the tensors of the current one.

An instruction's result is *pending* until something needs it: `x[...] = nisa.f(y)` then writes straight into x, as
the vendor's compiler does, and any other use makes a tile of its own. At most one result is pending, and it is
emitted before the next instruction, so program order is kept.
"""

from __future__ import annotations

import math
import threading
import warnings
import weakref

import numpy as np

from trena import _core, dtypes
from trena import launch as _launch
from trena.errors import IllegalInstruction, NotModelled, UsageError, users_line
from trena.nki import isa as _isa
from trena.nki.objects import PLACES
from trena.nki_legacy.index import Affine, Grid

_state = threading.local()  # .pending: the one result nobody has used yet


class ParDim(int):
    """nl.par_dim(128): the partition dimension of a shape; what stands before it counts blocks."""


def flush() -> None:
    """Emits the pending result into a tile of its own."""
    pending = getattr(_state, "pending", None)
    if pending is not None:
        _state.pending = None
        pending.materialise()


def discard() -> None:
    _state.pending = None


class Tile:
    """A tensor, a view of one, or a result that is still pending."""

    __array_priority__ = 1000

    def __init__(self, tensor=None, *, root=None):
        self._tensor = tensor
        self._owner = root  # not itself: a cycle would outlive the kernel's last reference
        self._zero = False  # zeros in PSUM that no instruction has written yet
        self._updated = False  # `x[i] += y` has already written x[i]
        # Of a root: the partitions that masked instructions wrote, None when no mask cut them; and whether nothing
        # has touched it yet.
        self._rows, self._fresh = None, False
        self._lodgers = []  # of a root: weak references to results that were written straight into it

    @property
    def _root(self):
        return self if self._owner is None else self._owner

    # What kernels ask.
    @property
    def shape(self):
        return tuple(self._tensor.shape)

    @property
    def nki_dtype(self):
        return self._tensor.dtype

    @property
    def dtype(self):
        """NumPy's dtype, as in the vendor's API."""
        return self.nki_dtype.dtype

    ndim = property(lambda self: len(self.shape))
    itemsize = property(lambda self: self.dtype.itemsize)
    size = property(lambda self: math.prod(self.shape))

    @property
    def space(self) -> str:
        return PLACES[self._tensor.buffer][0]

    @property
    def buffer(self):
        return self.resolve().buffer

    # What instructions ask.
    @property
    def rows(self):
        """(start, stop) of the partitions that masks left, None for all."""
        rows = self._root._rows
        return rows if rows is not None and self.shape[0] == self._root.shape[0] else None

    def note_written(self, limits, fresh):
        """An instruction has written `limits` of this tile, into which nobody had written before if it was `fresh`."""
        root = self._root
        if self.shape[0] != root.shape[0] or limits is None:
            root._rows = None
        elif fresh:
            root._rows = _rows_in(limits)

    def _would_mix(self, limits):
        """Would what stands here mix with rows that a mask left out? Then all is written, and reading them an error."""
        return isinstance(limits, Inherited) and not self._root._fresh and self.rows != _rows_in(limits)

    def axes(self):
        """Axes of the index this view was made with; None: made without."""
        return None

    def resolve(self, limits=None):
        """The tensor, shrunk to `limits` (from Mask.limits). Emits what is pending."""
        flush()
        self._root._write_zeros()
        self._root._fresh = False
        return restrict(self._tensor, limits)

    def target(self, limits=None):
        """As resolve, for a matmul that accumulates: zeros in PSUM need not be written (nki.md §5.1-2)."""
        return restrict(self._tensor, limits)

    def _write_zeros(self):
        if self._zero:
            self._zero = False
            _isa.memset(dst=self._tensor, value=0)

    # Views.
    def __getitem__(self, key):
        key = key if isinstance(key, tuple) else tuple(key) if isinstance(key, Grid) else (key,)
        if any(isinstance(entry, (Affine, Tile)) for entry in key):
            return IndexedTile(self, key)
        return self._view(lambda tensor: _basic(tensor, key))

    def settled(self):
        """The tensor, for making views: emits only what this tile itself waits for."""
        return self._tensor

    def _view(self, change):
        return Tile(change(self.settled()), root=self._root)

    def reshape(self, shape):
        return self._view(lambda tensor: tensor.reshape(tuple(int(n) for n in shape)))

    def view(self, dtype):
        return self._view(lambda tensor: tensor.view(dtypes.as_dtype(dtype)))

    def expand_dims(self, axis):
        return self._view(lambda tensor: tensor.expand_dim(axis % (tensor.ndim + 1)))

    def broadcast_to(self, shape):
        from trena.nki_legacy import language

        return language.broadcast_to(self, shape=shape)

    def astype(self, dtype):
        from trena.nki_legacy import language

        return language.copy(self, dtype=dtype)

    def assert_shape(self, shape):
        assert self.shape == tuple(shape), f"{self.shape} is not {tuple(shape)}"

    # Assignment.
    def __setitem__(self, key, value):
        self[key].assign(value)

    def assign(self, value):
        """self = value, element by element."""
        if isinstance(value, Tile) and value._updated:
            value._updated = False
            return
        self._move_lodgers_out()
        if isinstance(value, Tile):
            if value is getattr(_state, "pending", None) and value.fits(self):
                _state.pending = None
                value.emit_into(self)
                return
            value.resolve()
            fresh, limits = self._root._fresh, limits_for(None, value)
            if self._would_mix(limits):
                limits = None
            if limits != []:
                move(self.resolve(limits), value.resolve(limits))
            self.note_written(limits, fresh)
        else:
            _isa.memset(dst=self.resolve(), value=value)
            self.note_written(None, False)

    def _move_lodgers_out(self):
        """A result written straight here keeps its values while the kernel holds it, whatever is written next."""
        root, lodgers = self._root, self._root._lodgers
        root._lodgers = []
        for reference in lodgers:
            lodger = reference()
            if lodger is None or lodger is self:
                continue
            if {self.shape, lodger.shape} & {root.shape} or _same_place(lodger._tensor, self.settled()):
                lodger.move_out()
            else:
                root._lodgers.append(reference)

    def _update(self, other, name):
        from trena.nki_legacy import language

        self._move_lodgers_out()
        if name == "add" and isinstance(other, MatmulTile) and other is getattr(_state, "pending", None) \
                and self.space == "psum":
            _state.pending = None
            other.accumulate_into(self)
        else:
            language.combine_into(self, name, self, other)
        self._updated = True
        return self

    def __iadd__(self, other):
        return self._update(other, "add")

    def __isub__(self, other):
        return self._update(other, "subtract")

    def __imul__(self, other):
        return self._update(other, "multiply")

    def __itruediv__(self, other):
        from trena.nki_legacy import language

        self.assign(language.divide(self, other))
        self._updated = True
        return self

    def __bool__(self):
        if self.space == "hbm":
            return True  # an argument that was given: `if bias`
        raise UsageError("a tile has no truth value while a kernel is traced", id="ambiguous_tensor_truth_value",
                         here=f"a tile of shape {self.shape} in a Python condition", fix="use nl.where or a mask")

    def __repr__(self):
        return f"<tile {list(self.shape)} {self.dtype}>"


def _operator_method(name, reflected=False):
    def method(self, other):
        from trena.nki_legacy import language

        function = getattr(language, name)
        return function(other, self) if reflected else function(self, other)

    return method


for _python, _name in {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift", "mod": "mod",
}.items():
    setattr(Tile, f"__{_python}__", _operator_method(_name))
    setattr(Tile, f"__r{_python}__", _operator_method(_name, reflected=True))
for _python, _name in {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
                       "matmul": "matmul"}.items():
    setattr(Tile, f"__{_python}__", _operator_method(_name))
Tile.__neg__ = lambda self: _operator_method("multiply")(self, -1.0)
Tile.__invert__ = lambda self: __import__("trena.nki_legacy.language", fromlist=["invert"]).invert(self)


class IndexedTile(Tile):
    """base[i_p, i_f]: resolved late, because a mask may first cut what would be out of bounds."""

    def __init__(self, base, key):
        super().__init__(None, root=base._root)
        self._base = base
        self._key = _expand_ellipsis(key, base.ndim)
        self._indices = [entry for entry in self._key if isinstance(entry, Affine)]
        if any(isinstance(entry, slice) for entry in self._key):
            raise IllegalInstruction(
                "an index uses nl.arange in every dimension or slices in every dimension",
                id="unsupported_mixing_basic_advanced_tensor_indexing", here=f"{len(self._key)} indices, some of each",
                fix="write nl.arange(n)[None, :] instead of the slice",
            )
        for entry in self._key:
            if isinstance(entry, Tile):
                entry.settled()
        self._shape = _broadcast_shape([e.shape for e in self._key if isinstance(e, (Affine, Tile))])

    shape = property(lambda self: self._shape)
    nki_dtype = property(lambda self: self._base.nki_dtype)
    space = property(lambda self: self._base.space)

    def axes(self):
        return {axis for index in self._indices for axis in index.terms}

    def resolve(self, limits=None):
        return self._resolve(self._base.resolve(), limits)

    def target(self, limits=None):
        return self._resolve(self._base.settled(), limits)

    def _resolve(self, tensor, limits):
        limits = limits or [(0, size) for size in self._shape]
        return indexed_view(tensor, self._key, limits)

    def settled(self):
        return self._resolve(self._base.settled(), None)


def _same_place(a, b):
    return (a.offset, tuple(a.shape), tuple(a.strides)) == (b.offset, tuple(b.shape), tuple(b.strides))


def _expand_ellipsis(key, ndim):
    if Ellipsis not in [entry for entry in key if entry is Ellipsis]:
        return key
    position = next(k for k, entry in enumerate(key) if entry is Ellipsis)
    missing = ndim - (len(key) - 1)
    return key[:position] + (slice(None),) * missing + key[position + 1 :]


def _broadcast_shape(shapes):
    return tuple(np.broadcast_shapes(*shapes)) if shapes else ()


def _basic(tensor, key):
    """Slices and integers; None inserts a dimension of size 1."""
    plain = tuple(int(k) if isinstance(k, int) else k for k in key if k is not None)
    view = tensor[plain] if plain != (Ellipsis,) else tensor
    for position, entry in enumerate(key):
        if entry is None:
            view = view.expand_dim(position)
    return view


def indexed_view(tensor, key, limits):
    """The view tensor[key] for affine indices cut to `limits` of the result's dimensions."""
    rank = len(limits)
    if isinstance(key[0], Tile):  # rows by index: indirect, on the partition axis (nki.md §5.4-29)
        rows = restrict(key[0].resolve(), [limits[0], (0, 1)])
        tensor, key = tensor.vector_select(0, rows), (Affine(0, {}),) + tuple(key[1:])
        return _indirect_free_axes(tensor, key, limits)
    offsets, strides = [], []
    for entry in key:
        offset, steps = (entry.offset, [0] * rank) if isinstance(entry, Affine) else (int(entry), [0] * rank)
        if isinstance(entry, Affine):
            for axis, coefficient in entry.terms.items():
                dim = axis.dim + rank - axis.rank
                steps[dim] += coefficient
                offset += coefficient * limits[dim][0]
        offsets.append(offset)
        strides.append(steps)
    sizes = [stop - start for start, stop in limits]
    simple = _sliced_view(tensor, offsets, strides, sizes)
    return simple if simple is not None else _pattern_view(tensor, offsets, strides, sizes)


def _sliced_view(tensor, offsets, strides, sizes):
    """As slices, when every dimension of the result comes from exactly one of the tensor."""
    source = [None] * len(sizes)
    slices = []
    for t, steps in enumerate(strides):
        varying = [d for d, step in enumerate(steps) if step and sizes[d] > 1]
        if len(varying) > 1 or (varying and (steps[varying[0]] < 0 or source[varying[0]] is not None)):
            return None
        if varying:
            source[varying[0]] = t
        step, size = (steps[varying[0]], sizes[varying[0]]) if varying else (1, 1)
        slices.append(slice(offsets[t], offsets[t] + step * (size - 1) + 1, step))
    if any(source[d] is None and size > 1 for d, size in enumerate(sizes)):
        return None  # a dimension that repeats the same elements
    return _arrange(tensor[tuple(slices)], source, on_chip=PLACES[tensor.buffer][0] != "hbm")


def _arrange(view, source, on_chip):
    """Brings the dimensions of `view` into the order of `source`; the others have size 1 and go or stay as needed."""
    used = [t for t in source if t is not None]
    if on_chip and 0 not in used:
        if source[0] is not None:
            return None
        source = [0, *source[1:]]
        used = [0, *used]
    if on_chip and source[0] != 0:
        return None
    order = used + [t for t in range(view.ndim) if t not in used]
    if order != list(range(view.ndim)):
        view = view.permute(tuple(order))
    for t in range(view.ndim - 1, len(used) - 1, -1):
        if view.ndim > max(len(source), 1):
            view = view.squeeze_dim(t)
    used_count = 0
    for d, t in enumerate(source):
        if t is not None:
            used_count += 1
        elif view.ndim < len(source):
            view = view.expand_dim(d)
    return view


def _pattern_view(tensor, offsets, strides, sizes):
    """As an access pattern: what several indices per dimension, repeats and diagonals need."""
    tensor_strides = tensor.strides
    _check_bounds(tensor, offsets, strides, sizes)
    pattern = [
        [sum(s * steps[d] for s, steps in zip(tensor_strides, strides)), size] for d, size in enumerate(sizes)
    ]
    offset = sum(s * o for s, o in zip(tensor_strides, offsets))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tensor.ap(pattern, offset=offset)


def _check_bounds(tensor, offsets, strides, sizes):
    for t, (offset, steps) in enumerate(zip(offsets, strides)):
        low = offset + sum(min(0, step * (n - 1)) for step, n in zip(steps, sizes))
        high = offset + sum(max(0, step * (n - 1)) for step, n in zip(steps, sizes))
        if low < 0 or high >= tensor.shape[t]:
            from trena.errors import OutOfBounds

            raise OutOfBounds("an index stays inside its tensor", id="tensor_access_out_of_bound",
                              here=f"dimension {t} of {list(tensor.shape)} is indexed from {low} to {high}",
                              limit=f"0 to {tensor.shape[t] - 1}", fix="add a mask")


def _indirect_free_axes(tensor, key, limits):
    slices = [slice(None)]
    for d, entry in enumerate(key[1:], start=1):
        affine = entry if isinstance(entry, Affine) else Affine(int(entry), {})
        start, stop = limits[d] if affine.terms else (0, 1)
        step = next(iter(affine.terms.values()), 1)
        if len(affine.terms) > 1:
            raise NotModelled("an indirect load with such a free index is not modelled", id="not-modelled",
                              here="several axes in one free dimension")
        first = affine.offset + step * start
        slices.append(slice(first, first + step * (stop - start - 1) + 1, step))
    return tensor[tuple(slices)]


def restrict(tensor, limits):
    if limits is None or all(limit == (0, size) for limit, size in zip(limits, tensor.shape)):
        return tensor
    return tensor[tuple(slice(start, stop) for start, stop in limits)]


def limits_of(mask, shape):
    """None without a mask; an empty list when the mask leaves nothing."""
    if mask is None:
        return None
    if isinstance(mask, bool):
        return None if mask else []
    limits = mask.limits(shape)
    return [] if limits is None else limits


class Inherited(list):
    """Limits that no mask of the instruction says: its operands have no more."""


def _rows_in(limits):
    return limits[0] if limits else (0, 0)


def rows_of(limits, shape):
    """The same rows of another shape."""
    return limits and type(limits)([limits[0], *((0, size) for size in shape[1:])])


def limits_for(mask, *tiles, shape=None):
    """What an instruction on these tiles computes: what its mask leaves of the rows that all of them have.

    A masked load leaves rows of its tile unwritten. Instructions that read it without a mask leave them too, as the
    vendor's compiler does (its log names a pass MaskPropagation: aws-neuron-sdk issue 754); what mixes rows does not.
    """
    shape = shape or tiles[0].shape
    limits = limits_of(mask, shape)
    known = [tile.rows for tile in tiles if isinstance(tile, Tile) and tile.rows and tile.shape[0] == shape[0]]
    if limits == [] or not known:
        return limits
    start, stop = limits[0] if limits else (0, shape[0])
    kept = max(start, *(rows[0] for rows in known)), min(stop, *(rows[1] for rows in known))
    if kept == (start, stop):
        return limits
    if kept[0] >= kept[1]:
        return Inherited()
    return Inherited([kept, *(limits[1:] if limits else ((0, size) for size in shape[1:]))])


def move(dst, src):
    """dst = src by the engine that reaches both."""
    if PLACES[dst.buffer][0] == "hbm" or PLACES[src.buffer][0] == "hbm":
        if PLACES[src.buffer][0] == "psum":
            staged = new_tensor(src.shape, src.dtype)
            _isa.tensor_copy(dst=staged, src=src)
            src = staged
        _isa.dma_copy(dst=dst, src=src)
    else:
        _isa.tensor_copy(dst=dst, src=src)


def new_tensor(shape, dtype, space="sbuf", address=None, name=""):
    core = _launch.require("a legacy NKI instruction")
    return core.tensor(space, "local", tuple(int(n) for n in shape), dtypes.as_dtype(dtype), name, address)


class PendingTile(Tile):
    """The result of an instruction that has not been emitted.

    emit     called once with the tensor to write
    spaces   where the instruction can write; the first is where its own tile would be
    """

    def __init__(self, shape, dtype, emit, spaces=("sbuf", "psum"), limits=None):
        flush()
        super().__init__()
        self._shape = tuple(int(n) for n in shape)
        self._nki_dtype = dtypes.as_dtype(dtype)
        self._emit = emit
        self._spaces = spaces
        self._limits = limits
        self._line = users_line()
        self.note_written(limits, fresh=True)
        _state.pending = self

    shape = property(lambda self: self._shape if self._tensor is None else tuple(self._tensor.shape))
    nki_dtype = property(lambda self: self._nki_dtype)
    space = property(lambda self: self._spaces[0] if self._tensor is None else PLACES[self._tensor.buffer][0])

    def settled(self):
        if self._tensor is None:
            flush()
        if self._tensor is None:
            self.materialise()
        return self._tensor

    def fits(self, target: Tile) -> bool:
        return target.space in self._spaces and target.shape == self._shape and self._nki_dtype.name != "bool"

    def materialise(self):
        self._tensor = new_tensor(self._shape, self._nki_dtype, self._spaces[0])
        self._write(self._tensor)

    def emit_into(self, target: Tile):
        fresh = target._root._fresh
        if target._would_mix(self._limits):
            self.materialise()
            move(target.resolve(), self._tensor)
            return
        tensor = target.resolve()
        self._tensor = tensor
        self._write(tensor)
        target.note_written(self._limits, fresh)
        target._root._lodgers.append(weakref.ref(self))

    def move_out(self):
        """Into a tile of its own."""
        place, self._tensor = self._tensor, new_tensor(self._shape, self._nki_dtype)
        if self._limits != []:
            move(restrict(self._tensor, self._limits), restrict(place, self._limits))

    def _write(self, tensor):
        if self._limits == []:
            return
        _core.hold_position(*self._line)
        try:
            self._emit(restrict(tensor, self._limits))
        finally:
            _core.hold_position("", 0)

    def resolve(self, limits=None):
        flush()
        return restrict(self.settled(), limits)

    target = resolve


def untouched(shape, dtype, limits):
    """The result of an instruction of which `limits` (an empty list, from limits_for) leave nothing."""
    return PendingTile(shape, dtype, None, limits=limits)


class MatmulTile(PendingTile):
    """A product; `psum[...] += product` accumulates in the tensor engine."""

    def accumulate_into(self, target: Tile):
        tensor = target.target()
        target._root._zero = False
        self._write(tensor)  # the sum is not the product: who asks for that later gets it computed once more


class BlockTile(Tile):
    """A tensor with block dimensions: one tile per block, made when first touched (nki.md §5.4-32)."""

    def __init__(self, block_shape, tile_shape, make, nki_dtype, space, blocks=None, prefix=()):
        super().__init__()
        self._block_shape = block_shape
        self._tile_shape = tile_shape
        self._make = make
        self._nki_dtype = nki_dtype
        self._space = space
        self._blocks = {} if blocks is None else blocks
        self._prefix = prefix

    shape = property(lambda self: self._block_shape + self._tile_shape)
    nki_dtype = property(lambda self: self._nki_dtype)
    space = property(lambda self: self._space)

    def __getitem__(self, key):
        key = key if isinstance(key, tuple) else (key,)
        key = _expand_ellipsis(key, self.ndim)
        count = min(len(key), len(self._block_shape))
        for entry, size in zip(key[:count], self._block_shape):
            if not isinstance(entry, int):
                raise NotModelled("an index that spans several blocks is not modelled", id="not-modelled",
                                  here=f"block index {entry!r}", fix="index blocks with integers or loop variables")
            if not -size <= entry < size:
                raise UsageError("a block index stays inside its tensor", id="tensor_access_out_of_bound",
                                 here=f"block {int(entry)} of {size}")
        chosen = self._prefix + tuple(int(entry) % size for entry, size in zip(key[:count], self._block_shape))
        if count < len(self._block_shape):
            return BlockTile(self._block_shape[count:], self._tile_shape, self._make, self._nki_dtype, self._space,
                             self._blocks, chosen)
        if chosen not in self._blocks:
            self._blocks[chosen] = self._make(chosen)
        tile, rest = self._blocks[chosen], key[count:]
        return tile[rest] if rest else tile

    def resolve(self, limits=None):
        raise IllegalInstruction(
            "an instruction takes one tile", id="failed_to_infer_tile_from_local_tensor",
            here=f"a tensor of {math.prod(self._block_shape)} blocks", fix="index the block dimensions",
        )

    def assign(self, value):
        if isinstance(value, Tile):
            self.resolve()
        for block in np.ndindex(*self._block_shape):
            self[block].assign(value)


def as_tile(value):
    """Kernel arguments: tensors become tiles, in lists and tuples too."""
    if isinstance(value, _core.Tensor):
        return Tile(value)
    if isinstance(value, (list, tuple)):
        items = [as_tile(item) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    return value


def as_tensor(value):
    """Kernel results: tiles become tensors."""
    if isinstance(value, Tile):
        return value.resolve()
    if isinstance(value, (list, tuple)):
        items = [as_tensor(item) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    return value
