"""Random programs of legal instructions against NumPy, and malformed calls: each ends in a result or an error of Trena.

A program is data first: `Writer` draws its steps and follows them in NumPy; then one kernel runs them. A seed that
fails is all that is needed to see it again: `pytest tests/python/test_fuzz.py -k "1234"` after adding it to SEEDS.
"""

import numpy as np
import pytest

import trena
import trena.nki as nki
import trena.nki.isa as nisa
import trena.nki.language as nl
from oracle import rounded
from trena import errors

TARGETS = ["trn1", "inf2", "trn2", "trn3"]
FLOATS = ["float32", "bfloat16", "float16", "float8_e4m3", "float8_e5m2"]
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32"]


def wide(values):
    """What an engine computes on."""
    with np.errstate(invalid="ignore", over="ignore"):
        return flushed(np.asarray(values).astype(np.float32))


def flushed(values):
    return np.where(np.abs(values) < np.finfo(np.float32).tiny, np.float32(0), values).astype(np.float32)


def truth(condition):
    return condition.astype(np.float32)


BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "equal": lambda a, b: truth(a == b), "not_equal": lambda a, b: truth(a != b), "less": lambda a, b: truth(a < b),
    "less_equal": lambda a, b: truth(a <= b), "greater": lambda a, b: truth(a > b),
    "greater_equal": lambda a, b: truth(a >= b), "logical_and": lambda a, b: truth((a != 0) & (b != 0)),
    "logical_or": lambda a, b: truth((a != 0) | (b != 0)), "logical_xor": lambda a, b: truth((a != 0) ^ (b != 0)),
}
BITS = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}
FUNCTIONS = {
    "copy": lambda x: x, "square": lambda x: x * x, "abs": np.abs,
    "relu": lambda x: np.where(np.isnan(x), x, np.maximum(x, 0)), "sign": np.sign,
}


