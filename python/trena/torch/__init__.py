"""PyTorch on a simulated NeuronCore: device `neuron`.

    model.to("neuron")                       # no import of ours: PyTorch loads this package by its entry point
    with trena.torch.step() as step: …       # device time of what happens inside
    print(step)                              # 182.4 µs, 914 instructions; estimate (Trena schedule)

Every operator becomes the instructions that NKI kernels use; what has no lowering yet runs on the CPU, warned
about once and counted, or is refused with TRENA_STRICT=1.
"""

from __future__ import annotations

import warnings

from trena import imports

__all__ = ["clear_op_tracking", "executed_ops", "fallback_ops", "host_alias", "is_strict", "last_run", "step",
           "synchronize"]


def _autoload() -> None:
    """Entry point `torch.backends`: PyTorch calls it at the end of `import torch`, and must survive it."""
    if imports.is_installed("torch_neuronx"):
        return  # the real device is installed, and a process has room for one
    try:
        _register()
    except (AttributeError, ImportError, RuntimeError) as why:
        warnings.warn(f"Trena's device neuron is not available (it needs PyTorch 2.10 or later): {why}", stacklevel=2)


def _register() -> None:
    # PyTorch first: importing it may come back here through the entry point.
    import torch  # noqa: F401
    from trena.torch import device

    device.register()


def __getattr__(name: str):
    if name not in __all__:
        raise AttributeError(f"module 'trena.torch' has no attribute {name!r}")
    _register()
    if name == "host_alias":
        from trena.torch.memory import host_alias

        return host_alias
    from trena.torch import session

    return getattr(session, name)


_autoload()
