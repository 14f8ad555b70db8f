"""What NKI scripts and AWS's guides call of torch_neuronx: trace, nki_jit and the profiling context.

Only where torch_neuronx itself is not installed; anything else of it is refused by name.
"""

from __future__ import annotations

import copy

import torch

import trena.torch  # noqa: F401  registers the device
from trena.errors import NotModelled
from trena.nki.kernel import Kernel
from trena.nki_legacy import jit as nki_jit  # noqa: F401  how kernels of 2024 were marked

__version__ = "0+trena"


def trace(func, example_inputs=None, *, compiler_args=None, compiler_workdir=None, **ignored):
    """A callable with the outputs of `func` on the simulated core: a kernel, a module or a function of tensors.

    Tensors of the CPU go in and come out, as with the real one; nothing is compiled ahead, no NEFF is written.
    """
    if isinstance(func, Kernel):
        return func
    on_core = copy.deepcopy(func).to("neuron") if isinstance(func, torch.nn.Module) else func

    def traced(*inputs):
        with torch.no_grad():
            return _moved(on_core(*_moved(inputs, "neuron")), "cpu")

    return traced


def _moved(value, device):
    """Tensors to that device, through tuples, lists and dicts."""
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {key: _moved(entry, device) for key, entry in value.items()}
    return type(value)(_moved(entry, device) for entry in value) if isinstance(value, (tuple, list)) else value


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotModelled(f"torch_neuronx.{name} is not modelled", id="not-modelled", here=f"torch_neuronx.{name}",
                      fix='use torch.device("neuron")')