class Writer:
    """Draws a program: `steps` are functions of the tiles that emit one instruction each, `values` what tiles hold."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.target = TARGETS[seed % len(TARGETS)]
        self.partitions = int(self.random.choice([1, 7, 32, 64, 128]))
        self.columns = int(self.random.integers(1, 40))
        self.values, self.dtypes, self.steps, self.arguments = [], [], [], []
        for _ in range(3):
            self.load()
        for _ in range(int(self.random.integers(4, 12))):
            getattr(self, str(self.random.choice(STEPS)))()

    def pick(self, choices):
        return choices[int(self.random.integers(len(choices)))]

    def dtype(self, integers=True):
        return self.pick(FLOATS + INTEGERS if integers else FLOATS)

    def tile(self, values, dtype):
        """A new tile: its number."""
        self.values.append(values)
        self.dtypes.append(dtype)
        return len(self.values) - 1

    def source(self, kinds=None, shape=None):
        """A tile of the common shape, of one of these types; loaded if there is none."""
        shape = shape or (self.partitions, self.columns)
        found = [i for i, v in enumerate(self.values)
                 if v.shape == shape and (kinds is None or self.dtypes[i] in kinds)]
        return self.pick(found) if found else self.load(kinds, shape)

    def target_of(self, values, kinds=None):
        """Where a float32 result goes: a new tile, or an old one that is overwritten. (number, is it new)"""
        dtype = self.pick(kinds) if kinds else self.dtype()
        old = [i for i, v in enumerate(self.values) if v.shape == values.shape and self.dtypes[i] == dtype]
        if old and self.random.random() < 0.4:
            number = self.pick(old)
            self.values[number] = rounded(values, dtype)
            return number, False
        return self.tile(rounded(values, dtype), dtype), True

    def add(self, number_and_new, emit):
        number, new = number_and_new
        shape, dtype = self.values[number].shape, self.dtypes[number]

        def step(tiles):
            if new:
                tiles[number] = nl.ndarray(shape, getattr(nl, dtype))
            emit(tiles, tiles[number])

        self.steps.append(step)

    # ---- steps

    def load(self, kinds=None, shape=None):
        shape = shape or (self.partitions, self.columns)
        dtype = self.pick(kinds) if kinds else self.dtype()
        if dtype in INTEGERS:
            values = rounded(self.random.integers(0 if dtype[0] == "u" else -100, 100, shape), dtype)
        else:
            values = rounded(self.random.uniform(-8, 8, shape), dtype)
        number, argument = self.tile(values, dtype), len(self.arguments)
        self.arguments.append(values.copy())
        self.add((number, True), lambda tiles, dst: nisa.dma_copy(dst, nl.shared_constant(self.arguments[argument])))
        return number

    def copy(self):
        a = self.source()
        engines = ["vector", "gpsimd"] + (["scalar"] if self.target in ("trn2", "trn3") else [])
        engine = getattr(nisa.engine, self.pick(engines))
        # float32 in between, unless nothing is cast
        values = self.values[a].copy()
        if self.random.random() < 0.7:
            number, new = self.target_of(wide(values))
        else:
            number, new = self.tile(values, self.dtypes[a]), True
        self.add((number, new), lambda tiles, dst: nisa.tensor_copy(dst, tiles[a], engine=engine))
        if self.dtypes[number] == self.dtypes[a]:
            self.values[number] = values

    def window(self):
        """A copy between windows of two tiles, every second column."""
        a, b = self.source(), self.source()
        start, step = int(self.random.integers(self.columns)), self.pick([1, 2, 3])
        part = np.s_[:, start::step]
        moved = self.values[a][part]
        if self.dtypes[a] != self.dtypes[b]:
            moved = rounded(wide(moved), self.dtypes[b])
        self.values[b] = self.values[b].copy()
        self.values[b][part] = moved
        columns = self.columns
        self.add((b, False), lambda tiles, dst: nisa.tensor_copy(dst[:, start:columns:step],
                                                                 tiles[a][:, start:columns:step]))

    def tensor_tensor(self):
        a, b, op = self.source(), self.source(), self.pick(list(BINARY))
        with np.errstate(all="ignore"):
            result = flushed(BINARY[op](wide(self.values[a]), wide(self.values[b])))
        target = self.target_of(result, FLOATS + INTEGERS[:4])  # three int32 tiles would go to GpSimd
        self.add(target, lambda tiles, dst: nisa.tensor_tensor(dst, tiles[a], tiles[b], op=getattr(nl, op)))

    def tensor_tensor_int32(self):
        a, b, op = self.source(["int32"]), self.source(["int32"]), self.pick(["add", "subtract", "multiply", "maximum"])
        result = BINARY[op](self.values[a], self.values[b])
        number = self.tile(result, "int32")
        self.add((number, True), lambda tiles, dst: nisa.tensor_tensor(dst, tiles[a], tiles[b], op=getattr(nl, op)))

    def bits(self):
        kind = self.pick(["int32", "uint8", "int16"])
        a, b, op = self.source([kind]), self.source([kind]), self.pick(list(BITS))
        number = self.tile(BITS[op](self.values[a], self.values[b]), kind)
        self.add((number, True), lambda tiles, dst: nisa.tensor_tensor(dst, tiles[a], tiles[b], op=getattr(nl, op)))

    def tensor_scalar(self):
        a, op0, op1 = self.source(), self.pick(list(BINARY)), self.pick(list(BINARY))
        number, reverse = np.float32(self.random.integers(-4, 5)), bool(self.random.integers(2))
        lane = self.source(["float32"], (self.partitions, 1))
        with np.errstate(all="ignore"):
            x, y = wide(self.values[a]), wide(self.values[lane])
            x = flushed(BINARY[op0](*((number, x) if reverse else (x, number))))
            result = flushed(BINARY[op1](x, y))
        self.add(self.target_of(result), lambda tiles, dst: nisa.tensor_scalar(
            dst, tiles[a], op0=getattr(nl, op0), operand0=float(number), reverse0=reverse, op1=getattr(nl, op1),
            operand1=tiles[lane]))

    def scalar_tensor_tensor(self):
        a, b, op0, op1 = self.source(), self.source(), self.pick(list(BINARY)), self.pick(list(BINARY))
        with np.errstate(all="ignore"):
            x = flushed(BINARY[op0](wide(self.values[a]), np.float32(2)))
            result = flushed(BINARY[op1](wide(self.values[b]), x))
        self.add(self.target_of(result), lambda tiles, dst: nisa.scalar_tensor_tensor(
            dst, tiles[a], op0=getattr(nl, op0), operand0=2.0, op1=getattr(nl, op1), operand1=tiles[b], reverse1=True))

    def activation(self):
        a, op = self.source(), self.pick(list(FUNCTIONS))
        lane = self.source(["float32"], (self.partitions, 1))
        with np.errstate(all="ignore"):
            x = flushed(wide(self.values[a]) * np.float32(0.5))
            if op != "copy":
                x = flushed(x + wide(self.values[lane]))
            result = flushed(FUNCTIONS[op](x))
        self.add(self.target_of(result), lambda tiles, dst: nisa.activation(
            dst, op=getattr(nl, op), data=tiles[a], scale=0.5, bias=tiles[lane]))

    def reduce(self):
        a = self.source(["int8", "uint8", "int16"])  # whole numbers: exact in any order
        op = self.pick(["add", "maximum", "minimum"])
        how = {"add": np.sum, "maximum": np.max, "minimum": np.min}[op]
        result = how(wide(self.values[a]), axis=1, keepdims=True)
        negate = bool(self.random.integers(2))
        self.add(self.target_of(-result if negate else result, FLOATS), lambda tiles, dst: nisa.tensor_reduce(
            dst, op=getattr(nl, op), data=tiles[a], axis=1, negate=negate))

    def predicated(self):
        p, kind = self.source(["uint8", "uint16"]), self.dtype()
        a, b = self.source([kind]), self.source([kind])
        self.values[b] = np.where(self.values[p] != 0, self.values[a], self.values[b])
        self.add((b, False), lambda tiles, dst: nisa.tensor_copy_predicated(dst, tiles[a], tiles[p]))

    def select(self):
        a = self.source()
        step, offset, channel = (int(self.random.integers(-3, 4)) for _ in range(3))
        index = offset + channel * np.arange(self.partitions)[:, None] + step * np.arange(self.columns)
        result = np.where(index >= 0, wide(self.values[a]), np.float32(-2))
        columns = self.columns
        self.add(self.target_of(result), lambda tiles, dst: nisa.affine_select(
            dst, [[step, columns]], channel, tiles[a], -2.0, cmp_op=nl.greater_equal, offset=offset))

    def iota(self):
        step, channel = (int(self.random.integers(0, 3)) for _ in range(2))
        values = channel * np.arange(self.partitions)[:, None] + step * np.arange(self.columns)
        columns, kind = self.columns, self.pick(["int32", "float32"])
        self.add((self.tile(rounded(values, kind), kind), True),
                 lambda tiles, dst: nisa.iota(dst, [[step, columns]], channel_multiplier=channel))

    def gather(self):
        a = self.source()
        index = rounded(self.random.integers(0, self.columns, (self.partitions, self.columns)), "uint32")
        argument = len(self.arguments)
        self.arguments.append(index)
        number = self.tile(np.take_along_axis(self.values[a], index.astype(np.int64), axis=1), self.dtypes[a])

        def emit(tiles, dst):
            tile = nl.ndarray(index.shape, nl.uint32)
            nisa.dma_copy(tile, nl.shared_constant(self.arguments[argument]))
            nisa.nc_n_gather(dst, tiles[a], tile)

        self.add((number, True), emit)

    def round_trip(self):
        """Through HBM, cast on the way."""
        a = self.source()
        dtype = self.dtype()
        values = self.values[a] if dtype == self.dtypes[a] else rounded(wide(self.values[a]), dtype)
        shape = values.shape

        def emit(tiles, dst):
            far = nl.ndarray(shape, getattr(nl, dtype), buffer=nl.private_hbm)
            nisa.dma_copy(far, tiles[a])
            nisa.dma_copy(dst, far)

        self.add((self.tile(values, dtype), True), emit)

    def scan(self):
        a, b = self.source(), self.source()
        op0, op1 = self.pick(["multiply", "maximum"]), self.pick(["add", "subtract"])
        x, y = wide(self.values[a]), wide(self.values[b])
        state, result = np.full(self.partitions, 0.5, np.float32), np.empty_like(x)
        with np.errstate(all="ignore"):
            for i in range(self.columns):
                state = flushed(BINARY[op1](flushed(BINARY[op0](x[:, i], state)), y[:, i]))
                result[:, i] = state
        self.add(self.target_of(result, FLOATS), lambda tiles, dst: nisa.tensor_tensor_scan(
            dst, tiles[a], tiles[b], 0.5, op0=getattr(nl, op0), op1=getattr(nl, op1)))

    def cumulative(self):
        a, result = self.source(FLOATS + INTEGERS[:4]), []
        with np.errstate(all="ignore"):
            x = flushed(wide(self.values[a]) * np.float32(0.25))
            for column in x.T:
                result.append(flushed(column if not result else result[-1] + column))
        self.add(self.target_of(np.stack(result, axis=1), FLOATS), lambda tiles, dst: nisa.tensor_scalar_cumulative(
            dst, tiles[a], op0=nl.multiply, op1=nl.add, imm0=0.25))

    def select_reduce(self):
        if self.target in ("trn1", "inf2"):
            return
        p, a, reverse = self.source(["uint8"]), self.source(FLOATS + INTEGERS[:4]), bool(self.random.integers(2))
        chosen = (self.values[p] != 0) != reverse
        result = np.where(chosen, wide(self.values[a]), np.float32(-2))
        self.add(self.target_of(result), lambda tiles, dst: nisa.select_reduce(dst, tiles[p], tiles[a], -2.0,
                                                                               reverse_pred=reverse))

    def range_select(self):
        if self.target in ("trn1", "inf2"):
            return
        a, low = self.source(FLOATS), self.source(["float32"], (self.partitions, 1))
        start = int(self.random.integers(5))
        index = start + np.arange(self.columns)
        with np.errstate(invalid="ignore"):
            inside = (index >= wide(self.values[low])) & (index <= wide(self.values[low]))
        result = np.where(inside, wide(self.values[a]), np.float32(-3.4028235e38))
        self.add(self.target_of(result, ["float32"]), lambda tiles, dst: nisa.range_select(
            dst, tiles[a], nl.greater_equal, nl.less_equal, tiles[low], tiles[low], range_start=start))

    def top8(self):
        a = self.source()
        if self.columns < 8 or np.isnan(wide(self.values[a])).any():
            return
        result = -np.sort(-wide(self.values[a]), axis=1)[:, :8]
        self.add(self.target_of(result, FLOATS), lambda tiles, dst: nisa.max8(dst, tiles[a]))

    def product(self):
        """a.T @ b of small whole numbers through PSUM: exact."""
        rows, columns = self.columns, int(self.random.integers(1, 30))
        kinds = ["bfloat16", "float16", "float32", "float8_e5m2"]
        kind = self.pick(kinds)
        left = rounded(self.random.integers(-3, 4, (self.partitions, rows)), kind)
        right = rounded(self.random.integers(-3, 4, (self.partitions, columns)), kind)
        first = len(self.arguments)
        self.arguments += [left, right]
        result = wide(left).T @ wide(right)
        number = self.tile(result, "float32")

        def emit(tiles, dst):
            operands = [nl.ndarray(x.shape, getattr(nl, kind)) for x in (left, right)]
            for k, tile in enumerate(operands):
                nisa.dma_copy(tile, nl.shared_constant(self.arguments[first + k]))
            bank = nl.ndarray((rows, columns), nl.float32, buffer=nl.psum)
            nisa.nc_matmul(bank, operands[0], operands[1])
            nisa.tensor_copy(dst, bank)

        self.add((number, True), emit)

    def transpose(self):
        a = self.source(["float32", "bfloat16", "float16"])
        shape, kind = self.values[a].T.shape, self.dtypes[a]
        number = self.tile(self.values[a].T.copy(), kind)

        def emit(tiles, dst):
            bank = nl.ndarray(shape, getattr(nl, kind), buffer=nl.psum)
            nisa.nc_transpose(bank, tiles[a])
            nisa.tensor_copy(dst, bank)

        if np.isfinite(wide(self.values[a])).all():  # v2 multiplies by the identity: NaN and inf spread
            self.add((number, True), emit)
        else:
            self.values.pop(), self.dtypes.pop()

    # ---- running

    def run(self):
        kept = list(range(len(self.values)))

        @nki.jit
        def kernel(unused):
            tiles = {}
            for step in self.steps:
                step(tiles)
            outputs = []
            for number in kept:
                out = nl.ndarray(self.values[number].shape, getattr(nl, self.dtypes[number]), buffer=nl.shared_hbm)
                nisa.dma_copy(out, tiles[number])
                outputs.append(out)
            return tuple(outputs)

        run = trena.simulate(kernel, target=self.target)(np.zeros((1, 1), np.float32))
        assert run.time_ns > 0
        assert run.findings == []  # nothing to complain of
        for number, found in zip(kept, run.outputs):
            np.testing.assert_array_equal(np.asarray(found).astype(np.float64), self.values[number].astype(np.float64),
                                          err_msg=f"tile {number} {self.dtypes[number]}")


STEPS = ["load", "copy", "window", "tensor_tensor", "tensor_tensor_int32", "bits", "tensor_scalar",
         "scalar_tensor_tensor", "activation", "reduce", "predicated", "select", "iota", "gather", "round_trip",
         "product", "transpose", "scan", "cumulative", "select_reduce", "range_select", "top8"]


def check_programs(seeds):
    for seed in seeds:
        try:
            Writer(seed).run()
        except BaseException:
            print(f"seed {seed}")
            raise


@pytest.mark.parametrize("block", range(4))
def test_random_programs_agree_with_numpy(block):
    check_programs(range(100 * block, 100 * block + 100))


@pytest.mark.slow
def test_many_random_programs_agree_with_numpy():
    check_programs(range(1000, 101_000))


# ---- Malformed calls ---------------------------------------------------------------------------------


def junk(random, tiles):
    """Anything a caller might pass."""
    choices = [
        lambda: tiles[random.integers(len(tiles))], lambda: tiles[random.integers(len(tiles))],
        lambda: tiles[random.integers(len(tiles))], lambda: None, lambda: int(random.integers(-5, 300)),
        lambda: float(random.normal()), lambda: float("nan"), lambda: float("inf"), lambda: 2**31, lambda: -(2**63),
        lambda: 2**70, lambda: "vector", lambda: "", lambda: [], lambda: (0, 1), lambda: [[1, 4]], lambda: [[1, -4]],
        lambda: [2**62, 2**62], lambda: True, lambda: nl.add, lambda: nl.exp, lambda: nl.bitwise_and, lambda: nl.prelu,
        lambda: nl.float32, lambda: nl.float8_e8m0fnu, lambda: nisa.engine.gpsimd, lambda: nisa.engine.tensor,
        lambda: nisa.reduce_cmd.load_reduce, lambda: nisa.oob_mode.skip, lambda: nisa.dge_mode.hwdge,
        lambda: np.zeros((2, 2), np.float32), lambda: np.float64(3), lambda: object(), lambda: list(range(32)),
    ]
    return choices[random.integers(len(choices))]()


KEYWORDS = {
    name: text[text.index("(") + 1 :] for name in dir(trena._core.isa) if not name.startswith("_")
    for text in [str(getattr(trena._core.isa, name).__doc__)] if "(" in text
}


def argument_names(name):
    """From the signature in the docstring of a compiled function."""
    return [part.split(":")[0].strip() for part in KEYWORDS[name].split(") ->")[0].split(", ")
            if ":" in part and part.split(":")[0].strip().isidentifier()]


def some_tiles(random):
    tiles = []
    for _ in range(6):
        dtype = [nl.float32, nl.bfloat16, nl.int32, nl.uint32, nl.uint16, nl.uint8][random.integers(6)]
        buffer = [nl.sbuf, nl.sbuf, nl.sbuf, nl.psum, nl.private_hbm][random.integers(5)]
        shape = [(128, 8), (16, 8), (16, 1), (1, 1), (4, 2, 3), (128, 1)][random.integers(6)]
        tile = nl.ndarray(shape, dtype, buffer=buffer)
        if random.random() < 0.8:
            (nisa.memset if buffer != nl.private_hbm else lambda *a, **k: None)(tile, value=1)
        tiles.append(tile)
    return tiles


# Trena's own error; or Python's for arguments of a type that a compiled function does not take.
ACCEPTED = (errors.Error, TypeError)


VIEWS = {
    "slice": lambda t, j: t.slice(j(), j(), j()), "select": lambda t, j: t.select(j(), j()),
    "permute": lambda t, j: t.permute(j()), "broadcast": lambda t, j: t.broadcast(j(), j()),
    "reshape": lambda t, j: t.reshape(j()), "view": lambda t, j: t.view(j()), "ap": lambda t, j: t.ap(j(), offset=j()),
    "expand_dim": lambda t, j: t.expand_dim(j()), "squeeze_dim": lambda t, j: t.squeeze_dim(j()),
    "reshape_dim": lambda t, j: t.reshape_dim(j(), j()), "flatten_dims": lambda t, j: t.flatten_dims(j(), j()),
    "vector_select": lambda t, j: t.vector_select(j(), j()), "indirect": lambda t, j: t.indirect(j(), j()),
    "rearrange": lambda t, j: t.rearrange(j(), j(), j()), "__getitem__": lambda t, j: t[j(), j()],
}


FUNCTIONS_ON_TILES = """add subtract divide maximum power equal bitwise_and left_shift logical_not exp rsqrt gelu silu
copy sin floor mod sum max mean prod var all softmax rms_norm where dropout ones full zeros_like empty_like random_seed
expand_dims broadcast_to transpose matmul load_transpose2d gather_flattened ds affine_range dynamic_range ndarray zeros
load store program_id num_programs is_hbm is_sbuf shared_identity_matrix rand""".split()


def malformed(seed):
    random = np.random.default_rng(seed)
    target = TARGETS[seed % len(TARGETS)]

    @nki.jit
    def kernel(unused):
        tiles = some_tiles(random)
        for _ in range(20):
            drawn = lambda: junk(random, tiles)  # noqa: E731
            kind = random.integers(6)
            try:
                if kind < 3:
                    name = list(KEYWORDS)[random.integers(len(KEYWORDS))]
                    names = argument_names(name)
                    getattr(nisa, name)(**{key: drawn() for key in names if key != "name" and random.random() < 0.95})
                elif kind == 3:
                    name = list(VIEWS)[random.integers(len(VIEWS))]
                    VIEWS[name](tiles[random.integers(len(tiles))], drawn)
                elif kind == 4:
                    name = FUNCTIONS_ON_TILES[random.integers(len(FUNCTIONS_ON_TILES))]
                    result = getattr(nl, name)(*(drawn() for _ in range(random.integers(1, 4))))
                    if hasattr(result, "__next__"):
                        list(zip(range(3), result))
                else:
                    name = "ndarray"
                    shape = tuple(int(n) for n in random.integers(-1, 200, random.integers(0, 5)))
                    nl.ndarray(shape, [nl.float32, nl.uint8][random.integers(2)], buffer=drawn())
            except Exception as error:  # noqa: BLE001: the point of the test
                assert isinstance(error, ACCEPTED), f"seed {seed}: {name}: {error!r}"
        return unused

    try:
        trena.simulate(kernel, target=target)(np.zeros((1, 1), np.float32))
    except errors.Error:
        pass  # what was accepted may still not fit


@pytest.mark.parametrize("block", range(4))
def test_malformed_calls_are_refused(block):
    for seed in range(50 * block, 50 * block + 50):
        malformed(seed)


@pytest.mark.slow
def test_many_malformed_calls_are_refused():
    for seed in range(1000, 21_000):
        malformed(seed)
