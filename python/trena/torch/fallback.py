"""Operators that graph/ does not lower: on the CPU, over the same bytes, counted and warned about once.

TRENA_STRICT=1 forbids them. Their work takes no device time, and the step says so.
"""

from __future__ import annotations

import warnings

import torch
from torch.utils import _pytree as pytree
from trena.errors import NotModelled
from trena.torch import memory, session

_warned: set[str] = set()


def refuse(op_name: str, reason: str = "") -> NotModelled:
    return NotModelled(
        "TRENA_STRICT=1 forbids operators on the CPU",
        id="operator-on-cpu",
        here=f"{op_name}{': ' + reason if reason else ' is not lowered to instructions'}",
        fix="leave TRENA_STRICT unset to run it on the CPU (not timed), or move the tensor there yourself",
    )


def run_on_cpu(op, args, kwargs, reason: str = ""):
    """Runs `op` on host aliases of its tensors; results come back as tensors of the device."""
    name = op.name()
    if session.is_strict():
        raise refuse(name, reason)
    session.count_fallback(name)
    if name not in _warned:
        _warned.add(name)
        warnings.warn(f"{name} runs on the CPU: Trena does not lower it{' (' + reason + ')' if reason else ''}",
                      stacklevel=3)
    return _call(op, args, kwargs)


def _call(op, args, kwargs):
    aliases: dict[int, torch.Tensor] = {}
    keep = []  # ids stay unique while the objects live

    def to_host(value):
        if isinstance(value, torch.Tensor) and value.device.type == "neuron":
            alias = memory.host_alias(value)
            keep.append(alias)
            aliases[id(alias)] = value
            return alias
        if isinstance(value, torch.device) and value.type == "neuron":
            return torch.device("cpu")
        return value

    def to_device(value):
        if not isinstance(value, torch.Tensor) or value.device.type != "cpu":
            return value
        original = aliases.get(id(value))
        if original is None:
            return to_neuron(value)
        if original.size() != value.size():  # an out= argument that had to grow
            original.set_(to_neuron(value))
        return original

    host_args, host_kwargs = pytree.tree_map(to_host, (args, kwargs))
    return pytree.tree_map(to_device, op(*host_args, **host_kwargs))


def to_neuron(value: torch.Tensor) -> torch.Tensor:
    """A copy on the device, laid out alike where the values are dense."""
    layout = value if value.is_contiguous() else torch.empty_like(value)
    result = memory.allocate(value.size(), layout.stride(), value.dtype)
    memory.host_alias(result).copy_(value)
    return result


def boxed(op, *args, **kwargs):
    """The kernel of every operator that has no other on the device."""
    return run_on_cpu(op, args, kwargs)
