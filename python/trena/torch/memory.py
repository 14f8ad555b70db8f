"""Tensors in the device's HBM: allocation through DLPack, and the same bytes seen from the host.

The memory belongs to C++ (graph/heap.h). A DLPack capsule of device type 12 becomes an ordinary, storage-backed
torch.Tensor on `neuron:0`, so nothing of PyTorch's C++ ABI is needed.
"""

from __future__ import annotations

import ctypes

import torch
from trena import _core

# What the device stores. Engines compute with the first three; 64-bit types are host types that copies and
# label operands understand.
DTYPE_NAMES = {
    torch.float32: "float32",
    torch.bfloat16: "bfloat16",
    torch.float16: "float16",
    torch.float64: "float64",
    torch.int64: "int64",
    torch.int32: "int32",
    torch.int16: "int16",
    torch.int8: "int8",
    torch.uint8: "uint8",
    torch.bool: "bool",
}


def contiguous_strides(sizes) -> list[int]:
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    return strides[::-1]


def _strides_for(sizes, memory_format) -> list[int]:
    if memory_format in (None, torch.contiguous_format, torch.preserve_format):
        return contiguous_strides(sizes)
    return list(torch.empty(sizes, device="meta", memory_format=memory_format).stride())


def allocate(sizes, strides, dtype) -> torch.Tensor:
    """A new tensor on `neuron:0`; its values are undefined. Raises hbm-capacity when the core's share is full."""
    name = DTYPE_NAMES.get(dtype)
    if name is None:
        return _allocate_as_bytes(sizes, strides, dtype)
    return torch._C._from_dlpack(_core.graph.allocate(list(sizes), list(strides), name))


def _allocate_as_bytes(sizes, strides, dtype) -> torch.Tensor:
    """Types that DLPack may not name (complex, float8): raw bytes with another dtype."""
    extent = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides)) if all(sizes) else 0
    raw = torch._C._from_dlpack(_core.graph.allocate([extent * dtype.itemsize], [1], "uint8"))
    return raw.view(dtype).as_strided(sizes, strides)


def empty(size, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    sizes = list(size)
    return allocate(sizes, _strides_for(sizes, memory_format), dtype or torch.get_default_dtype())


def empty_strided(size, stride, dtype=None, layout=None, device=None, pin_memory=None):
    return allocate(list(size), list(stride), dtype or torch.get_default_dtype())


def host_alias(tensor: torch.Tensor) -> torch.Tensor:
    """A CPU tensor over the very bytes of a tensor on the device. It must not outlive `tensor`."""
    storage = tensor.untyped_storage()
    size = storage.nbytes()
    if size == 0:
        return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)
    raw = (ctypes.c_char * size).from_address(storage.data_ptr())
    flat = torch.frombuffer(raw, dtype=torch.uint8)
    usable = size - size % tensor.dtype.itemsize
    return flat[:usable].view(tensor.dtype).as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())


def clone_storage(storage: torch.UntypedStorage) -> torch.UntypedStorage:
    """UntypedStorage.clone for the device; PyTorch's own asks for an allocator that only C++ can register."""
    copy = allocate([storage.nbytes()], [1], torch.uint8).untyped_storage()
    if storage.nbytes():
        ctypes.memmove(copy.data_ptr(), storage.data_ptr(), storage.nbytes())
    return copy


def resize_(tensor, size, memory_format=None):
    """Tensor.resize_: in place while the storage holds it, else onto fresh storage (values kept)."""
    sizes = list(size)
    strides = _strides_for(sizes, memory_format)
    extent = 1 + sum((n - 1) * s for n, s in zip(sizes, strides)) if all(sizes) else 0
    storage = tensor.untyped_storage()
    offset = tensor.storage_offset()
    if (offset + extent) * tensor.dtype.itemsize > storage.nbytes():
        grown = allocate([(offset + extent) * tensor.dtype.itemsize], [1], torch.uint8).untyped_storage()
        if storage.nbytes():
            ctypes.memmove(grown.data_ptr(), storage.data_ptr(), storage.nbytes())
        storage = grown
    tensor.set_(storage, offset, sizes, strides)
    return tensor
