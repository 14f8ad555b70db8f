"""Bad input is a named error with the user's line, the rule, the value and the limit; the process stays usable."""

import inspect

import numpy as np
import pytest

import trena
from trena import errors, nki
from trena.nki import isa as nisa
from trena.nki import language as nl

X = np.ones((128, 512), np.float32)


def _sbuf(shape, dtype=nl.float32, **options):
    return nl.ndarray(shape, dtype, buffer=nl.sbuf, **options)


def _psum(shape, dtype=nl.float32):
    return nl.ndarray(shape, dtype, buffer=nl.psum)


def _loaded(x):
    tile = _sbuf(x.shape)
    nisa.dma_copy(dst=tile, src=x)
    return tile


@nki.jit
def partition_too_long(x):
    _sbuf((129, 4))


@nki.jit
def psum_bank_overflow(x):
    tile = _loaded(x)
    total = _psum((128, 1024))
    nisa.nc_matmul(dst=total[:, 256:768], stationary=tile[:, 0:128], moving=tile)


@nki.jit
def dtype_refused(x):
    tile = _sbuf((128, 128), nl.int32)
    nisa.memset(dst=tile, value=1)
    nisa.nc_matmul(dst=_psum((128, 128)), stationary=tile, moving=tile)


@nki.jit
def two_psum_operands(x):
    a, b, out = _psum((128, 64)), _psum((128, 64)), _sbuf((128, 64))
    nisa.memset(dst=a, value=1.0)
    nisa.memset(dst=b, value=1.0)
    nisa.tensor_tensor(dst=out, data1=a, data2=b, op=nl.add)


@nki.jit
def slice_out_of_range(x):
    nisa.dma_copy(dst=_sbuf((128, 128)), src=x[:, 448:576])


@nki.jit
def unwritten_read(x):
    nisa.tensor_copy(dst=_sbuf((128, 8)), src=_sbuf((128, 8)))


@nki.jit
def addresses_overlap(x):
    first, second, out = _sbuf((128, 64), address=(0, 0)), _sbuf((128, 64), address=(0, 128)), _sbuf((128, 64))
    nisa.memset(dst=first, value=1.0)
    nisa.memset(dst=second, value=2.0)
    nisa.tensor_copy(dst=out, src=first)


@nki.jit
def address_outside(x):
    _sbuf((128, 64), address=(0, 212_000 + 900))


@nki.jit
def psum_over_full(x):
    banks = [_psum((128, 512)) for _ in range(9)]
    for bank in banks:
        nisa.memset(dst=bank, value=0.0)
    for bank in banks:
        nisa.tensor_copy(dst=_sbuf((128, 512)), src=bank)


@nki.jit
def tensor_over_sbuf(x):
    _sbuf((128, 60_000))


@nki.jit
def partition_start(x):
    tile = _loaded(x)
    nisa.tensor_copy(dst=_sbuf((64, 512)), src=tile[16:80, :])


# kernel: id, exception class, what the message must name (values and limits)
CASES = {
    partition_too_long: ("partition-limit", errors.CapacityError, ["129", "128"]),
    psum_bank_overflow: ("psum-bank-overflow", errors.IllegalInstruction, ["1024", "3072", "2048"]),
    dtype_refused: ("dtype-refused", errors.IllegalInstruction, ["int32", "bfloat16"]),
    two_psum_operands: ("two-psum-operands", errors.IllegalInstruction, ["psum"]),
    slice_out_of_range: ("out-of-bounds", errors.OutOfBounds, ["576", "512"]),
    unwritten_read: ("unwritten-read", errors.UnwrittenRead, ["never written"]),
    addresses_overlap: ("address-overlap", errors.Hazard, ["byte 0"]),
    address_outside: ("sbuf-capacity", errors.CapacityError, ["212984"]),
    psum_over_full: ("psum-capacity", errors.CapacityError, ["8 banks"]),
    tensor_over_sbuf: ("sbuf-capacity", errors.CapacityError, ["240000", "212984"]),
    partition_start: ("partition-start", errors.IllegalInstruction, ["64 partitions from partition 16"]),
}


