"""The two calls of torch_xla that NKI scripts make. The device is PyTorch's `neuron`, simulated by Trena.

AWS's own advice is to write torch.device("neuron"); anything else of torch_xla is refused by name.
"""

from __future__ import annotations

import torch

import trena.torch  # noqa: F401  registers the device
from trena.errors import NotModelled

__version__ = "0+trena"


def device(index=None):
    """The simulated core."""
    return torch.device("neuron")


def sync(wait=False):
    """Nothing is lazy here: results are ready."""


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotModelled(f"torch_xla.{name} is not modelled", id="not-modelled", here=f"torch_xla.{name}",
                      fix='use torch.device("neuron")')
