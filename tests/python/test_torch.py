"""Device `neuron`: values against PyTorch's own CPU kernels, and no operator anywhere but on the device."""

import copy
import io
import math
import os
import re
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is optional")

import trena.torch as device  # noqa: E402
from trena import _core, errors  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    monkeypatch.setenv("TRENA_STRICT", "1")
    torch.manual_seed(0)


def on_device(function, *tensors):
    with device.step() as step:
        result = function(*[tensor.to("neuron") for tensor in tensors])
    assert result.device.type == "neuron"
    assert step.fallback_ops == {}
    return result, step


def check(function, *tensors, tolerance=1e-5):
    expected = function(*tensors)
    result, step = on_device(function, *tensors)
    assert result.dtype == expected.dtype
    assert result.stride() == expected.stride()
    torch.testing.assert_close(result.cpu(), expected, rtol=tolerance, atol=tolerance)
    return step


R = torch.randn

# ---- Products ------------------------------------------------------------------------------------

PRODUCTS = {
    "row_major": (lambda a, b: a @ b, (300, 200), (200, 700)),
    "a_transposed": (lambda a, b: a.t() @ b, (200, 300), (200, 70)),
    "b_transposed": (lambda a, b: a @ b.t(), (300, 200), (70, 200)),
    "both_transposed": (lambda a, b: a.t() @ b.t(), (20, 30), (70, 20)),
    "strided": (lambda a, b: a[::2, ::3] @ b[1:101], (300, 300), (200, 70)),
    "one_row": (lambda a, b: a @ b, (1, 200), (200, 7)),
    "one_column": (lambda a, b: a @ b, (130, 200), (200, 1)),
    "outer": (lambda a, b: a @ b, (130, 1), (1, 520)),
    "many_k_panels": (lambda a, b: a @ b, (5, 2500), (2500, 3)),
    "many_row_groups": (lambda a, b: a @ b, (1100, 9), (9, 600)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_matrix_product(name):
    function, a, b = PRODUCTS[name]
    step = check(function, R(a), R(b), tolerance=2e-4)
    m, n = function(R(a), R(b)).shape
    k = function(torch.ones(a), torch.ones(b))[0, 0].item()
    # Every multiplication of the product is in the timed stream, and no other.
    assert step.multiply_accumulates == m * n * int(k)


def test_result_in_column_order():
    out = torch.empty(70, 300, device="neuron").t()
    a, b = R(300, 200), R(200, 70)
    torch.mm(a.to("neuron"), b.to("neuron"), out=out)
    assert out.stride() == (1, 300)
    torch.testing.assert_close(out.cpu(), a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("bias", [(70,), (300, 1), (300, 70), (1, 1)])
def test_addmm(bias):
    check(lambda c, a, b: torch.addmm(c, a, b, beta=2, alpha=0.5), R(bias), R(300, 200), R(200, 70), tolerance=1e-4)
    check(torch.addmm, R(bias), R(300, 200), R(200, 70), tolerance=1e-4)


def test_bfloat16_product():
    a, b = R(64, 250).bfloat16(), R(250, 64).bfloat16()
    result, _ = on_device(torch.mm, a, b)
    # Exact products, summed in float32, rounded once.
    exact = (a.double() @ b.double()).float()
    torch.testing.assert_close(result.cpu().float(), exact, rtol=2**-8, atol=1e-3)


def test_batched_product():
    check(torch.bmm, R(3, 64, 50), R(3, 50, 64), tolerance=1e-4)


# ---- Element by element --------------------------------------------------------------------------

ELEMENTWISE = {
    "add": (lambda a, b: a + b, (300, 70), (300, 70)),
    "add_alpha": (lambda a, b: torch.add(a, b, alpha=-0.3), (300, 70), (300, 70)),
    "column": (lambda a, b: a + b, (300, 70), (300, 1)),
    "row": (lambda a, b: a * b, (300, 70), (70,)),
    "four_dimensions": (lambda a, b: a - b, (3, 4, 5, 6), (4, 1, 6)),
    "outer": (lambda a, b: a * b, (130, 1), (1, 70)),
    "permuted": (lambda a, b: a.permute(2, 0, 1) + b, (30, 40, 50), (50, 30, 40)),
    "divide": (lambda a, b: a / (b.abs() + 1), (33, 7), (33, 7)),
    "prime_length": (lambda a, b: a + b, (1009,), (1009,)),
    "longer_than_a_tile": (lambda a, b: a + b, (300_007,), (300_007,)),
    "zero_dimensions": (lambda a, b: a + b, (), ()),
    "compare": (lambda a, b: a > b, (77, 5), (77, 5)),
    "mask": (lambda a, b: a * (a <= b), (77, 5), (77, 5)),
    "where": (lambda a, b: torch.where(a > 0, a, b), (77, 5), (77, 5)),
    "maximum": (torch.maximum, (77, 5), (77, 5)),
    "lerp": (lambda a, b: torch.lerp(a, b, 0.3), (77, 5), (77, 5)),
    "addcmul": (lambda a, b: torch.addcmul(a, a, b, value=0.3), (77, 5), (77, 5)),
    "addcdiv": (lambda a, b: torch.addcdiv(a, a, b.abs() + 1, value=0.3), (77, 5), (77, 5)),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_two_tensors(name):
    function, a, b = ELEMENTWISE[name]
    check(function, R(a), R(b))


@pytest.mark.parametrize("function", [
    lambda a: 2 - a * 3 + 1, lambda a: 1 / (a.abs() + 1), lambda a: a.sub(2, alpha=3), lambda a: a / 7, lambda a: -a,
    lambda a: a == 0, lambda a: 0.5 > a, torch.exp, torch.tanh, torch.sigmoid, torch.relu, lambda a: a.clone().relu_(),
    lambda a: (a.abs() + 0.1).log(), lambda a: a.abs().sqrt(), lambda a: (a.abs() + 0.1).rsqrt(),
    lambda a: a.clone().mul_(2).add_(1).sub_(0.5), lambda a: torch.zeros_like(a) + torch.ones_like(a) + a,
])
def test_one_tensor(function):
    check(function, R(131, 3))


def test_gradient_of_relu_is_a_select():
    x = torch.tensor([-1.0, 0.0, 2.0, -3.0])
    gradient = torch.tensor([math.inf, 1.0, 5.0, math.nan])
    result, _ = on_device(lambda x, g: torch.ops.aten.threshold_backward(g, x, 0), x, gradient)
    assert result.tolist() == [0.0, 0.0, 5.0, 0.0]


# ---- Copies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [
    lambda a: a.t().contiguous(), lambda a: a[:, ::2].clone(), lambda a: a.bfloat16().float(), lambda a: a.half(),
    lambda a: a[:1].expand(5, 77).clone(), lambda a: torch.full_like(a, 2.5), lambda a: a.reshape(-1)[3:].contiguous(),
    lambda a: (a > 0).float(), lambda a: a.bool(),
])
def test_copy(function):
    check(function, R(33, 77))


def test_integers_move_bit_by_bit():
    check(lambda a: a.clone(), torch.randint(-(2**62), 2**62, (33,)))
    check(lambda a: a.t().contiguous(), torch.randint(-100, 100, (33, 5), dtype=torch.int16))
    check(lambda a: torch.full_like(a, -7), torch.zeros(40, dtype=torch.int64))


def test_int64_that_int32_cannot_hold_is_refused():
    with pytest.raises(errors.NotModelled) as caught:
        torch.tensor([1, 2**40]).to("neuron").float()
    assert caught.value.id == "int64-range"
    assert str(2**40) in caught.value.here


def test_views_share_bytes():
    x = torch.zeros(4, 6, device="neuron")
    x[1:3, ::2].fill_(1.0)
    x.t()[5].add_(2.0)
    expected = torch.zeros(4, 6)
    expected[1:3, ::2] = 1.0
    expected[:, 5] += 2.0
    torch.testing.assert_close(x.cpu(), expected)
    assert x[1:3]._base is x


# ---- Reductions, softmax, loss -------------------------------------------------------------------

REDUCTIONS = {
    "rows": (lambda a: a.sum(1), (300, 70)),
    "columns": (lambda a: a.sum(0), (300, 70)),
    "all": (lambda a: a.sum(), (300, 70)),
    "long_rows": (lambda a: a.sum(1), (3, 9000)),
    "wide_columns": (lambda a: a.sum(0, keepdim=True), (300, 1300)),
    "outer_and_inner": (lambda a: a.mean((0, 2)), (30, 7, 40)),
    "middle": (lambda a: a.sum(1, keepdim=True), (30, 70, 40)),
    "transposed": (lambda a: a.t().sum(0), (300, 70)),
    "largest_rows": (lambda a: a.amax(1), (300, 70)),
    "largest_columns": (lambda a: a.amax(0), (30, 70)),
    "smallest": (lambda a: a.amin(), (300, 70)),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction(name):
    function, shape = REDUCTIONS[name]
    check(function, R(shape), tolerance=1e-4)


@pytest.mark.parametrize("function", [
    lambda a: a.argmax(1), lambda a: a.argmax(0, keepdim=True), lambda a: a.argmax(), lambda a: (a > 0).sum(),
    lambda a: (a > 0).sum(0), lambda a: (a == 0).float().mean(),
])
def test_counting(function):
    check(function, R(150, 30).mul(4).round())  # with ties: the first maximum counts


def test_accuracy_of_a_classifier():
    logits, labels = R(150, 10), torch.randint(0, 10, (150,))
    result, _ = on_device(lambda x, y: (x.argmax(1) == y).sum(), logits, labels)
    assert result.item() == (logits.argmax(1) == labels).sum().item()


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("function", [torch.softmax, torch.log_softmax])
def test_softmax(function, axis):
    check(lambda a: function(a, axis), 5 * R(150, 30))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("function", [torch.softmax, torch.log_softmax])
def test_softmax_gradient(function, axis):
    x, g = R(150, 30), R(150, 30)

    def gradient(x, g):
        x = x.requires_grad_()
        return torch.autograd.grad(function(x, axis), x, g)[0]

    check(gradient, x, g)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("ignore", [-100, 3])
def test_cross_entropy(reduction, ignore):
    x, y = R(150, 10), torch.randint(0, 10, (150,))

    def loss(x, y):
        return torch.nn.functional.cross_entropy(x, y, reduction=reduction, ignore_index=ignore)

    def gradient(x, y):
        x = x.requires_grad_()
        return torch.autograd.grad(loss(x, y).sum(), x)[0]

    check(loss, x, y)
    check(gradient, x.clone(), y)


def test_label_outside_the_classes():
    with pytest.raises(errors.OutOfBounds) as caught:
        torch.nn.functional.cross_entropy(R(4, 3).to("neuron"), torch.tensor([0, 1, 3, 2]).to("neuron"))
    assert caught.value.id == "label-range"
    assert caught.value.file == __file__


# ---- Training ------------------------------------------------------------------------------------


def mlp():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(40, 150), torch.nn.ReLU(), torch.nn.Linear(150, 7))


def train(where, optimizer_class=torch.optim.SGD, steps=5, **options):
    model = mlp()
    optimizer = optimizer_class(model.parameters(), **options)  # before .to(): parameters keep their identity
    identities = [id(p) for p in model.parameters()]
    model.to(where)
    assert [id(p) for p in model.parameters()] == identities
    torch.manual_seed(2)
    x, y = R(96, 40).to(where), torch.randint(0, 7, (96,)).to(where)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model


@pytest.mark.parametrize("optimizer, options", [
    (torch.optim.SGD, {"lr": 0.1}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True}),
    (torch.optim.AdamW, {"lr": 0.01}),
], ids=["sgd", "momentum", "adamw"])
def test_training_follows_the_cpu(optimizer, options):
    expected, reference = train("cpu", optimizer, **options)
    device.clear_op_tracking()
    losses, model = train("neuron", optimizer, **options)
    assert device.fallback_ops() == {}
    assert device.executed_ops()["aten::addmm.out"] == 2 * 5
    assert losses == pytest.approx(expected, rel=1e-5)
    assert losses[-1] < losses[0]
    for ours, theirs in zip(model.parameters(), reference.parameters()):
        torch.testing.assert_close(ours.detach().cpu(), theirs.detach(), rtol=1e-3, atol=1e-4)


def test_step_has_a_time_and_every_multiplication():
    model = mlp().to("neuron")
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x, y = R(96, 40).to("neuron"), torch.randint(0, 7, (96,)).to("neuron")
    with device.step() as step:
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    forward = 96 * 40 * 150 + 96 * 150 * 7
    weight_gradients = forward
    input_gradient = 96 * 7 * 150  # of the second layer only
    bias_gradients = 96 * 150 + 96 * 7  # sums over the batch are products with a column of ones
    assert step.multiply_accumulates == forward + weight_gradients + input_gradient + bias_gradients
    assert step.time_ns > 0
    assert step.evidence == "estimate (Trena schedule)"
    assert step.evidence in str(step)
    # Every byte of the inputs, weights and results crosses HBM at least once.
    parameters = sum(4 * p.numel() for p in model.parameters())
    run = device.last_run()
    assert run.time_ns == pytest.approx(step.time_ns)
    assert run.hbm_read_bytes >= 2 * parameters + 4 * x.numel()  # forward and update
    assert run.hbm_write_bytes >= 2 * parameters  # gradients and update


def test_values_come_from_the_products_of_the_stream():
    expected, _ = train("neuron", lr=0.1, steps=1)
    _core.set_product_fault(True)
    try:
        faulty, _ = train("neuron", lr=0.1, steps=1)
    finally:
        _core.set_product_fault(False)
    assert faulty != expected
    assert train("neuron", lr=0.1, steps=1)[0] == expected


def test_same_bytes_on_any_number_of_threads():
    before = _core.thread_count()
    try:
        weights = []
        for threads in (1, 8):
            _core.set_thread_count(threads)
            weights.append(torch.cat([p.detach().cpu().flatten() for p in train("neuron", lr=0.1)[1].parameters()]))
    finally:
        _core.set_thread_count(before)
    assert weights[0].numpy().tobytes() == weights[1].numpy().tobytes()


def test_an_operator_without_lowering_names_itself():
    with pytest.raises(errors.NotModelled) as caught:
        torch.erfinv(R(3).to("neuron"))
    assert caught.value.id == "operator-on-cpu"
    assert "aten::erfinv" in caught.value.here


def test_without_strict_it_runs_on_the_cpu_and_is_counted(monkeypatch):
    monkeypatch.setenv("TRENA_STRICT", "0")
    x = torch.rand(5)
    with device.step() as step, pytest.warns(UserWarning, match="lgamma"):
        result = torch.lgamma(x.to("neuron"))
    torch.testing.assert_close(result.cpu(), torch.lgamma(x))
    assert list(step.fallback_ops.values()) == [1]
    assert "on the CPU (not timed)" in str(step)


# ---- Tensors as objects --------------------------------------------------------------------------


def test_deepcopy_is_a_copy():
    model = mlp().to("neuron")
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin[0].weight.fill_(0.0)
    assert model[0].weight.device.type == "neuron"
    assert model[0].weight.abs().sum().item() > 0
    assert twin[0].weight.abs().sum().item() == 0


def test_state_dict_round_trip():
    model = mlp().to("neuron")
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    on_cpu = mlp()
    torch.nn.init.zeros_(on_cpu[0].weight)
    on_cpu.load_state_dict(torch.load(file, map_location="cpu"))
    torch.testing.assert_close(on_cpu[0].weight, model[0].weight.cpu())
    other = mlp().to("neuron")
    other.load_state_dict(on_cpu.state_dict())
    torch.testing.assert_close(other[2].bias.cpu(), model[2].bias.cpu())


def test_tied_weights_stay_tied():
    first, second = torch.nn.Linear(5, 5), torch.nn.Linear(5, 5)
    second.weight = first.weight
    model = torch.nn.Sequential(first, second).to("neuron")
    assert model[0].weight is model[1].weight
    assert model.to("cpu")[0].weight is model[1].weight


def test_memory_is_given_back():
    before = torch.neuron.memory_allocated()
    x = torch.zeros(1000, device="neuron")
    assert torch.neuron.memory_allocated() == before + 4000
    del x
    assert torch.neuron.memory_allocated() == before


def test_more_than_the_hbm_of_a_core():
    torch.zeros(1, device="neuron")  # the session knows the chip
    with pytest.raises(errors.CapacityError) as caught:
        torch.empty(1 << 40, dtype=torch.uint8, device="neuron")
    assert caught.value.id == "hbm-capacity"


def test_print_and_device_names():
    x = torch.tensor([1.5, 2.0]).to("neuron")
    assert repr(x) == "tensor([1.5000, 2.0000], device='neuron:0')"
    assert torch.accelerator.current_accelerator().type == "neuron"
    torch.accelerator.synchronize()
    assert x.is_neuron
    assert torch.neuron.get_device_properties().total_memory > 1 << 30


def test_the_example_learns_without_the_cpu():
    example = os.path.join(ROOT, "examples", "train_mlp.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, example], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 3 and all("estimate (Trena schedule)" in line for line in lines)
    losses = [float(line.split("loss")[1].split()[0]) for line in lines]
    assert losses[2] < 0.1 < losses[0]


def test_autoload_needs_no_import_of_ours(tmp_path):
    """What an installed Trena says about itself is enough for `import torch`."""
    about = tmp_path / "trena_entry-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: trena-entry\nVersion: 0\n")
    (about / "entry_points.txt").write_text("[torch.backends]\nneuron = trena.torch:_autoload\n")
    code = "import torch; print(torch.ones(2).to('neuron').sum().item())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "2.0", done.stderr
    project = open(os.path.join(ROOT, "pyproject.toml")).read()
    assert '[project.entry-points."torch.backends"]\nneuron = "trena.torch:_autoload"' in project


def test_the_guide_runs():
    guide = open(os.path.join(ROOT, "docs", "pytorch.md")).read()
    blocks = re.findall(r"```python\n(.*?)```", guide, re.S)
    code = "\n".join(["import trena.torch", *blocks])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "estimate (Trena schedule)" in done.stdout


def test_a_process_ends_cleanly_with_tensors_alive():
    code = "import trena.torch, torch; x = torch.ones(3, device='neuron'); y = x + 1; print(y.sum().item())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "6.0"
