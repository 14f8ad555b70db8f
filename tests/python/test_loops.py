"""Device loops, nl.no_reorder and depends_on: what they cost and what they order."""

import numpy as np
import pytest

import trena
from trena import errors, nki
from trena.nki import isa as nisa
from trena.nki import language as nl

X = np.ones((128, 512), np.float32)
BRANCH_NS = {"trn2": 104.0}  # INST-068, COMPARE_BRANCH


def simulate(kernel, *arguments, target="trn2"):
    return trena.simulate(kernel, target=target)(*arguments)


def events_of(run, name):
    """(engine, start, end) of the instructions of that name, by start."""
    events = run.timing.events()
    rows = [(events["rows"][events["row"][i]], events["start_ns"][i], events["end_ns"][i])
            for i, found in enumerate(events["name"]) if found == name]
    return sorted(rows, key=lambda row: row[1])


def refused(kernel, *arguments):
    with pytest.raises(errors.Error) as caught:
        simulate(kernel, *arguments)
    return caught.value.id


def store(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


def count_up(x, iterate):
    """x + 1 per iteration on the vector engine."""
    tile = nl.load(x)

    def body(_):
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)

    iterate(body)
    return store(tile)


@nki.jit
def with_fori_loop(x):
    return count_up(x, lambda body: nl.fori_loop(0, nisa.register_alloc(6), body, step=2))


@nki.jit
def with_dynamic_range(x):
    def iterate(body):
        for i in nl.dynamic_range(3):
            body(i)

    return count_up(x, iterate)


@nki.jit
def with_while_register(x):
    def iterate(body):
        register = nisa.register_alloc(3)
        while register:
            body(register)
            nisa.register_move(register, register - 1)

    return count_up(x, iterate)


@nki.jit
def with_while_loop(x):
    left = nl.ndarray((1, 1), nl.int32)
    nisa.memset(left, value=3)

    def iterate(body):
        def next_one(r):
            body(r)
            nisa.tensor_scalar(dst=left, data=left, op0=nl.subtract, operand0=1.0)
            nisa.register_load(r, left)
            return r

        nl.while_loop(nisa.register_alloc(3), next_one)

    return count_up(x, iterate)


@pytest.mark.parametrize("kernel", [with_fori_loop, with_dynamic_range, with_while_register, with_while_loop])
def test_three_iterations(kernel):
    run = simulate(kernel, X)
    np.testing.assert_array_equal(run.outputs, X + 3)
    branches = events_of(run, "compare_branch")
    assert [engine for engine, _, _ in branches].count("vector") == 3  # one for each iteration, where the body works
    for _, start, end in branches:
        assert end - start == pytest.approx(BRANCH_NS["trn2"], rel=0.001)


@nki.jit
def nothing_to_do(x):
    tile = nl.load(x)
    nl.while_loop(nisa.register_alloc(0), lambda r: 1 / 0)
    nl.fori_loop(5, 5, lambda i: 1 / 0)
    for _ in nl.dynamic_range(0):
        raise AssertionError
    return store(tile)


def test_a_loop_without_iterations_does_nothing():
    run = simulate(nothing_to_do, X)
    assert events_of(run, "compare_branch") == []


@nki.jit
def bad_step(x, step):
    nl.fori_loop(0, 4, lambda i: None, step=step)
    return x


@nki.jit
def bad_condition(x):
    nl.while_loop(nisa.register_alloc(1), lambda r: 0)
    return x


@nki.jit
def loop_in_no_reorder(x):
    with nl.no_reorder():
        nl.fori_loop(0, 1, lambda i: None)
    return x


@nki.jit
def writes_its_index(x):
    nl.fori_loop(0, 2, lambda i: nisa.register_move(i, 7))
    return x


def test_what_loops_refuse():
    assert refused(bad_step, X, 0) == "loop-step"
    assert refused(bad_step, X, -1) == "loop-step"
    assert refused(bad_step, X, 1.5) == "loop-step"
    assert refused(bad_condition, X) == "loop-condition"
    assert refused(loop_in_no_reorder, X) == "no-reorder-loop"
    assert refused(writes_its_index, X) == "register-frozen"


@nki.jit
def one_waits(x, ordered):
    """The copy waits for a load; the first memset, on the same engine, and the second, on another, would not."""
    late, early, other = (nl.ndarray(x.shape, x.dtype) for _ in range(3))
    tile = nl.load(x)

    def body():
        nisa.tensor_copy(dst=late, src=tile, engine=nisa.engine.vector)
        nisa.memset(early, value=1.0, engine=nisa.engine.vector)
        nisa.memset(other, value=2.0, engine=nisa.engine.gpsimd)

    if ordered:
        with nl.no_reorder():
            body()
    else:
        body()
    return store(late), store(early), store(other)


def test_no_reorder_keeps_the_order_of_each_engine():
    """What waits for nothing does not overtake on its engine; another engine does not care."""
    for ordered in (False, True):
        run = simulate(one_waits, X, ordered)
        (_, late, _), = events_of(run, "tensor_copy")
        starts = {engine: start for engine, start, _ in events_of(run, "memset")}
        assert (starts["vector"] >= late) == ordered and starts["gpsimd"] < late
        np.testing.assert_array_equal(run.outputs[0], X)


@nki.jit
def edges(x, edge):
    late, early = nl.ndarray(x.shape, x.dtype), nl.ndarray(x.shape, x.dtype)
    first = nisa.activation(dst=late, op=nl.copy, data=nl.load(x))
    second = nisa.memset(early, value=1.0)
    if edge:
        assert second.depends_on(first) is second
    return store(late), store(early)


def test_depends_on_waits_for_the_end():
    (_, _, done), = events_of(simulate(edges, X, True), "activation")
    (_, start, _), = events_of(simulate(edges, X, True), "memset")
    assert start >= done
    (_, start, _), = events_of(simulate(edges, X, False), "memset")
    assert start < done


@nki.jit
def turned_around(x):
    tile = nl.ndarray(x.shape, x.dtype)
    first, second = nisa.memset(tile, value=1.0), nisa.memset(tile, value=2.0)
    first.depends_on(second)
    return x


KEPT = []


@nki.jit
def of_another_launch(x):
    KEPT.append(nisa.memset(nl.ndarray(x.shape, x.dtype), value=1.0))
    KEPT[-1].depends_on(KEPT[0])
    return x


@nki.jit
def across_iterations(x, outside):
    tile = nl.ndarray(x.shape, x.dtype)
    handles = [nisa.memset(tile, value=0.0)]

    def body(_):
        handles.append(nisa.memset(tile, value=1.0))
        handles[-1].depends_on(handles[0 if outside else -2])

    nl.fori_loop(0, 2, body)
    return store(tile)


def test_what_depends_on_refuses():
    assert refused(turned_around, X) == "depends-on"
    assert refused(of_another_launch, X) == "depends-on"  # on itself
    assert refused(of_another_launch, X) == "depends-on"
    assert refused(across_iterations, X, False) == "depends-on"
    simulate(across_iterations, X, True)  # the producer stands around the loop


def test_a_mistake_in_a_body_is_the_kernels_own():
    @nki.jit
    def kernel(x, loop):
        loop(lambda register: {}["missing"])
        return x

    for loop in (lambda body: nl.fori_loop(0, 2, body), lambda body: nl.while_loop(nisa.register_alloc(1), body)):
        with pytest.raises(KeyError, match="missing"):
            kernel(X, loop)
