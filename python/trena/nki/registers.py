"""Registers of the engine sequencers. Values are live: a kernel is executed while it is traced, so a
register can steer a Python loop or an `if` (nki.md §5.5-36)."""

from __future__ import annotations

import operator

from trena import _core, errors
from trena import launch as _launch
from trena.nki.objects import NKIObject


class VirtualRegister(NKIObject):
    """One 32-bit integer. Reading it before it was set is an error."""

    __slots__ = ("state", "frozen", "compared_at")

    def __init__(self, state: int | None = None, frozen: bool = False):
        self.state = state
        self.frozen = frozen
        self.compared_at = None  # number of the instruction that followed the last `while register:`

    @property
    def value(self) -> int:
        if self.state is None:
            raise errors.UnwrittenRead(
                "a register is set before it is read", id="register-unset",
                here="the register has no value yet", fix="register_move or register_load into it first",
            )
        return self.state

    def __int__(self) -> int:
        return self.value

    __index__ = __int__

    def __bool__(self) -> bool:
        if _launch.current() is not None:  # `while register:` ends each iteration with a compare-and-branch
            first = 2**32 - 1 if self.compared_at is None else self.compared_at
            self.compared_at = _core.branch(first)
        return self.value != 0

    def __repr__(self):
        return f"register({self.state})"

    def __hash__(self):
        return id(self)


def _binary(function, swapped=False):
    def method(self, other):
        other = operator.index(other)
        return function(other, self.value) if swapped else function(self.value, other)

    return method


for _name in ("add", "sub", "mul", "floordiv", "mod", "lt", "le", "gt", "ge", "eq", "ne"):
    setattr(VirtualRegister, f"__{_name}__", _binary(getattr(operator, _name)))
for _name in ("add", "sub", "mul", "floordiv", "mod"):
    setattr(VirtualRegister, f"__r{_name}__", _binary(getattr(operator, _name), swapped=True))


def register_alloc(x: int | None = None) -> VirtualRegister:
    """A register, set to `x` when given."""
    _launch.require("nisa.register_alloc")
    if isinstance(x, _core.Tensor):  # nki.md §6.4: older kernels initialise from a tensor
        register = VirtualRegister()
        register_load(register, x)
        return register
    return VirtualRegister(None if x is None else _core.isa.register_move(operator.index(x)))


def _check_writable(register: VirtualRegister) -> None:
    if register.frozen:
        raise errors.IllegalInstruction(
            "the index of a dynamic loop cannot be written", id="register-frozen", here="a loop index is written",
            fix="copy it into a register of your own",
        )


def register_move(dst: VirtualRegister, src) -> None:
    """dst = src, a number or a register."""
    _launch.require("nisa.register_move")
    _check_writable(dst)
    dst.state = _core.isa.register_move(operator.index(src))


def register_load(dst: VirtualRegister, src) -> None:
    """dst = the one element of `src` (HBM or SBUF)."""
    _launch.require("nisa.register_load")
    _check_writable(dst)
    dst.state = _core.isa.register_load(src)


def register_store(dst, src) -> None:
    """The one element of `dst` (HBM or SBUF) = the value of a register."""
    _launch.require("nisa.register_store")
    _core.isa.register_store(dst, operator.index(src))
