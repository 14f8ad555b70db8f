"""--nki-version: what the release notes, the migration guide and the stubs of NKI 0.2 to 0.6 say differs."""

import os
import subprocess
import sys

import numpy as np
import pytest

import trena
import trena.nki as nki
import trena.nki.isa as nisa
import trena.nki.language as nl
from trena import errors
from trena.nki import versions

X = np.arange(128 * 12, dtype=np.float32).reshape(128, 12)


@pytest.fixture(autouse=True)
def back_to_the_current_one():
    yield
    versions.use(None)


def run(kernel, *arrays, target="trn2"):
    return trena.simulate(kernel, target=target)(*arrays).outputs


def tile(shape, dtype=nl.float32, buffer=nl.sbuf):
    return nl.ndarray(shape, dtype, buffer=buffer)


def loaded(x):
    t = tile(x.shape, x.dtype)
    nisa.dma_copy(dst=t, src=x)
    return t


def stored(t):
    out = tile(t.shape, t.dtype, nl.shared_hbm)
    nisa.dma_copy(dst=out, src=t)
    return out


def test_versions_have_names_and_the_releases_that_brought_them():
    assert [versions.resolve(name) for name in ("0.4", "0.4.0", "2.30", "2.28.1", "2.26", None, "")] == [
        "0.4", "0.4", "0.4", "0.2", "0.1", None, None]
    with pytest.raises(errors.UsageError) as caught:
        versions.resolve("0.7")
    assert caught.value.id == "nki-version" and "0.6 (SDK 2.32)" in caught.value.limit


def test_every_version_can_be_undone():
    def everything():
        spaces = {"nki": nki, "isa": nisa, "language": nl, "tile_size": type(nl.tile_size), "tensor": nl.NkiTensor}
        return {(space, name): value for space, holder in spaces.items() for name, value in vars(holder).items()
                if not name.startswith("__")}

    before = everything()
    for version in versions.VERSIONS:
        assert versions.use(version) == version and versions.in_force() == version
        assert nki.__version__ == f"{version}.0+trena"
    versions.use(None)
    after = everything()
    assert before.keys() == after.keys() and all(before[key] is after[key] for key in before)


# Each name, the version that brought it (release notes), and one before.
@pytest.mark.parametrize("path, since, before", [
    ("isa.topk", "0.6", "0.5"), ("language.fori_loop", "0.6", "0.5"), ("collectives.all_gather_v", "0.6", "0.5"),
    ("language.float8_e8m0fnu", "0.5", "0.4"), ("language.tile_size.psum_num_banks", "0.5", "0.4"),
    ("isa.activate2", "0.4", "0.3"), ("language.abs_max", "0.4", "0.3"), ("language.tile_size.sbuf_fmax", "0.4", "0.3"),
    ("language.load", "0.3", "0.2"), ("simulate", "0.3", "0.2"), ("collectives.all_to_all_v", "0.3", "0.2"),
])
def test_later_names_are_absent(path, since, before):
    *owners, name = path.split(".")
    owner = nki
    for step in owners:
        owner = getattr(owner, step)
    versions.use(since)
    assert hasattr(owner, name)
    versions.use(before)
    assert not hasattr(owner, name)
    if owner in (nisa, nl):
        with pytest.raises(AttributeError, match=f"it came with {since}"):
            getattr(owner, name)


def test_parameters_of_0_2():
    versions.use("0.2")

    def kernel(x):
        t = loaded(x)
        total = tile(x.shape)
        nisa.memset(total, value=0.0)
        nisa.dma_compute(total, [t, t], [1.0, 1.0], nl.add)  # scales before reduce_op
        nisa.dma_copy(total, t, dst_rmw_op=nl.add, dge_mode=0)  # a member or its number
        chosen = tile(x.shape)
        nisa.affine_select(chosen, [[1, 12]], -6, 0, total, 0.0, cmp_op=nl.greater_equal)  # offset third
        whole = tile((128, 1), nl.int32)
        nisa.memset(whole, 2.75)
        return stored(chosen), stored(whole)

    chosen, whole = run(kernel, X)
    np.testing.assert_array_equal(chosen, np.where(np.arange(12) >= 6, 3 * X, 0))
    assert (whole == 2).all()
    versions.use("0.3")
    with pytest.raises((errors.Error, TypeError)):
        run(kernel, X)


def test_axis_one_was_the_last():
    cube = X.reshape(128, 4, 3)

    def kernel(x):
        result = tile((128, 4))
        nisa.tensor_reduce(result, nl.add, loaded(x), 1)
        return stored(result)

    versions.use("0.2")
    np.testing.assert_array_equal(run(kernel, cube), cube.sum(2))
    versions.use("0.3")
    with pytest.raises(errors.Error):
        run(kernel, cube)


def test_range_select_ignored_its_reduction():
    bounds = np.zeros((128, 1), np.float32)

    def kernel(x, low):
        result, best = tile(x.shape), tile((128, 1))
        nisa.memset(best, 5.0)
        edge = loaded(low)
        nisa.range_select(result, loaded(x), nl.greater_equal, nl.less, edge, edge, nisa.reduce_cmd.reset_reduce, best,
                          nl.maximum, 0, 0.0)
        return stored(result)

    versions.use("0.2")
    assert (run(kernel, X, bounds) == np.finfo(np.float32).min).all()  # nothing is in [0, 0)