@pytest.mark.parametrize("kernel", CASES, ids=lambda kernel: kernel.__name__)
def test_named_error_with_line_rule_value_and_limit(kernel):
    identifier, kind, words = CASES[kernel]
    with pytest.raises(errors.Error) as caught:
        trena.simulate(kernel, target="trn2")(X)
    error = caught.value
    assert error.id == identifier
    assert type(error) is kind
    source, first = inspect.getsourcelines(kernel.func)
    assert error.file == __file__
    # The line is the kernel's, or that of the helper of this file it called.
    assert first <= error.line < first + len(source) or error.line < 40
    assert error.rule
    for word in words:
        assert word in error.here + error.limit, (word, error.here, error.limit)


def test_a_second_name_for_the_same_bytes_is_no_mistake():
    @nki.jit
    def kernel(x):
        out = nl.ndarray((128, 64), x.dtype, buffer=nl.shared_hbm)
        tile, alias = _sbuf((128, 64), address=(0, 0)), _sbuf((128, 64), address=(0, 0))
        nisa.dma_copy(dst=tile, src=x[:, 0:64])
        nisa.dma_copy(dst=out, src=alias)
        return out

    np.testing.assert_array_equal(trena.simulate(kernel, target="trn2")(X).outputs, X[:, :64])


@pytest.mark.parametrize(
    ("call", "here", "limit"),
    [
        (lambda tile: nisa.tensor_copy(dst=tile, src=X), "src is ndarray", "src: Tensor"),
        (lambda tile: nisa.tensor_copy(tile, "tile"), "src is str", "src: Tensor"),
        (lambda tile: nisa.memset(dst=tile, value=1.0, colour=3), "colour is int", None),
        (lambda tile: nisa.tensor_tensor(dst=tile, data1=tile, op=nl.add), "data2 is missing", None),
        (lambda tile: tile.reshape_dim("x", (1, 2)), "str", None),
    ],
)
def test_arguments_of_a_wrong_type(call, here, limit):
    @nki.jit
    def kernel(x):
        call(_loaded(x))

    with pytest.raises(errors.ArgumentTypes) as caught:
        trena.simulate(kernel, target="trn2")(X)
    assert isinstance(caught.value, TypeError)
    assert caught.value.id == "argument-types" and here in caught.value.here
    assert limit is None or caught.value.limit == limit
    assert caught.value.file == __file__ and caught.value.line == call.__code__.co_firstlineno


def test_an_operator_of_two_values_needs_an_operand():
    @nki.jit
    def kernel(x):
        tile = _loaded(x)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.rsqrt, operand0=None)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0, op1=nl.add)

    with pytest.raises(errors.UsageError) as caught:
        trena.simulate(kernel, target="trn2")(X)
    assert caught.value.id == "operand-missing" and caught.value.here == "op1=nl.add, operand1=None"


def test_a_type_error_of_the_kernel_itself_stays_as_it_is():
    @nki.jit
    def kernel(x):
        return len(3)

    with pytest.raises(TypeError, match="has no len") as caught:
        trena.simulate(kernel, target="trn2")(X)
    assert not isinstance(caught.value, errors.Error)


def test_two_cores_where_the_chip_joins_none():
    with pytest.raises(errors.IllegalInstruction) as caught:
        trena.simulate(unwritten_read[2], target="trn1")(X)
    assert caught.value.id == "lnc-size" and "kernel[2] on trn1" in caught.value.here and caught.value.limit == "1"


def test_unknown_target():
    with pytest.raises(errors.MachineError) as caught:
        trena.simulate(unwritten_read, target="trn9")(X)
    assert caught.value.id == "machine-unknown"
    assert "trn9" in str(caught.value) and "trn2" in str(caught.value)


def test_the_process_stays_usable_after_errors():
    @nki.jit
    def good(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=_loaded(x))
        return out

    for kernel in CASES:
        with pytest.raises(errors.Error):
            trena.simulate(kernel, target="trn2")(X)
    np.testing.assert_array_equal(trena.simulate(good, target="trn2")(X).outputs, X)
