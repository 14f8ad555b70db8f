"""Registers the device `neuron` with PyTorch: the backend module `torch.neuron`, kernels, copies, the fallback.

Python only (host.md §3): PrivateUse1 with a Python guard, kernels through torch.library.
"""

from __future__ import annotations

import sys
import types

import torch
from trena import _core
from trena.torch import fallback, memory, operators, session

_libraries: list[torch.library.Library] = []  # a library unregisters its kernels when it dies
_registered = False

# Views never touch bytes: the CPU's kernels do the arithmetic on sizes and strides.
_VIEWS = ("as_strided", "view", "_reshape_alias", "unfold", "set_.source_Storage_storage_offset", "set_.source_Tensor",
          "set_.source_Storage", "set_")


def register() -> None:
    """Makes torch.device("neuron") exist. Calling it again does nothing."""
    global _registered
    if _registered:
        return
    from torch.utils import backend_registration

    backend_registration._setup_privateuseone_for_python_backend("neuron", _backend_module())
    _register_kernels()
    _keep_parameter_identity()
    _patch_storage_clone()
    _patch_accelerator()
    _print_from_the_host()
    _registered = True


def _register_kernels() -> None:
    library = torch.library.Library("aten", "IMPL")
    library.impl("empty.memory_format", memory.empty, "PrivateUse1")
    library.impl("empty_strided", memory.empty_strided, "PrivateUse1")
    library.impl("resize_", memory.resize_, "PrivateUse1")
    library.impl("_copy_from", operators.copy_from, "PrivateUse1")
    library.impl("_copy_from_and_resize", operators.copy_from, "PrivateUse1")
    library.impl("_local_scalar_dense", operators.local_scalar_dense, "PrivateUse1")
    for name in _VIEWS:
        library.impl(name, _view_kernel(name), "PrivateUse1")
    for name, function in operators.KERNELS:
        library.impl(name, function, "PrivateUse1")
    everything_else = torch.library.Library("_", "IMPL")
    everything_else.fallback(fallback.boxed, "PrivateUse1")
    _libraries.extend([library, everything_else])


def _view_kernel(name: str):
    packet, _, overload = name.partition(".")
    op = getattr(getattr(torch.ops.aten, packet), overload or "default")
    cpu = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
    return lambda *args, **kwargs: op.redispatch(cpu, *args, **kwargs)


def _keep_parameter_identity() -> None:
    """module.to("neuron") swaps the data of each Parameter and keeps the object, as the real device does: ties
    and optimizers made before stay alive (torch.md §2.5)."""
    library = torch.library.Library("aten", "IMPL")
    for key in ("AutogradPrivateUse1", "AutogradCPU"):
        library.impl("_has_compatible_shallow_copy_type", _compatible, key)
    _libraries.append(library)


def _compatible(tensor, other) -> bool:
    ours = ("cpu", "neuron")
    dense = tensor.layout is torch.strided and other.layout is torch.strided
    return dense and tensor.device.type in ours and other.device.type in ours


def _patch_storage_clone() -> None:
    """copy.deepcopy clones storages; PyTorch's own clone needs an allocator written in C++."""
    original = torch.UntypedStorage.clone

    def clone(self):
        return memory.clone_storage(self) if self.device.type == "neuron" else original(self)

    torch.UntypedStorage.clone = clone


def _print_from_the_host() -> None:
    """print(tensor) copies it to the CPU first: formatting is no work of the device."""
    from torch import _tensor_str

    original = _tensor_str._tensor_str

    def tensor_str(self, indent):
        return original(self.detach().cpu() if self.device.type == "neuron" else self, indent)

    _tensor_str._tensor_str = tensor_str


def _patch_accelerator() -> None:
    """torch.accelerator.synchronize asks C++ hooks that Python cannot answer."""
    original = torch.accelerator.synchronize

    def synchronize(device=None):
        accelerator = torch.accelerator.current_accelerator()
        if accelerator is not None and accelerator.type == "neuron":
            return session.synchronize(device)
        return original(device)

    torch.accelerator.synchronize = synchronize


class _Device:
    """`with torch.neuron.device(0):`. There is one device per process, as on Neuron (one logical core each)."""

    def __init__(self, device=0):
        self.idx = 0

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        return False


class _Properties(types.SimpleNamespace):
    name: str
    total_memory: int


def _device_properties(device=None):
    from trena import launch

    machine = launch.machine_for()
    return _Properties(name=machine.name, total_memory=_core.graph.hbm_bytes(machine))


def _backend_module() -> types.ModuleType:
    """`torch.neuron`: the names of AWS's module that make sense for a simulated core (torch.md §1.2)."""
    module = types.ModuleType("torch.neuron")

    def usage(key):
        return lambda device=None: _core.graph.usage()[key]

    module.__dict__.update(
        is_available=lambda: True,
        is_initialized=lambda: True,
        init=lambda: None,
        device_count=lambda: 1,
        current_device=lambda: 0,
        set_device=lambda device: None,
        device=_Device,
        synchronize=session.synchronize,
        get_device_name=lambda device=None: _device_properties().name,
        get_device_properties=_device_properties,
        memory_allocated=usage("allocated_bytes"),
        memory_reserved=usage("allocated_bytes"),
        max_memory_allocated=usage("peak_bytes"),
        max_memory_reserved=usage("peak_bytes"),
        memory_stats=lambda device=None: _core.graph.usage(),
        reset_peak_memory_stats=lambda device=None: _core.graph.reset_peak(),
        empty_cache=lambda: None,
        manual_seed=lambda seed: None,  # random numbers are drawn on the host, by PyTorch's CPU generator
        manual_seed_all=lambda seed: None,
        get_rng_state=lambda device=None: torch.get_rng_state(),
        set_rng_state=lambda state, device=None: torch.set_rng_state(state),
        get_amp_supported_dtype=lambda: [torch.float32, torch.float16, torch.bfloat16],
        is_bf16_supported=lambda: True,
        _is_in_bad_fork=lambda: False,
    )
    sys.modules.setdefault("torch.neuron", module)
    return module
