"""Runs the instruction cases of tests/cases/*.toml (tests/cases/README.md describes them)."""

import math
import pathlib
import re
import zlib

import numpy as np
import pytest

import trena
import trena.nki as nki
import trena.nki.isa as nisa
import trena.nki.language as nl
from oracle import as_wide, host_type, rounded
from trena import errors

tomllib = pytest.importorskip("tomllib")

FOLDER = pathlib.Path(__file__).parents[1] / "cases"
KEYS = {"name", "source", "targets", "dtypes", "tensors", "before", "call", "values", "numpy", "ulps", "engine",
        "time_ns", "within", "error"}


def load():
    """One parameter for each case, target and dtype."""
    for path in sorted(FOLDER.glob("*.toml")):
        for case in tomllib.loads(path.read_text())["case"]:
            for target in case.get("targets", ["trn2"]):
                for dtype in case.get("dtypes", [""]):
                    words = (target, dtype) if dtype else (target,)
                    yield pytest.param(case, target, dtype, id=f"{path.stem}: {case['name']} ({' '.join(words)})")


def with_dtype(case, dtype):
    """The case with {dtype} filled in, in tensors, calls and expressions."""

    def fill(value):
        if isinstance(value, str):
            return value.replace("{dtype}", dtype)
        if isinstance(value, dict):
            return {key: fill(item) for key, item in value.items()}
        return [fill(item) for item in value] if isinstance(value, list) else value

    return fill(case) if dtype else case


def filled(case, name):
    """The host array of a tensor's `values` or `random`, in its own type."""
    spec = case["tensors"][name]
    shape = spec["shape"]
    if "random" in spec:
        low, high = spec["random"]
        generator = np.random.default_rng(zlib.crc32(f"{case['name']} {name}".encode()))
        draw = generator.integers if "int" in spec["dtype"] else generator.uniform
        return rounded(draw(low, high, shape), spec["dtype"])
    values = np.array(spec["values"], dtype=np.float64)
    return (np.broadcast_to(values, shape) if values.size == 1 else values.reshape(shape)).astype(
        host_type(spec["dtype"]))


def launch(case, target, expected):
    """The Run; its outputs are the tensors named in `expected`."""

    @nki.jit
    def kernel(unused):
        tensors = {}
        for name, spec in case["tensors"].items():
            dtype = getattr(nl, spec["dtype"])
            memory = spec.get("memory", "sbuf")
            tile = nl.ndarray(spec["shape"], dtype=dtype, buffer=getattr(nl, memory))
            tensors[name] = tile
            if "values" in spec or "random" in spec:
                staging = nl.ndarray(spec["shape"], dtype=dtype, buffer=nl.sbuf) if memory == "psum" else tile
                nisa.dma_copy(dst=staging, src=nl.shared_constant(filled(case, name)))
                if staging is not tile:
                    nisa.tensor_copy(dst=tile, src=staging)
        scope = {"nisa": nisa, "nl": nl, "np": np, **tensors}
        for line in [*case.get("before", []), case["call"]]:
            exec(line, scope)  # noqa: S102: the project's own test files
        outputs = []
        for name in expected:
            tile = tensors[name]
            if case["tensors"][name].get("memory") == "psum":
                sbuf = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.sbuf)
                nisa.tensor_copy(dst=sbuf, src=tile)
                tile = sbuf
            out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out, src=tile)
            outputs.append(out)
        return tuple(outputs) or unused

    return trena.simulate(kernel, target=target)(np.zeros((1, 1), np.float32))


def event_of(run, instruction):
    """(engine, ns from start to completion) of the last event of that name."""
    events = run.timing.events()
    index = max(i for i, name in enumerate(events["name"]) if name == instruction)
    return events["rows"][events["row"][index]], events["end_ns"][index] - events["start_ns"][index]


def numpy_values(case, name):
    """The `numpy` expression of an output in the output's type; inputs are float32, wide integers exact."""
    scope = {other: as_wide(filled(case, other), spec["dtype"]) for other, spec in case["tensors"].items()
             if "values" in spec or "random" in spec}
    result = eval(case["numpy"][name], {"np": np, "math": math, **scope})  # noqa: S307: the project's own test files
    return rounded(np.broadcast_to(result, case["tensors"][name]["shape"]), case["tensors"][name]["dtype"])


def distance(found, wanted):
    """Largest distance in steps of the element type; equal NaNs are at 0."""
    kind = {1: np.int8, 2: np.int16, 4: np.int32}[found.dtype.itemsize]
    lines = [np.ascontiguousarray(x).view(kind).astype(np.int64) for x in (found, wanted)]
    lines = [np.where(x < 0, np.iinfo(kind).min - x, x) for x in lines]
    same = np.isnan(found.astype(np.float64)) & np.isnan(wanted.astype(np.float64))
    return np.where(same, 0, abs(lines[0] - lines[1])).max()


@pytest.mark.parametrize("case, target, dtype", list(load()))
def test_case(case, target, dtype):
    assert set(case) <= KEYS, f"unknown keys {set(case) - KEYS}"
    assert case["source"] and ({"values", "numpy", "time_ns", "error", "engine"} & set(case))
    case = with_dtype(case, dtype)
    if "error" in case:
        with pytest.raises(errors.Error) as caught:
            launch(case, target, [])
        assert caught.value.id == case["error"]
        return
    expected = [*case.get("values", {}), *case.get("numpy", {})]
    run = launch(case, target, expected)
    outputs = run.outputs if isinstance(run.outputs, (tuple, list)) else (run.outputs,)
    for name, found in zip(expected, outputs):
        found = np.asarray(found)
        if name in case.get("values", {}):
            np.testing.assert_array_equal(found.astype(np.float64).ravel(), np.array(case["values"][name]).ravel())
        elif case.get("ulps"):
            assert distance(found, numpy_values(case, name)) <= case["ulps"]
        else:
            np.testing.assert_array_equal(found.astype(np.float64), numpy_values(case, name).astype(np.float64))
    instruction = case["call"].split("(")[0].removeprefix("nisa.")
    engine, time_ns = event_of(run, instruction)
    assert engine == case.get("engine", engine)
    if "time_ns" in case:
        assert time_ns == pytest.approx(case["time_ns"], rel=case.get("within", 0.01))


def test_every_instruction_has_a_case_on_every_machine():
    """Each instruction that a machine's file lists stands in a case on that machine, refusals included."""
    covered = set()
    for parameter in load():
        case, target, _ = parameter.values
        for line in [*case.get("before", []), case["call"]]:
            covered |= {(name, target) for name in re.findall(r"nisa\.(\w+)\(", line)}
    names = [name for name in dir(trena._core.isa) if not name.startswith("_")]
    missing = [f"{name} on {target}" for name in names for target in ("trn1", "inf2", "trn2", "trn3")
               if has_instruction(target, name) and (name, target) not in covered]
    assert not missing


def has_instruction(target, name):
    folder = pathlib.Path(__file__).parents[2] / "hardware"
    for path in folder.glob("*.toml"):
        machine = tomllib.loads(path.read_text())
        if machine["chip"]["name"] == target:
            return name in machine["legality"]["engines"]
    raise LookupError(target)
