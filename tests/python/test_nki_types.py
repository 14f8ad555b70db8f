"""Dtypes, operators, objects: what kernels compare, hash and print (nki.md §6.3)."""

import copy
import dataclasses
import pickle

import ml_dtypes
import numpy as np
import pytest

import trena.nki as nki
import trena.nki.isa as nisa
import trena.nki.language as nl
from trena import dtypes, errors

NAMES = list(dtypes.ALL)


@pytest.mark.parametrize("name", NAMES)
def test_dtype_is_its_name(name):
    dtype = getattr(nki.dtype, name)
    assert str(dtype) == name and getattr(nl, str(dtype)) is dtype
    assert dtype == name and hash(dtype) == hash(name)
    assert {name: 1}[dtype] == 1 and {dtype: 1}[name] == 1
    assert copy.deepcopy(dtype) is dtype and pickle.loads(pickle.dumps(dtype)) is dtype


def test_numpy_takes_dtypes():
    assert np.zeros(3, dtype=nl.float8_e4m3).dtype == ml_dtypes.float8_e4m3
    assert np.zeros(3, dtype=nl.bfloat16).dtype == ml_dtypes.bfloat16
    assert np.zeros(3, dtype=nl.int32).dtype == np.int32
    assert nl.bool_ is nl.bool


@pytest.mark.parametrize("foreign, expected", [
    (np.float32, "float32"), (np.dtype(np.int8), "int8"), (ml_dtypes.bfloat16, "bfloat16"), ("float16", "float16"),
    (np.dtype(ml_dtypes.float8_e5m2), "float8_e5m2"), ("nl.uint8", "uint8"), (bool, "bool"),
])
def test_dtypes_of_other_libraries(foreign, expected):
    assert dtypes.as_dtype(foreign) is dtypes.ALL[expected]


def test_torch_dtypes():
    torch = pytest.importorskip("torch")
    assert dtypes.as_dtype(torch.bfloat16) is nl.bfloat16
    assert dtypes.as_dtype(torch.float8_e4m3fn) is nl.float8_e4m3fn


def test_unknown_dtype_is_refused():
    with pytest.raises(errors.UsageError) as caught:
        dtypes.as_dtype("complex64")
    assert caught.value.id == "unknown-dtype" and "bfloat16" in caught.value.limit


def test_operators_are_comparable():
    assert nl.add == nl.add and nl.add != nl.subtract
    assert nl.add in {nl.add} and hash(nl.max) == hash(nl.maximum)
    assert copy.deepcopy(nl.exp) is nl.exp and pickle.loads(pickle.dumps(nl.exp)) is nl.exp
    assert nl.exp.__name__ == "exp" and nl.exp.__doc__


def test_objects_take_keywords():
    class Config(nl.NKIObject):
        pass

    config = Config(tile=3, name="q")
    assert (config.tile, config.name) == (3, "q")


def test_dataclasses_may_lack_fields_and_have_more():
    @dataclasses.dataclass
    class Sizes(nl.NKIObject):
        rows: int
        columns: int
        tiles: list = dataclasses.field(default_factory=list)
        note = None  # no field

    plain = Sizes(3, 4)
    assert (plain.rows, plain.columns, plain.tiles) == (3, 4, [])
    odd = Sizes(rows=3, note="half")
    assert (odd.rows, odd.note, odd.tiles) == (3, "half", []) and not hasattr(odd, "columns")
    with pytest.raises(TypeError):
        Sizes(1, 2, 3, 4)


def test_memory_regions():
    assert nl.hbm is nl.private_hbm and nl.sbuf != nl.psum
    assert nl.sbuf == "sbuf" and str(nl.shared_hbm) == "shared_hbm"
    assert nl.is_hbm(nl.shared_hbm) and nl.is_on_chip(nl.psum) and not nl.is_sbuf(nl.psum)


def test_tile_sizes_are_plain_integers(monkeypatch):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn2")
    sizes = nl.tile_size
    # AWS nki.language.tile_size and trainium2_arch.rst: 128 partitions, 2 KiB banks, 8 of them.
    expected = {"pmax": 128, "psum_fmax": 512, "psum_bank_fmax": 512, "psum_bank_fmax_bytes": 2048, "psum_num_banks": 8,
                "gemm_stationary_fmax": 128, "gemm_moving_fmax": 512, "bn_stats_fmax": 512}
    assert {name: getattr(sizes, name) for name in expected} == expected
    assert all(type(getattr(sizes, name)) is int for name in expected)
    assert sizes.sbuf_fmax == sizes.sbuf_fmax_bytes // 4 and type(sizes.sbuf_fmax) is int


def test_enums():
    assert nisa.vector_engine is nisa.engine.vector
    assert {v.name for v in nisa.nc_version} == {"gen2", "gen3", "gen4"}
    from trena.nki.isa.constants import dge_mode, oob_mode

    assert dge_mode is nisa.dge_mode and oob_mode is nisa.oob_mode


def test_instructions_that_are_missing_say_so():
    with pytest.raises(AttributeError):
        nisa.no_such_instruction
