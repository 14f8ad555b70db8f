"""Runs the instruction cases of tests/cases/*.toml (tests/cases/README.md describes them)."""

import pathlib

import numpy as np
import pytest

import trena
import trena.nki as nki
import trena.nki.isa as nisa
import trena.nki.language as nl
from trena import errors

tomllib = pytest.importorskip("tomllib")

FOLDER = pathlib.Path(__file__).parents[1] / "cases"
KEYS = {"name", "source", "targets", "tensors", "before", "call", "values", "engine", "time_ns", "within", "error"}


def load():
    for path in sorted(FOLDER.glob("*.toml")):
        for case in tomllib.loads(path.read_text())["case"]:
            for target in case.get("targets", ["trn2"]):
                yield pytest.param(case, target, id=f"{path.stem}: {case['name']} ({target})")


def filled(spec):
    values = np.array(spec["values"], dtype=np.float64)
    shape = spec["shape"]
    return np.broadcast_to(values, shape) if values.size == 1 else values.reshape(shape)


def launch(case, target):
    """The Run; its outputs are the tensors that `values` names, as float64 (all these values are exact)."""
    expected = sorted(case.get("values", {}))

    @nki.jit
    def kernel(unused):
        tensors = {}
        for name, spec in case["tensors"].items():
            dtype = getattr(nl, spec["dtype"])
            tile = nl.ndarray(spec["shape"], dtype=dtype, buffer=getattr(nl, spec.get("memory", "sbuf")))
            tensors[name] = tile
            if "values" in spec:
                staging = tile if spec.get("memory", "sbuf") == "sbuf" else nl.ndarray(spec["shape"], dtype=dtype,
                                                                                       buffer=nl.sbuf)
                nisa.dma_copy(dst=staging, src=nl.shared_constant(filled(spec).astype(host_type(spec["dtype"]))))
                if staging is not tile:
                    nisa.tensor_copy(dst=tile, src=staging)
        scope = {"nisa": nisa, "nl": nl, "np": np, **tensors}
        for line in [*case.get("before", []), case["call"]]:
            eval(line, scope)  # noqa: S307: the project's own test files
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


def host_type(name):
    import ml_dtypes

    return getattr(ml_dtypes, name, None) or np.dtype(name)


def event_of(run, instruction):
    """(engine, ns from start to completion) of the last event of that name."""
    events = run.timing.events()
    index = max(i for i, name in enumerate(events["name"]) if name == instruction)
    return events["rows"][events["row"][index]], events["end_ns"][index] - events["start_ns"][index]


@pytest.mark.parametrize("case, target", list(load()))
def test_case(case, target):
    assert set(case) <= KEYS, f"unknown keys {set(case) - KEYS}"
    assert case["source"] and ({"values", "time_ns", "error", "engine"} & set(case))
    if "error" in case:
        with pytest.raises(errors.Error) as caught:
            launch(case, target)
        assert caught.value.id == case["error"]
        return
    run = launch(case, target)
    outputs = run.outputs if isinstance(run.outputs, (tuple, list)) else (run.outputs,)
    for name, found in zip(sorted(case.get("values", {})), outputs):
        np.testing.assert_array_equal(np.asarray(found).astype(np.float64).ravel(),
                                      np.array(case["values"][name]).ravel())
    instruction = case["call"].split("(")[0].removeprefix("nisa.")
    engine, time_ns = event_of(run, instruction)
    assert engine == case.get("engine", engine)
    if "time_ns" in case:
        assert time_ns == pytest.approx(case["time_ns"], rel=case.get("within", 0.01))
