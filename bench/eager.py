"""A plain eager interpreter of the NKI calls that the benchmarks use: what one writes first, in NumPy.

It keeps the promises that Trena's value pass keeps: every call checks bounds, memories, partitions and dtypes, refuses
to read what nobody wrote, remembers the caller's line for its complaints, computes in float32 on NumPy views and casts
into the destination. It has values only: no clock, no placement.
"""

from __future__ import annotations

import sys
import types

import ml_dtypes
import numpy as np

PARTITIONS, MOVING, STATIONARY, PSUM_BANK_BYTES, QUADRANT = 128, 512, 128, 2048, 32
DTYPES = {np.dtype(t) for t in (np.float32, np.float16, ml_dtypes.bfloat16, np.int32, np.uint32)}


class Refused(Exception):
    """A rule is broken; the message starts with the kernel's line."""


def refuse(text):
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__:
        frame = frame.f_back
    raise Refused(f"{frame.f_code.co_filename}:{frame.f_lineno}: {text}")


class Tile:
    """A view of a buffer in one memory, and which of its elements have been written."""

    __slots__ = ("array", "written", "space", "start")

    def __init__(self, array, written, space, start=0):
        self.array = array
        self.written = written
        self.space = space
        self.start = start  # first partition

    @property
    def shape(self):
        return self.array.shape

    @property
    def dtype(self):
        return self.array.dtype

    def __getitem__(self, index):
        entries = index if isinstance(index, tuple) else (index,)
        if len(entries) > self.array.ndim:
            refuse("too many indices")
        for entry, size in zip(entries, self.array.shape):
            stop = entry.stop if isinstance(entry, slice) else entry + 1
            if stop is not None and stop > size:
                refuse(f"{entry} leaves a dimension of {size}")
        first = entries[0]
        offset = (first.start or 0) if isinstance(first, slice) else first
        return Tile(self.array[index], self.written[index], self.space, self.start + offset)


def ndarray(shape, dtype, buffer):
    shape = tuple(shape)
    if buffer != "hbm" and shape[0] > PARTITIONS:
        refuse(f"{shape[0]} partitions")
    if buffer == "psum" and int(np.prod(shape[1:])) * np.dtype(dtype).itemsize > PSUM_BANK_BYTES:
        refuse("larger than a PSUM bank")
    return Tile(np.zeros(shape, dtype), np.zeros(shape, bool), buffer)


# ---- Rules -------------------------------------------------------------------------------------------


def check_engine(name, **tiles):
    """Memories, dtypes and first partitions of an engine's operands."""
    for role, tile in tiles.items():
        if tile.space not in ("sbuf", "psum"):
            refuse(f"{name}: {role} is in {tile.space}")
        if tile.dtype not in DTYPES:
            refuse(f"{name}: {role} is {tile.dtype}")
        partitions = tile.shape[0]
        step = 128 if partitions > 64 else 64 if partitions > 32 else QUADRANT
        if tile.start % step:
            refuse(f"{name}: {role} starts at partition {tile.start}")


def check_same_tile(name, a, b):
    if a.shape[0] != b.shape[0]:
        refuse(f"{name}: {a.shape[0]} and {b.shape[0]} partitions")
    if a.array.size != b.array.size:
        refuse(f"{name}: {a.array.size} and {b.array.size} elements")


def read(name, role, tile):
    if not tile.written.all():
        refuse(f"{name}: {role} was not written")
    return tile.array.astype(np.float32)


def read_scalar(name, role, operand, data):
    """A number, or one value per partition, ready to broadcast."""
    if not isinstance(operand, Tile):
        return np.float32(operand)
    if operand.shape != (data.shape[0], 1):
        refuse(f"{name}: {role} is {operand.shape} for {data.shape}")
    return read(name, role, operand)


def write(dst, values):
    dst.array[...] = values.reshape(dst.shape).astype(dst.dtype)
    dst.written[...] = True


# ---- Instructions ------------------------------------------------------------------------------------


def dma_copy(dst, src):
    if dst.space == "psum" or src.space == "psum":
        refuse("dma_copy: PSUM")
    if dst.array.size != src.array.size:
        refuse(f"dma_copy: {dst.array.size} and {src.array.size} elements")
    if not src.written.all():
        refuse("dma_copy: src was not written")
    write(dst, src.array)


