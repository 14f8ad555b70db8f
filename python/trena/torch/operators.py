"""ATen operators of the device: each one names its lowering in graph/.

Most are registered in their `out=` form only: PyTorch derives the functional and the in-place form from it,
with its own rules for broadcasting, type promotion and errors.
"""

from __future__ import annotations

import torch
from trena.errors import NotModelled
from trena.torch import fallback, memory, session

aten = torch.ops.aten

FLOATS = frozenset({torch.float32, torch.bfloat16, torch.float16})
_MASKS = FLOATS | {torch.bool}
_INTEGERS = frozenset({torch.int32, torch.int64})  # compared exactly by GpSimd
_MOST_EXACT = 1 << 24  # float32 counts up to here

# (overload, kernel) pairs, filled by @kernel.
KERNELS: list[tuple[str, object]] = []


class _Unsupported(Exception):
    """This call has no lowering; the text says why."""


def _overload(name: str):
    packet, _, overload = name.partition(".")
    return getattr(getattr(aten, packet), overload or "default")


def kernel(*names: str):
    """Registers a function as the device's kernel of these overloads. Its first argument is the operator's name."""

    def register(function):
        for name in names:
            KERNELS.append((name, _counted(name, function)))
        return function

    return register


def _counted(name: str, function):
    op = _overload(name)
    label = op.name()

    def run(*args, **kwargs):
        try:
            result = function(label, *args, **kwargs)
        except _Unsupported as why:
            return fallback.run_on_cpu(op, args, kwargs, str(why))
        except NotModelled as error:
            if not error.id.startswith("graph-"):
                raise
            return fallback.run_on_cpu(op, args, kwargs, f"{error.rule}: {error.here}")
        session.count_executed(label)
        return result

    return run


def _need(tensors, dtypes=FLOATS) -> None:
    for tensor in tensors:
        if tensor.dtype not in dtypes:
            raise _Unsupported(f"{tensor.dtype} operand")
        if tensor.device.type != "neuron":
            raise _Unsupported(f"an operand on {tensor.device}")


def _is_number(value) -> bool:
    return not isinstance(value, torch.Tensor) or (value.dim() == 0 and value.device.type == "cpu")


def _number(value) -> float:
    return float(value.item() if isinstance(value, torch.Tensor) else value)


def elementwise(label, name, out, inputs, scalars=(), dtypes=_MASKS):
    _need(inputs, dtypes)
    _need([out], _MASKS)
    if out.numel() == 0:
        return out
    session.current().elementwise(label, name, session.view(out), [session.view(t) for t in inputs],
                                  [float(s) for s in scalars])
    return out


# ---- Arithmetic ----------------------------------------------------------------------------------


@kernel("add.out")
def add(label, self, other, *, alpha=1, out):
    if _is_number(other):
        return elementwise(label, "add_scalar", out, [self], [_number(other), alpha])
    if _is_number(self):
        elementwise(label, "mul_scalar", out, [other], [alpha])
        return elementwise(label, "add_scalar", out, [out], [_number(self), 1])
    return elementwise(label, "add", out, [self, other], [alpha])


@kernel("sub.out")
def sub(label, self, other, *, alpha=1, out):
    if _is_number(other):
        return elementwise(label, "sub_scalar", out, [self], [_number(other), alpha])
    if _is_number(self):
        return elementwise(label, "rsub_scalar", out, [other], [_number(self), alpha])
    return elementwise(label, "sub", out, [self, other], [alpha])


@kernel("mul.out")
def mul(label, self, other, *, out):
    if _is_number(other):
        return elementwise(label, "mul_scalar", out, [self], [_number(other)])
    if _is_number(self):
        return elementwise(label, "mul_scalar", out, [other], [_number(self)])
    return elementwise(label, "mul", out, [self, other])


@kernel("div.out")
def div(label, self, other, *, out):
    if _is_number(other):
        return elementwise(label, "div_scalar", out, [self], [_number(other)])
    if _is_number(self):
        elementwise(label, "reciprocal", out, [other])
        return elementwise(label, "mul_scalar", out, [out], [_number(self)])
    return elementwise(label, "div", out, [self, other])


def _comparison(name):
    mirrored = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}

    def compare(label, self, other, *, out):
        if _is_number(other):
            return elementwise(label, f"{name}_scalar", out, [self], [_number(other)])
        if _is_number(self):
            return elementwise(label, f"{mirrored[name]}_scalar", out, [other], [_number(self)])
        same_integers = self.dtype == other.dtype and self.dtype in _INTEGERS
        return elementwise(label, name, out, [self, other], dtypes=_INTEGERS if same_integers else _MASKS)

    kernel(f"{name}.Tensor_out", f"{name}.Scalar_out")(compare)


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _comparison(_name)


