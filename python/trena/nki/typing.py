"""Annotations for kernel parameters. They change nothing at run time."""

from trena import _core

mutable_tensor = _core.Tensor


class _TensorAnnotation:
    """`tensor`, `tensor[shape]`, `tensor[dtype, shape]`."""

    def __getitem__(self, item):
        return _core.Tensor

    def __call__(self, *args, **kwargs):
        return _core.Tensor

    def __or__(self, other):
        return _core.Tensor | other

    __ror__ = __or__


tensor = _TensorAnnotation()
