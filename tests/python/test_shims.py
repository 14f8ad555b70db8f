"""Stand-ins for packages beside NKI: what scripts and kernel libraries import."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import trena
from trena import imports
from trena.shims import neuron_dtypes as dt


@pytest.fixture
def installed():
    trena.install("always")
    yield
    imports.uninstall()


def test_aliases_are_the_same_modules(installed):
    import neuronxcc.nki.language
    import nki.isa.constants
    import nki.language
    import nki_cpu_simulator.nki.language as simulated

    import trena.nki.language
    import trena.nki_legacy.language

    assert nki.language is trena.nki.language is simulated
    assert neuronxcc.nki.language is trena.nki_legacy.language
    assert trena.nki.language.__spec__.name == "trena.nki.language"


def test_unknown_modules_are_not_invented(installed):
    with pytest.raises(ModuleNotFoundError):
        import nki.no_such_module  # noqa: F401


def test_static_cast():
    x = np.linspace(-4, 4, 64, dtype=np.float32).reshape(4, 16)
    for name in ("bfloat16", "float16", "float8_e4m3", "float8_e5m2"):
        cast = dt.static_cast(x, name)
        np.testing.assert_array_equal(cast.astype(np.float32), x.astype(getattr(dt, name)).astype(np.float32))


@pytest.mark.parametrize("name, element", [
    ("float8_e4m3fn_x4", ml_dtypes.float8_e4m3fn), ("float8_e5m2_x4", ml_dtypes.float8_e5m2),
    ("float4_e2m1fn_x4", ml_dtypes.float4_e2m1fn),
])
def test_four_in_one(name, element):
    x = np.linspace(-4, 4, 64, dtype=np.float32).reshape(4, 16)
    packed = dt.static_cast(x, name)
    assert packed.shape == (4, 4) and "x4" in str(packed.dtype) and packed.dtype.itemsize == dt.sizeinbytes(name)
    np.testing.assert_array_equal(dt.static_cast(packed, np.float32), x.astype(element).astype(np.float32))


def test_torch_xla_device():
    pytest.importorskip("torch")
    script = ("import trena; trena.install('always'); import torch, torch_xla, torch_xla.core.xla_model as xm\n"
              "x = torch.ones(2, 2, device=torch_xla.device()); torch_xla.sync(); xm.mark_step()\n"
              "print(x.device.type, xm.xla_device())")
    environment = {"PYTHONPATH": __import__("os").pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert done.stdout.split() == ["neuron", "neuron"], done.stderr


def test_torch_neuronx_traces_kernels_and_modules():
    """AWS's quick start traces a kernel; its profiling guide a module that calls one."""
    pytest.importorskip("torch")
    script = """
import trena; trena.install('always')
import torch, torch_neuronx, nki, nki.isa as nisa, nki.language as nl
from torch_neuronx.experimental import profiler
from torch_neuronx.xla_impl.ops import nki_jit

@nki.jit
def double(x):
    result = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nl.store(result, nl.multiply(nl.load(x), 2.0))
    return result

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((4, 4), 3.0))
    def forward(self, x):
        return {"sum": (double(x) + self.weight,)}

x = torch.ones(4, 4)
with profiler.profile(port=9012):
    print(torch_neuronx.trace(double, (x, ))(x).tolist()[0])
result = torch_neuronx.trace(Model(), x, compiler_args="--lnc=1")(x)["sum"][0]
print(result.device, result.tolist()[3], torch_neuronx.nki_jit is nki_jit)
try:
    torch_neuronx.DataParallel
except trena.errors.NotModelled as error:
    print(error.id, error.here)
"""
    environment = {"PYTHONPATH": __import__("os").pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert done.stdout.splitlines() == [
        "[2.0, 2.0, 2.0, 2.0]", "cpu [5.0, 5.0, 5.0, 5.0] True", "not-modelled torch_neuronx.DataParallel"], done.stderr