def test_registers_and_required_parameters():
    def kernel(x):
        register = nisa.register_alloc()
        nisa.register_move(register, imm=7)
        assert int(register) == 7 and nl.program_id(0) == 0
        with pytest.raises(errors.UsageError, match="axis"):
            nl.program_id()
        return stored(loaded(x))

    versions.use("0.2")
    np.testing.assert_array_equal(run(kernel, X), X)


def test_offsets_of_patterns_counted_from_the_storage():
    def kernel(x):
        return stored_copy(loaded(x)[:, 4:12].ap([[12, 128], [1, 3]], offset=2))

    def stored_copy(view):
        result = tile(view.shape)
        nisa.tensor_copy(result, view)
        return stored(result)

    versions.use("0.4")
    np.testing.assert_array_equal(run(kernel, X), X[:, 2:5])
    versions.use("0.5")
    with pytest.warns(UserWarning, match="has an offset"):
        np.testing.assert_array_equal(run(kernel, X), X[:, 6:9])


def test_transposes():
    square = X[:12].copy()

    def to_lower_rank(x):
        deep = tile((16, 1, 1, 128), nl.bfloat16, nl.private_hbm)
        nisa.dma_copy(deep, x)
        flat = tile((128, 16), nl.bfloat16)
        nisa.dma_transpose(flat, deep, axes=(3, 1, 2, 0))
        return stored(flat)

    def on_the_wrong_engine(x):
        result = tile((12, 12), buffer=nl.psum)
        nisa.nc_transpose(result, loaded(x), nisa.engine.scalar)
        held = tile((12, 12))
        nisa.tensor_copy(held, result)
        return stored(held)

    rows = np.arange(16 * 128, dtype=np.float32).reshape(16, 1, 1, 128) % 251
    versions.use("0.3")
    np.testing.assert_array_equal(run(to_lower_rank, rows).astype(np.float32), rows.reshape(16, 128).T)
    np.testing.assert_array_equal(run(on_the_wrong_engine, square), square.T)
    versions.use("0.4")
    for kernel, argument in ((to_lower_rank, rows), (on_the_wrong_engine, square)):
        with pytest.raises(errors.Error):
            run(kernel, argument)


def test_functions_that_changed_their_engine():
    def kernel(x):
        return stored(nl.copy(loaded(x)))

    big = np.full((128, 4), 2**24 + 1, np.int32)
    versions.use("0.6")
    assert (run(kernel, big) == 2**24 + 1).all()
    versions.use("0.5")
    assert (run(kernel, big) == 2**24).all()  # through float32
    assert nl.copy == nki.language.operators.TABLE["copy"]


def test_what_is_refused_since():
    def strings(x):
        t = nl.ndarray(x.shape, x.dtype, "sbuf")
        nisa.dma_copy(t, x)
        return stored(t)

    def private(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.hbm)
        nisa.dma_copy(out, x)
        return out

    versions.use("0.2")
    np.testing.assert_array_equal(run(strings, X), X)
    versions.use("0.3")
    for act in (lambda: run(strings, X), lambda: run(private, X), lambda: nki.jit(platform_target="trn2"),
                lambda: nki.benchmark(private)):
        with pytest.raises(errors.UsageError) as caught:
            act()
        assert caught.value.id == "nki-version"


def test_which_api_a_kernel_is_of():
    import trena.nki_legacy as legacy
    import trena.nki_legacy.language as old

    @legacy.jit
    def doubled(x):
        out = old.ndarray(x.shape, x.dtype, buffer=old.shared_hbm)
        old.store(out, old.load(x) * 2)
        return out

    @nki.jit
    def copied(x):
        return stored(loaded(x))

    for version, refused in (("0.1", copied), ("0.4", doubled)):
        versions.use(version)
        with pytest.raises(errors.UsageError) as caught:
            refused(X)
        assert caught.value.id == "nki-version"
    versions.use("0.2")
    np.testing.assert_array_equal(doubled(X), 2 * X)
    np.testing.assert_array_equal(copied(X), X)


def test_what_is_not_modelled_says_so(monkeypatch):
    versions.use("0.4")
    with pytest.raises(errors.NotModelled, match="quantize_mx of NKI 0.4"):
        nisa.quantize_mx()
    versions.use("0.3")
    with pytest.raises(errors.NotModelled, match="tensor_copy_dynamic_src"):
        nisa.tensor_copy_dynamic_src()
    versions.use(None)
    for switch, value in (("NKI_PRECISE_FP", "0"), ("NKI_DMA_TRANSPOSE_AS_PE_TRANSPOSE", "true")):
        monkeypatch.setenv(switch, value)
        with pytest.raises(errors.NotModelled, match=switch):
            run(lambda x: stored(loaded(x)), X)
        monkeypatch.delenv(switch)


def test_the_option_reaches_scripts_and_their_children(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import subprocess, sys\n"
                      "probe = 'import nki.isa, nki; print(nki.__version__, hasattr(nki.isa, \"topk\"))'\n"
                      "exec(probe)\nsys.stdout.flush()\nsubprocess.run([sys.executable, '-c', probe], check=True)\n")
    command = [sys.executable, "-m", "trena", "run", "-q", "--nki-version"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([*command, "2.31", str(script)], capture_output=True, text=True, env=environment)
    assert done.stdout.splitlines() == ["0.5.0+trena False"] * 2, done.stderr
    done = subprocess.run([*command, "1.0", str(script)], capture_output=True, text=True, env=environment)
    assert done.returncode == errors.EXIT_USAGE and "nki-version" in done.stderr


def test_the_page_has_every_row():
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "..", "..", "docs", "compatibility.md"), encoding="utf-8") as page:
        lines = page.read().splitlines()
    assert [row for row in versions.table() if row not in lines] == []
