"""Breaks correct kernels one place at a time and asks whether the breakage is reported.

    python tests/mistakes/mutation.py [-v]

Mutants: an instruction that others depend on is dropped; the address of a tensor is shifted; a tile, or what one
instruction does of it, is shrunk; a meeting of two cores is skipped. Counted are those that change a byte of the
result (or that end without one); of these at least 95 % must be reported. Prints the figure for each kind, and
with -v each mutant that changed bytes in silence.
"""

import collections
import dataclasses
import os
import sys

import numpy as np

if __name__ == "__main__":
    ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path.insert(0, os.path.join(ROOT, "python"))

from table import hbm, loaded, numbers, psum, sbuf, stored  # noqa: E402

import trena  # noqa: E402
from trena import errors, launch  # noqa: E402
from trena.nki import isa as nisa  # noqa: E402
from trena.nki import language as nl  # noqa: E402

# ---- Kernels -----------------------------------------------------------------------------------------


def rotating(x, y):
    """x + y tile by tile, in two sets of buffers that the kernel placed itself."""
    out = hbm(*x.shape)
    for k in range(x.shape[1] // 64):
        part, base = slice(64 * k, 64 * (k + 1)), 1024 * (k % 2)
        a, b = sbuf(128, 64, address=(0, base)), sbuf(128, 64, address=(0, base + 256))
        total = sbuf(128, 64, address=(0, base + 512))
        nisa.dma_copy(dst=a, src=x[:, part])
        nisa.dma_copy(dst=b, src=y[:, part])
        nisa.tensor_tensor(dst=total, data1=a, data2=b, op=nl.add)
        nisa.dma_copy(dst=out[:, part], src=total)
    return out


def blocked_product(a_t, b):
    """a_t.T @ b over K in tiles, sums in PSUM banks chosen by the kernel."""
    out = hbm(128, 256)
    for n in range(2):
        total = psum(128, 128, address=(0, 2048 * n))
        for k in range(2):
            left, right = sbuf(128, 128), sbuf(128, 128)
            nisa.dma_copy(dst=left, src=a_t[128 * k : 128 * (k + 1), :])
            nisa.dma_copy(dst=right, src=b[128 * k : 128 * (k + 1), 128 * n : 128 * (n + 1)])
            nisa.nc_matmul(dst=total, stationary=left, moving=right, accumulate=k > 0)
        result = sbuf(128, 128)
        nisa.tensor_copy(dst=result, src=total)
        nisa.dma_copy(dst=out[:, 128 * n : 128 * (n + 1)], src=result)
    return out


def softmax(x):
    """exp(x - max) / sum, each step in a tile of its own."""
    tile, least, weights = loaded(x), sbuf(128, 1), sbuf(*x.shape)
    nisa.tensor_reduce(dst=least, data=tile, op=nl.maximum, axis=1, negate=True)
    nisa.activation(dst=weights, op=nl.exp, data=tile, bias=least)
    total, inverse, result = sbuf(128, 1), sbuf(128, 1), sbuf(*x.shape)
    nisa.tensor_reduce(dst=total, data=weights, op=nl.add, axis=1)
    nisa.reciprocal(dst=inverse, data=total)
    nisa.tensor_scalar(dst=result, data=weights, op0=nl.multiply, operand0=inverse)
    return stored(result)


def exchange(x):
    """Each core hands its half to the other through shared HBM, twice."""
    core, out, middle = nl.program_id(0), hbm(*x.shape), hbm(*x.shape)
    mine, other = slice(64 * core, 64 * core + 64), slice(64 - 64 * core, 128 - 64 * core)
    nisa.dma_copy(dst=middle[mine, :], src=loaded(x[mine, :]))
    nisa.core_barrier(data=middle, cores=(0, 1))
    nisa.dma_copy(dst=out[mine, :], src=loaded(middle[other, :]))
    nisa.core_barrier(data=middle, cores=(0, 1))
    nisa.dma_copy(dst=middle[other, :], src=loaded(x[mine, :]))
    nisa.core_barrier(data=middle, cores=(0, 1))
    tile = loaded(middle[mine, :])
    total = sbuf(64, x.shape[1])
    nisa.tensor_tensor(dst=total, data1=tile, data2=loaded(x[mine, :]), op=nl.subtract)
    last = hbm(*x.shape)
    nisa.dma_copy(dst=last[mine, :], src=total)
    return out, last


def gather(table, rows):
    """Rows of a table by an index vector, then scaled."""
    index, tile, width = loaded(rows), sbuf(rows.shape[0], table.shape[1]), table.shape[1]
    source = table.ap(pattern=[[width, rows.shape[0]], [1, width]], vector_offset=index, indirect_dim=0)
    nisa.dma_copy(dst=tile, src=source)
    result = sbuf(*tile.shape)
    nisa.tensor_scalar(dst=result, data=tile, op0=nl.multiply, operand0=2.0)
    return stored(result)


KERNELS = {
    rotating: ((numbers(128, 256) + 1, 3 * numbers(128, 256) + 2), 1),
    blocked_product: ((np.sin(numbers(256, 128)), np.cos(numbers(256, 256))), 1),
    softmax: ((np.sin(numbers(128, 64)),), 1),
    exchange: ((numbers(128, 16) + 1,), 2),
    gather: ((numbers(50, 16) + 1, np.array([[3], [49], [7]], np.uint32)), 1),
}

# ---- Mutants -----------------------------------------------------------------------------------------

COMPUTING = ["dma_copy", "tensor_tensor", "tensor_copy", "nc_matmul", "tensor_reduce", "activation", "reciprocal",
             "tensor_scalar"]
OPERANDS = ["dst", "src", "data", "data1", "data2", "moving"]


def drop(function, options):
    return None


def skip(function, options):
    return None


def shrink_work(function, options):
    """All operands of one instruction without their last column."""
    width = options["dst"].shape[-1]
    changed = {name: value[..., 0 : width - 1] if name in OPERANDS and not value.is_indirect()
               and value.shape[-1] == width > 1 else value for name, value in options.items()}
    return function(**changed)


def shrink_rows(function, options):
    """All operands of one instruction without their last row."""
    rows = options["dst"].shape[0]
    changed = {name: value[0 : rows - 1] if name in OPERANDS and name != "moving" and not value.is_indirect()
               and value.shape[0] == rows > 1 else value for name, value in options.items()}
    return function(**changed)


def shrink_tile(by):
    def change(function, shape, options):
        return function((*shape[:-1], max(1, shape[-1] - by)), **options)

    return change


def shift_address(by):
    def change(function, shape, options):
        partition, offset = options["address"]
        return function(shape, **{**options, "address": (partition, offset + by)})

    return change


@dataclasses.dataclass
class Mutant:
    kind: str  # as the table prints it
    where: str  # "isa" or "ndarray"
    change: object
    names: tuple = ()
    only_addressed: bool = False


MUTANTS = [
    Mutant("drop a dependence", "isa", drop, tuple(COMPUTING)),
    Mutant("shift an address", "ndarray", shift_address(-256), only_addressed=True),
    Mutant("shift an address", "ndarray", shift_address(-4), only_addressed=True),
    Mutant("shift an address", "ndarray", shift_address(4), only_addressed=True),
    Mutant("shift an address", "ndarray", shift_address(256), only_addressed=True),
    Mutant("shift an address", "ndarray", shift_address(-2048), only_addressed=True),
    Mutant("shrink a tile", "ndarray", shrink_tile(1)),
    Mutant("shrink a tile", "ndarray", shrink_tile(8)),
    Mutant("shrink a tile", "isa", shrink_work, tuple(COMPUTING)),
    Mutant("shrink a tile", "isa", shrink_rows, tuple(COMPUTING)),
    Mutant("skip a wait", "isa", skip, ("core_barrier",)),
]


class Counted:
    """Wraps functions of nki so that the k-th call of a mutant's kind is changed; counts the calls."""

    def __init__(self, mutant, turn):
        self.mutant, self.turn, self.calls, self.saved = mutant, turn, 0, []

    def __enter__(self):
        if self.mutant is not None:
            places = [(nisa, name) for name in self.mutant.names] if self.mutant.where == "isa" else [(nl, "ndarray")]
            for module, name in places:
                self.saved.append((module, name, getattr(module, name)))
                setattr(module, name, self.wrap(getattr(module, name)))
        return self

    def __exit__(self, *failure):
        for module, name, function in self.saved:
            setattr(module, name, function)

    def wrap(self, function):
        def call(*args, **options):
            if args and (str(options.get("buffer")) not in {"sbuf", "psum"}
                         or (self.mutant.only_addressed and options.get("address") is None)):
                return function(*args, **options)
            self.calls += 1
            if self.calls - 1 != self.turn:
                return function(*args, **options)
            return self.mutant.change(function, *args, options)

        return call


def outcome(kernel, arguments, cores, mutant=None, turn=-1):
    """(bytes of the results or None, what was reported, calls of the mutant's kind)"""
    copies = [np.array(value) for value in arguments]
    first = len(launch.findings)
    result, reported = None, set()
    with Counted(mutant, turn) as counted:
        try:
            run = trena.simulate(kernel, target="trn2", lnc=cores if cores > 1 else None, go_on=True)(*copies)
            outputs = run.outputs if isinstance(run.outputs, (list, tuple)) else [run.outputs]
            result = b"".join(np.asarray(item).tobytes() for item in [*outputs, *copies])
        except errors.Error as error:
            reported.add(error.id)
        except Exception as error:  # Python's own complaint, as of a slice
            reported.add(type(error).__name__)
    reported |= {finding.id for finding in launch.findings[first:]}
    del launch.findings[first:]
    return result, reported, counted.calls


def mutants():
    """(kernel, mutant, turn, changed a byte?, what was reported) for every mutant of every kernel."""
    for kernel, (arguments, cores) in KERNELS.items():
        right, reported, _ = outcome(kernel, arguments, cores)
        assert not reported, (kernel.__name__, reported)
        for mutant in MUTANTS:
            calls = outcome(kernel, arguments, cores, mutant)[2]
            for turn in range(calls):
                result, reported, _ = outcome(kernel, arguments, cores, mutant, turn)
                yield kernel, mutant, turn, result != right, reported


def figures():
    """kind -> (mutants, changed, reported of those), and the silent ones."""
    counts, silent = collections.defaultdict(lambda: [0, 0, 0]), []
    for kernel, mutant, turn, changed, reported in mutants():
        count = counts[mutant.kind]
        count[0] += 1
        count[1] += changed
        count[2] += changed and bool(reported)
        if changed and not reported:
            silent.append((kernel.__name__, mutant.kind, getattr(mutant.change, "__name__", ""), turn))
    return counts, silent


def main():
    counts, silent = figures()
    total = [sum(count[k] for count in counts.values()) for k in range(3)]
    print(f"{'mutants':<20} {'made':>6} {'change bytes':>13} {'reported':>9}")
    for kind, (made, changed, found) in [*counts.items(), ("all", total)]:
        print(f"{kind:<20} {made:>6} {changed:>13} {found:>9}  {100 * found / max(1, changed):5.1f} %")
    if "-v" in sys.argv:
        print(*silent, sep="\n")
    return 0 if total[2] >= 0.95 * total[1] else 1


if __name__ == "__main__":
    sys.exit(main())