def tensor_copy(dst, src):
    check_engine("tensor_copy", dst=dst, src=src)
    check_same_tile("tensor_copy", dst, src)
    write(dst, read("tensor_copy", "src", src))


def tensor_tensor(dst, data1, data2, op):
    check_engine("tensor_tensor", dst=dst, data1=data1, data2=data2)
    check_same_tile("tensor_tensor", data1, data2)
    check_same_tile("tensor_tensor", dst, data1)
    if data1.space == data2.space == "psum":
        refuse("tensor_tensor: two operands in PSUM")
    write(dst, op(read("tensor_tensor", "data1", data1), read("tensor_tensor", "data2", data2)))


def tensor_scalar(dst, data, op0, operand0, op1=None, operand1=None):
    check_engine("tensor_scalar", dst=dst, data=data)
    check_same_tile("tensor_scalar", dst, data)
    values = op0(read("tensor_scalar", "data", data), read_scalar("tensor_scalar", "operand0", operand0, data))
    if op1 is not None:
        values = op1(values, read_scalar("tensor_scalar", "operand1", operand1, data))
    write(dst, values)


def tensor_reduce(dst, op, data, axis, negate=False):
    check_engine("tensor_reduce", dst=dst, data=data)
    values = op.reduce(read("tensor_reduce", "data", data), axis=axis)
    if values.size != dst.array.size:
        refuse(f"tensor_reduce: {values.size} results for {dst.shape}")
    write(dst, -values if negate else values)


def activation(dst, op, data, bias=None, scale=1.0):
    check_engine("activation", dst=dst, data=data)
    check_same_tile("activation", dst, data)
    values = read("activation", "data", data) * np.float32(scale)
    if bias is not None:
        values = values + read_scalar("activation", "bias", bias, data)
    write(dst, op(values))


def reciprocal(dst, data):
    check_engine("reciprocal", dst=dst, data=data)
    check_same_tile("reciprocal", dst, data)
    write(dst, np.float32(1) / read("reciprocal", "data", data))


def nc_matmul(dst, stationary, moving):
    check_engine("nc_matmul", dst=dst, stationary=stationary, moving=moving)
    if dst.space != "psum" or stationary.space != "sbuf" or moving.space != "sbuf":
        refuse("nc_matmul: operands in SBUF, result in PSUM")
    if stationary.shape[0] != moving.shape[0]:
        refuse("nc_matmul: contraction")
    if stationary.shape[1] > STATIONARY or moving.shape[1] > MOVING:
        refuse("nc_matmul: too large for one product")
    if dst.shape != (stationary.shape[1], moving.shape[1]):
        refuse(f"nc_matmul: result {dst.shape}")
    product = read("nc_matmul", "stationary", stationary).T @ read("nc_matmul", "moving", moving)
    dst.array[...] += product  # unwritten elements hold zero
    dst.written[...] = True


def nc_transpose(dst, data):
    check_engine("nc_transpose", dst=dst, data=data)
    if dst.shape != data.shape[::-1]:
        refuse(f"nc_transpose: result {dst.shape}")
    if not data.written.all():
        refuse("nc_transpose: data was not written")
    write(dst, data.array.T)


# ---- The names that kernels use ----------------------------------------------------------------------


def jit(function):
    """Wraps arrays as HBM tensors and hands the result's array back."""

    def launch(*arrays):
        return function(*(Tile(array, np.ones(array.shape, bool), "hbm") for array in arrays)).array

    return launch


nki = types.SimpleNamespace(jit=jit)
nisa = types.SimpleNamespace(
    dma_copy=dma_copy, tensor_copy=tensor_copy, tensor_tensor=tensor_tensor, tensor_scalar=tensor_scalar,
    tensor_reduce=tensor_reduce, activation=activation, reciprocal=reciprocal, nc_matmul=nc_matmul,
    nc_transpose=nc_transpose)
nl = types.SimpleNamespace(
    ndarray=ndarray, sbuf="sbuf", psum="psum", shared_hbm="hbm", float32=np.float32, bfloat16=ml_dtypes.bfloat16,
    add=np.add, multiply=np.multiply, maximum=np.maximum, exp=np.exp)