def _unary(name):
    def apply(label, self, *, out):
        if out.size() != self.size():  # abs passes an empty one
            out.resize_(self.size())
        return elementwise(label, name, out, [self])

    kernel(f"{name}.out")(apply)


for _name in ("abs", "exp", "log", "neg", "reciprocal", "rsqrt", "sigmoid", "silu", "sqrt", "tanh"):
    _unary(_name)


@kernel("maximum.out")
def maximum(label, self, other, *, out):
    return elementwise(label, "maximum", out, [self, other])


@kernel("minimum.out")
def minimum(label, self, other, *, out):
    return elementwise(label, "minimum", out, [self, other])


@kernel("lerp.Scalar_out")
def lerp(label, self, end, weight, *, out):
    return elementwise(label, "lerp", out, [self, end], [weight])


@kernel("addcmul.out")
def addcmul(label, self, tensor1, tensor2, *, value=1, out):
    return elementwise(label, "addcmul", out, [self, tensor1, tensor2], [value])


@kernel("addcdiv.out")
def addcdiv(label, self, tensor1, tensor2, *, value=1, out):
    return elementwise(label, "addcdiv", out, [self, tensor1, tensor2], [value])


@kernel("where.self")
def where(label, condition, self, other):
    if _is_number(self) or _is_number(other) or self.dtype != other.dtype:
        raise _Unsupported("numbers or mixed types")
    _need([condition], {torch.bool})
    shape = torch.broadcast_shapes(condition.size(), self.size(), other.size())
    out = memory.empty(shape, self.dtype)
    return elementwise(label, "where", out, [condition, self, other])


@kernel("relu")
def relu(label, self):
    return elementwise(label, "relu", torch.empty_like(self), [self])


@kernel("relu_")
def relu_(label, self):
    return elementwise(label, "relu", self, [self])


@kernel("threshold_backward.grad_input")
def threshold_backward(label, grad_output, self, threshold, *, grad_input):
    return elementwise(label, "threshold_backward", grad_input, [grad_output, self], [threshold])


# ---- Products ------------------------------------------------------------------------------------


def matmul(label, out, a, b, bias=None, alpha=1, beta=1):
    operands = [out, a, b] if bias is None else [out, a, b, bias]
    _need(operands)
    if a.dtype != b.dtype:
        raise _Unsupported("operands of different types")
    if out.numel() == 0:
        return out
    if a.numel() == 0:
        raise _Unsupported("an empty sum")
    session.current().matmul(label, session.view(out), session.view(a), session.view(b),
                             None if bias is None else session.view(bias), float(alpha), float(beta))
    return out


@kernel("mm.out")
def mm(label, self, mat2, *, out):
    return matmul(label, out, self, mat2)


@kernel("addmm.out")
def addmm(label, self, mat1, mat2, *, beta=1, alpha=1, out):
    return matmul(label, out, mat1, mat2, self, alpha, beta)


@kernel("bmm.out")
def bmm(label, self, mat2, *, out):
    for index in range(self.size(0)):
        matmul(label, out[index], self[index], mat2[index])
    return out


# ---- Filling and copying -------------------------------------------------------------------------


@kernel("fill_.Scalar")
def fill_(label, self, value):
    if isinstance(value, complex) or self.dtype not in memory.DTYPE_NAMES or self.dtype is torch.float64:
        raise _Unsupported(f"{self.dtype}")
    if self.numel():
        session.current().fill(label, session.view(self), float(value))
    return self


@kernel("fill_.Tensor")
def fill_tensor_(label, self, value):
    if value.device.type == "cpu":
        return fill_(label, self, value.item())
    session.current().copy(label, session.view(self), session.view(value))
    return self


@kernel("zero_")
def zero_(label, self):
    return fill_(label, self, 0)


def copy_from(self, dst, non_blocking=False):
    """Every copy_ that has the device on one side (or both)."""
    if self.device.type == "cpu":
        session.count_transfer(dst.numel() * dst.element_size(), to_device=True)
        memory.host_alias(dst).copy_(self)
    elif dst.device.type == "cpu":
        session.synchronize()  # the host waits for the device
        session.count_transfer(self.numel() * self.element_size(), to_device=False)
        dst.copy_(memory.host_alias(self))
    elif self.numel():
        _copy_on_device(self, dst)
    return dst


def _copy_on_device(source, dst):
    label = "aten::copy_"
    known = source.dtype in memory.DTYPE_NAMES and dst.dtype in memory.DTYPE_NAMES
    try:
        if not known:
            raise _Unsupported(f"{source.dtype} to {dst.dtype}")
        session.current().copy(label, session.view(dst), session.view(source))
        session.count_executed(label)
    except (_Unsupported, NotModelled) as why:
        if isinstance(why, NotModelled) and not why.id.startswith("graph-"):
            raise
        fallback.run_on_cpu(aten.copy_.default, (dst, source), {}, str(getattr(why, "here", why)))


