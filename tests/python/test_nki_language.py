"""Functions of nki.language on tiles, against NumPy."""

import numpy as np
import pytest

import trena
import trena.nki as nki
import trena.nki.isa as nisa
import trena.nki.language as nl

GENERATOR = np.random.default_rng(11)
X = GENERATOR.uniform(0.25, 3.0, (128, 32)).astype(np.float32)
Y = GENERATOR.uniform(0.25, 3.0, (128, 32)).astype(np.float32)
SIGNED = GENERATOR.uniform(-6, 6, (128, 32)).astype(np.float32)


def apply(function, *arrays):
    """function on SBUF tiles of the arrays, as an array."""

    @nki.jit
    def kernel(*tensors):
        value = function(*[nl.load(t) for t in tensors])
        if str(value.buffer) == "psum":
            value = nl.copy(value)
        out = nl.ndarray(value.shape, dtype=value.dtype, buffer=nl.shared_hbm)
        nl.store(out, value)
        return out

    return nki.simulate(kernel)(*arrays)


@pytest.mark.parametrize("name, expected", [
    ("add", X + Y), ("subtract", X - Y), ("multiply", X * Y), ("maximum", np.maximum(X, Y)),
    ("minimum", np.minimum(X, Y)),
    ("equal", (X == Y) * 1.0), ("less", (X < Y) * 1.0), ("greater_equal", (X >= Y) * 1.0),
    ("logical_and", np.ones_like(X)), ("logical_xor", np.zeros_like(X)),
])
def test_exact_binary_functions(name, expected):
    np.testing.assert_array_equal(apply(getattr(nl, name), X, Y), expected.astype(np.float32))


@pytest.mark.parametrize("name, expected", [
    ("divide", X / Y), ("power", X**Y), ("mod", np.mod(X, Y)), ("fmod", np.fmod(X, Y)),
])
def test_close_binary_functions(name, expected):
    np.testing.assert_allclose(apply(getattr(nl, name), X, Y), expected, rtol=1e-4, atol=1e-5)


def test_numbers_on_either_side():
    np.testing.assert_array_equal(apply(lambda x: nl.subtract(x, 1.5), X), X - np.float32(1.5))
    np.testing.assert_array_equal(apply(lambda x: nl.subtract(1.5, x), X), np.float32(1.5) - X)
    np.testing.assert_allclose(apply(lambda x: nl.divide(1.0, x), X), 1 / X, rtol=1e-5)


