"""torch_xla.core.xla_model as NKI scripts use it."""

from trena.shims.torch_xla import device as xla_device  # noqa: F401
from trena.shims.torch_xla import sync as mark_step  # noqa: F401


def wait_device_ops(devices=()):
    """Results are ready."""


def __getattr__(name: str):
    from trena.errors import NotModelled

    if name.startswith("__"):
        raise AttributeError(name)
    raise NotModelled(f"torch_xla.core.xla_model.{name} is not modelled", id="not-modelled", here=f"xm.{name}",
                      fix='use torch.device("neuron")')