def local_scalar_dense(self):
    session.synchronize()
    session.count_transfer(self.element_size(), to_device=False)
    return memory.host_alias(self).item()


# ---- Reductions ----------------------------------------------------------------------------------


def _axes(tensor, dim) -> list[int]:
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return list(range(tensor.dim()))
    dims = [dim] if isinstance(dim, int) else dim
    return sorted(d % max(tensor.dim(), 1) for d in dims) if tensor.dim() else []


def reduce(label, name, out, self, dim, scale=1.0):
    counts = self.dtype is torch.bool and out.dtype is torch.int64 and name == "add"
    if not counts:
        _need([out], FLOATS)
    _need([self], _MASKS)
    if self.numel() == 0 or (counts and self.numel() > _MOST_EXACT):
        raise _Unsupported("an empty tensor, or more elements than a float32 counts")
    axes = _axes(self, dim)
    kept = out
    if out.dim() == self.dim():  # keepdim: the reduced dimensions have size 1
        for axis in reversed(axes):
            kept = kept.select(axis, 0)
    session.current().reduce(label, name, session.view(kept), session.view(self), axes, scale)
    return out


@kernel("sum.IntList_out")
def sum_(label, self, dim, keepdim=False, *, dtype=None, out):
    return reduce(label, "add", out, self, dim)


@kernel("mean.out")
def mean(label, self, dim, keepdim=False, *, dtype=None, out):
    count = 1
    for axis in _axes(self, dim):
        count *= self.size(axis)
    return reduce(label, "add", out, self, dim, 1.0 / max(count, 1))


@kernel("amax.out")
def amax(label, self, dim=(), keepdim=False, *, out):
    return reduce(label, "maximum", out, self, dim)


@kernel("amin.out")
def amin(label, self, dim=(), keepdim=False, *, out):
    return reduce(label, "minimum", out, self, dim)


@kernel("argmax.out")
def argmax(label, self, dim=None, keepdim=False, *, out):
    _need([self])
    if self.numel() == 0 or (dim is None and not self.is_contiguous()):
        raise _Unsupported("an empty or non-contiguous tensor")
    source = self.reshape(-1) if dim is None else self
    axis = 0 if dim is None else dim % max(self.dim(), 1)
    kept = out.view([]) if dim is None else out.select(axis, 0) if keepdim and self.dim() else out
    if source.dim() == 0:
        return fill_(label, out, 0)
    session.current().argmax(label, session.view(kept), session.view(source), axis)
    return out


# ---- Softmax and loss ----------------------------------------------------------------------------


def _softmax(name, logarithm):
    def forward(label, self, dim, half_to_float, *, out):
        _need([self, out])
        if self.numel():
            session.current().softmax(label, session.view(out), session.view(self), dim % max(self.dim(), 1), logarithm)
        return out

    def backward(label, grad_output, output, dim, input_dtype, *, out):
        _need([grad_output, output, out])
        if output.numel():
            session.current().softmax_backward(label, session.view(out), session.view(grad_output),
                                               session.view(output), dim % max(output.dim(), 1), logarithm)
        return out

    kernel(f"{name}.out")(forward)
    if logarithm:
        kernel(f"{name}_backward_data.out")(backward)
    else:
        kernel(f"{name}_backward_data.out")(
            lambda label, grad_output, output, dim, input_dtype, *, grad_input: backward(
                label, grad_output, output, dim, input_dtype, out=grad_input))


_softmax("_log_softmax", True)
_softmax("_softmax", False)


def _check_loss(matrix, target, weight):
    _need([matrix])
    _need([target], {torch.int64})
    if weight is not None:
        raise _Unsupported("class weights")
    if matrix.numel() == 0:
        raise _Unsupported("an empty tensor")


@kernel("nll_loss_forward.output")
def nll_loss_forward(label, self, target, weight, reduction, ignore_index, *, output, total_weight):
    _check_loss(self, target, weight)
    session.current().nll_loss(label, session.view(output), session.view(total_weight), session.view(self),
                               session.view(target), reduction, ignore_index)
    return output, total_weight


@kernel("nll_loss_backward.grad_input")
def nll_loss_backward(label, grad_output, self, target, weight, reduction, ignore_index, total_weight, *, grad_input):
    _check_loss(self, target, weight)
    session.current().nll_loss_backward(label, session.view(grad_input), session.view(grad_output),
                                        session.view(target), session.view(total_weight), reduction, ignore_index)
    return grad_input
