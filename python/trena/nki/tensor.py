"""nki.tensor: the tensor class."""

from trena import _core

NkiTensor = Tensor = tensor = _core.Tensor
