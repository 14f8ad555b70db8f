"""Values in the order of the clock: a race shows its corruption, and a kernel without one keeps its bytes."""

import importlib
import os
import sys

import numpy as np
import pytest
from test_mistakes import MISTAKES, NAMES

import trena
from trena import errors, launch
from trena.nki import isa as nisa
from trena.nki import language as nl

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RACES = [(name, mistake) for name, (_, mistake) in zip(NAMES, MISTAKES)
         if mistake.id in {"data-race", "core-race"} and not mistake.time_only]


def bytes_of(kernel, arguments, mistake, values, **options):
    """Of all results and arguments; arguments that were one array stay one."""
    copies = {}
    own = [copies.setdefault(id(value), np.array(value)) if isinstance(value, np.ndarray) else value
           for value in arguments]
    run = trena.simulate(kernel, target=mistake.target, lnc=mistake.cores if mistake.cores > 1 else None, go_on=True,
                         values=values, **options)(*own)
    outputs = run.outputs if isinstance(run.outputs, (list, tuple)) else [run.outputs]
    arrays = [value for value in [*outputs, *own] if isinstance(value, np.ndarray)]
    return b"".join(array.tobytes() for array in arrays)


def right_arguments(mistake):
    return mistake.arguments if mistake.right_arguments is None else mistake.right_arguments


@pytest.fixture(autouse=True)
def no_findings_left():
    yield
    launch.findings.clear()


@pytest.mark.parametrize("mistake", [race[1] for race in RACES], ids=[race[0] for race in RACES])
def test_a_race_shows_its_corruption(mistake):
    wrong = bytes_of(mistake.wrong, mistake.arguments, mistake, "hardware-order")
    right = bytes_of(mistake.right, right_arguments(mistake), mistake, "hardware-order")
    assert wrong != right


@pytest.mark.parametrize("mistake", [mistake for _, mistake in MISTAKES if not mistake.time_only],
                         ids=[name for name, (_, mistake) in zip(NAMES, MISTAKES) if not mistake.time_only])
@pytest.mark.parametrize("schedule", ["list", "program"])
def test_a_twin_keeps_its_bytes(mistake, schedule):
    of = [bytes_of(mistake.right, right_arguments(mistake), mistake, values, schedule=schedule)
          for values in ("program-order", "hardware-order")]
    assert of[0] == of[1]


def test_the_kernels_of_the_mutants_keep_their_bytes():
    for kernel, (arguments, cores) in importlib.import_module("mutation").KERNELS.items():
        outputs = []
        for values in ("program-order", "hardware-order"):
            copies = [np.array(value) for value in arguments]
            run = trena.simulate(kernel, target="trn2", lnc=cores if cores > 1 else None, values=values)(*copies)
            results = run.outputs if isinstance(run.outputs, (list, tuple)) else [run.outputs]
            outputs.append(b"".join(np.asarray(item).tobytes() for item in [*results, *copies]))
        assert outputs[0] == outputs[1], kernel.__name__


def kernels_of_the_benchmarks():
    sys.path.insert(0, os.path.join(ROOT, "bench"))
    import trena.nki as nki
    from kernels import attention, matmul, small

    generator = np.random.default_rng(3)

    def normal(*shape):
        return generator.standard_normal(shape).astype(np.float32)

    square = normal(1024, 1024)
    yield matmul.make(nki, nisa, nl)["blocked"], (square, square)
    yield matmul.make(nki, nisa, nl)["tiled"], (normal(256, 256), normal(256, 512))
    yield attention.make(nki, nisa, nl)["attention"], (normal(128, 512), normal(128, 512), normal(512, 128))
    yield small.make(nki, nisa, nl)["recurrence"], (normal(128, 256), normal(128, 1))
    yield small.make(nki, nisa, nl)["small_products"], (normal(20, 32, 32), normal(20, 32, 32))


def test_kernels_of_the_benchmarks_keep_their_bytes_also_when_they_spill():
    for kernel, arrays in kernels_of_the_benchmarks():
        outputs = [trena.simulate(kernel, target="trn2", values=values, set=settings)(*arrays).outputs.tobytes()
                   for values, settings in [("program-order", ()), ("hardware-order", ()),
                                            ("hardware-order", ("core.sbuf_kib=64",))]]
        assert outputs[0] == outputs[1] == outputs[2], kernel


def test_a_reader_takes_what_is_there_when_it_starts():
    """The reader goes ahead of the writer that program order puts before it, and finds what nobody wrote."""
    def kernel(x):
        tile = nl.ndarray((128, 16), dtype=nl.float32, buffer=nl.sbuf, address=(0, 0))
        again = nl.ndarray((128, 16), dtype=nl.float32, buffer=nl.sbuf, address=(0, 0))
        result, out = nl.ndarray((128, 16), dtype=nl.float32, buffer=nl.sbuf), nl.ndarray((128, 16), dtype=nl.float32,
                                                                                          buffer=nl.shared_hbm)
        load = nisa.dma_copy(dst=tile, src=x)
        copy = nisa.tensor_copy(dst=result, src=again)
        if waits:
            copy.depends_on(load)
        nisa.dma_copy(dst=out, src=result)
        return out

    x = np.arange(2048, dtype=np.float32).reshape(128, 16)
    for waits in (False, True):
        runs = {values: trena.simulate(kernel, target="trn2", values=values)(x).outputs
                for values in ("program-order", "hardware-order")}
        np.testing.assert_array_equal(runs["program-order"], x)
        if waits:
            np.testing.assert_array_equal(runs["hardware-order"], x)
        else:
            assert np.isnan(runs["hardware-order"]).all()


def test_an_operand_is_read_as_it_was_at_the_start():
    """A long reader of an array of the caller, and a short writer of its alias that lands in the middle of it."""
    def kernel(x, alias):
        out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
        tile = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
        ones = nl.ndarray((1, 16), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=ones, value=-1.0)
        nisa.dma_copy(dst=tile, src=x)
        nisa.dma_copy(dst=alias[0:1, 0:16], src=ones)
        nisa.dma_copy(dst=out, src=tile)
        return out

    x = np.ones((128, 16384), np.float32)
    run = trena.simulate(kernel, target="trn2", values="hardware-order")(x, x)
    events = run.timing.events()
    load, write, _ = [k for k, name in enumerate(events["name"]) if name == "dma_copy"]
    assert events["start_ns"][load] < events["busy_until_ns"][write] < events["busy_until_ns"][load]
    assert (run.outputs == 1).all() and (x[0, :16] == -1).all() and (x.ravel()[16:] == 1).all()


def test_it_needs_values():
    with pytest.raises(errors.UsageError) as caught:
        trena.simulate(lambda x: x, target="trn2", time_only=True, values="hardware-order")(np.zeros(4, np.float32))
    assert caught.value.id == "values-time-only"