@pytest.mark.parametrize("name, expected", [
    ("exp", np.exp(SIGNED)), ("tanh", np.tanh(SIGNED)), ("square", SIGNED**2), ("relu", np.maximum(SIGNED, 0)),
    ("sigmoid", 1 / (1 + np.exp(-SIGNED))), ("silu", SIGNED / (1 + np.exp(-SIGNED))), ("sign", np.sign(SIGNED)),
    ("abs", np.abs(SIGNED)), ("negative", -SIGNED), ("sin", np.sin(SIGNED)), ("cos", np.cos(SIGNED)),
    ("floor", np.floor(SIGNED)), ("ceil", np.ceil(SIGNED)), ("trunc", np.trunc(SIGNED)),
    ("logical_not", (SIGNED == 0) * 1.0), ("copy", SIGNED),
])
def test_unary_functions(name, expected):
    np.testing.assert_allclose(apply(getattr(nl, name), SIGNED), expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("name, expected", [
    ("log", np.log(X)), ("sqrt", np.sqrt(X)), ("rsqrt", 1 / np.sqrt(X)), ("reciprocal", 1 / X),
    ("softplus", np.log1p(np.exp(X))),
    ("arctan", np.arctan(X)),
])
def test_functions_of_positive_numbers(name, expected):
    np.testing.assert_allclose(apply(getattr(nl, name), X), expected, rtol=1e-4, atol=1e-5)


def test_integers_and_bits():
    a = GENERATOR.integers(0, 2**20, (128, 16), dtype=np.int32)
    b = GENERATOR.integers(0, 2**20, (128, 16), dtype=np.int32)
    np.testing.assert_array_equal(apply(nl.bitwise_and, a, b), a & b)
    np.testing.assert_array_equal(apply(nl.bitwise_xor, a, b), a ^ b)
    np.testing.assert_array_equal(apply(nl.invert, a), ~a)
    np.testing.assert_array_equal(apply(lambda x: nl.right_shift(x, 3), a), a >> 3)


@pytest.mark.parametrize("name", ["sum", "max", "min", "mean", "var", "prod"])
def test_reductions(name):
    x = GENERATOR.uniform(0.5, 1.5, (128, 4, 6)).astype(np.float32)
    ours = apply(lambda t: getattr(nl, name)(t, axis=(1, 2)), x)
    reference = getattr(np, name)(x.astype(np.float64), axis=(1, 2))
    np.testing.assert_allclose(ours.reshape(128), reference, rtol=1e-5)


def test_keepdims():
    assert apply(lambda t: nl.sum(t, axis=1, keepdims=True), X).shape == (128, 1)
    assert apply(lambda t: nl.max(t, axis=[2], keepdims=False), X.reshape(128, 4, 8)).shape == (128, 4)


def test_softmax_and_rms_norm():
    powers = np.exp(SIGNED - SIGNED.max(1, keepdims=True))
    np.testing.assert_allclose(apply(lambda t: nl.softmax(t, axis=1), SIGNED), powers / powers.sum(1, keepdims=True),
                               rtol=1e-4, atol=1e-6)
    normal = SIGNED / np.sqrt((SIGNED**2).mean(1, keepdims=True) + 1e-6) * Y
    np.testing.assert_allclose(apply(lambda t, w: nl.rms_norm(t, w, axis=1, n=32), SIGNED, Y), normal, rtol=1e-4,
                               atol=1e-5)


def test_where():
    condition = (SIGNED > 0).astype(np.float32)
    np.testing.assert_array_equal(apply(nl.where, condition, X, Y), np.where(condition, X, Y))
    np.testing.assert_array_equal(apply(lambda c, x: nl.where(c, x, 0.0), condition, X), np.where(condition, X, 0))


def test_broadcast_to():
    column = X[:, :1].copy()
    np.testing.assert_array_equal(apply(lambda t: nl.broadcast_to(t, (128, 32)), column),
                                  np.broadcast_to(column, (128, 32)))
    row = X[:1].copy()
    np.testing.assert_allclose(apply(lambda t: nl.broadcast_to(t, (64, 32)), row), np.broadcast_to(row, (64, 32)),
                               rtol=1e-6)


def test_matmul_and_transpose():
    a = GENERATOR.standard_normal((64, 128)).astype(np.float32)
    b = GENERATOR.standard_normal((128, 96)).astype(np.float32)
    np.testing.assert_allclose(apply(nl.matmul, a, b), a @ b, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(apply(lambda x, y: nl.matmul(x, y, transpose_x=True), a.T.copy(), b), a @ b, rtol=1e-4,
                               atol=1e-4)
    np.testing.assert_array_equal(apply(nl.transpose, a), a.T)


def test_constructors_on_every_memory():
    @nki.jit
    def kernel(a):
        out = nl.zeros((200, 3), nl.float32, buffer=nl.shared_hbm)
        nl.store(out[0:128, 1:2], nl.ones((128, 1), nl.float32))
        bank = nl.full((128, 4), 5.0, nl.float32, buffer=nl.psum)
        nl.store(out[0:128, 2:3], nl.copy(bank[:, 0:1]))
        return out

    expected = np.zeros((200, 3), np.float32)
    expected[:128, 1], expected[:128, 2] = 1, 5
    np.testing.assert_array_equal(nki.simulate(kernel)(X), expected)


def test_constants(tmp_path):
    table = GENERATOR.standard_normal((4, 8)).astype(np.float32)
    np.save(tmp_path / "table.npy", table)

    @nki.jit
    def kernel(a):
        out = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(out[0:4, :], nl.load(nl.shared_constant(str(tmp_path / "table.npy"))))
        nl.store(out[4:8, :], nl.load(nl.shared_constant(2 * table)))
        return out

    np.testing.assert_array_equal(nki.simulate(kernel)(X), np.concatenate([table, 2 * table]))
    np.testing.assert_array_equal(apply(lambda t: nl.shared_identity_matrix(16, nl.float32), X),
                                  np.eye(16, dtype=np.float32))


def test_registers_steer_python(capsys):
    @nki.jit
    def kernel(count, data):
        acc = nl.zeros((1, 1), nl.float32)
        value = nl.load(data)
        register = nisa.register_alloc()
        nisa.register_load(register, nl.load(count))
        steps = 0
        for _ in nl.dynamic_range(register):
            nisa.tensor_tensor(dst=acc, data1=acc, data2=value, op=nl.add)
        left = nl.load(count)
        while register:
            steps += 1
            nisa.tensor_scalar(dst=left, data=left, op0=nl.subtract, operand0=1.0)
            nisa.register_load(register, left)
        nl.device_print("steps", acc)
        out = nl.ndarray((1, 2), nl.float32, buffer=nl.shared_hbm)
        nl.store(out[:, 0:1], acc)
        nl.store(out[:, 1:2], nl.full((1, 1), float(steps), nl.float32))
        return out

    result = nki.simulate(kernel)(np.array([[5]], np.int32), np.array([[2.5]], np.float32))
    np.testing.assert_array_equal(result, [[12.5, 5.0]])
    assert "steps [[12.5]]" in capsys.readouterr().out


def test_structured_loops():
    @nki.jit
    def kernel(data):
        acc = nl.zeros((1, 1), nl.float32)
        one = nl.ones((1, 1), nl.float32)

        def body(i):
            nisa.tensor_tensor(dst=acc, data1=acc, data2=one, op=nl.add)

        def countdown(r):
            nisa.tensor_tensor(dst=acc, data1=acc, data2=one, op=nl.add)
            return nisa.register_alloc(int(r) - 1)

        nl.fori_loop(0, nisa.register_alloc(6), body, step=2)
        nl.while_loop(nisa.register_alloc(4), countdown)
        out = nl.ndarray((1, 1), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, acc)
        return out

    assert nki.simulate(kernel)(X)[0, 0] == 7


def test_grid_functions():
    seen = []

    @nki.jit
    def kernel(a):
        seen.append((nl.program_id(), nl.num_programs(), nl.program_ndim()))

    kernel(X)
    kernel[1](X)
    kernel[2](X)
    assert seen == [(0, 1, 0), (0, 1, 1), (0, 2, 1), (1, 2, 1)]


def test_run_time_index_outside_its_tensor():
    def kernel_with(mode):
        @nki.jit
        def kernel(index, data):
            out = nl.zeros((4, 8), nl.float32, buffer=nl.shared_hbm)
            row = nl.load(index)
            nisa.dma_copy(dst=out.ap(pattern=[[8, 1], [1, 8]], offset=0, scalar_offset=row, indirect_dim=0),
                          src=nl.load(data), oob_mode=mode)
            return out

        return nki.simulate(kernel)

    data = GENERATOR.standard_normal((1, 8)).astype(np.float32)
    for row in (2, 4, -1000):
        expected = np.zeros((4, 8), np.float32)
        if row < 4 and row >= 0:
            expected[row] = data
        np.testing.assert_array_equal(kernel_with(nisa.oob_mode.skip)(np.array([[row]], np.int32), data), expected)
    with pytest.raises(IndexError):
        kernel_with(nisa.oob_mode.error)(np.array([[4]], np.int32), data)


def test_a_view_keeps_its_tensor():
    """The bytes of tensors that nobody can name are used again; a view names its tensor."""

    @nki.jit
    def kernel(data):
        columns = [nl.copy(nl.load(data))[:, k : k + 1] for k in range(4)]  # the tiles themselves are gone at once
        for _ in range(400):  # more bytes than Trena keeps without looking for tensors out of reach
            nl.full((128, 256), 7.0, nl.float32)
        out = nl.ndarray((128, 4), nl.float32, buffer=nl.shared_hbm)
        for k, column in enumerate(columns):
            nl.store(out[:, k : k + 1], column)
        return out

    data = GENERATOR.standard_normal((128, 4)).astype(np.float32)
    np.testing.assert_array_equal(nki.simulate(kernel)(data), data)


def test_tensor_copy_warns_of_a_type_in_vain():
    """aws-neuron/nki-samples names dtype=, which is in no published signature."""

    def kernel(x, dtype):
        wide = nl.ndarray(x.shape, nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=wide, src=nl.load(x), dtype=dtype)
        out = nl.ndarray(x.shape, nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=wide)
        return out

    x = np.float32([[1.001, 2.5]])
    np.testing.assert_array_equal(trena.simulate(kernel)(x, nl.float32).outputs, x)
    with pytest.warns(UserWarning, match="casts to the type of dst") as caught:
        np.testing.assert_array_equal(trena.simulate(kernel)(x, nl.bfloat16).outputs, x)
    assert caught[0].filename == __file__
