"""nki.isa: the instructions of a NeuronCore.

The functions are those of the compiled module: nothing in Python stands between a kernel and the machine.
`documentation(name)` says what an instruction does; `trena explain` lists them all.
"""

from __future__ import annotations

import enum as _enum
import sys as _sys

from trena import _core
from trena import launch as _launch
from trena.nki import registers as _registers
from trena.nki.objects import NKIObject as _NKIObject
from trena.nki.registers import (
    VirtualRegister, register_alloc, register_load, register_move, register_store,
)

engine = _core.engine
tensor_engine = engine.tensor
vector_engine = engine.vector
scalar_engine = engine.scalar
gpsimd_engine = engine.gpsimd
unknown_engine = engine.unknown


def _enumeration(name: str, **members):
    """The compiled enum when there is one, so that instructions take its members as they are."""
    return getattr(_core, name, None) or _enum.Enum(name, members, module=__name__)


reduce_cmd = _enumeration("reduce_cmd", idle=0, reset=1, reduce=2, reset_reduce=3, load_reduce=4)
dge_mode = _enumeration("dge_mode", unknown=0, swdge=1, hwdge=2, none=3)
oob_mode = _enumeration("oob_mode", error=0, skip=1)
matmul_perf_mode = _enumeration("matmul_perf_mode", none="none", double_row="double_row")
dma_engine = _enumeration("dma_engine", dma=1, gpsimd_dma=2)


class nc_version(_enum.IntEnum):
    """Generations of the NeuronCore: gen2 is trn1 and inf2, gen3 trn2, gen4 trn3."""

    gen2 = 2
    gen3 = 3
    gen4 = 4


def get_nc_version() -> nc_version:
    """The generation of the machine this kernel runs on."""
    return nc_version(_launch.read_figure("chip.generation"))


def get_nc_sub_version() -> int:
    """The silicon revision within the generation: always the first."""
    return 0


class NkiValidationError(Exception):
    """A constraint of the hardware is violated (the name of the vendor's simulator)."""


NkiInstruction = getattr(_core, "NkiInstruction", None) or type("NkiInstruction", (_NKIObject,), {})

for _name in dir(_core.isa):
    if not _name.startswith("_") and _name not in {"register_load", "register_move", "register_store"}:
        globals()[_name] = getattr(_core.isa, _name)


def __getattr__(name: str):
    from trena.errors import NotModelled
    from trena.nki.isa.documentation import INSTRUCTIONS
    from trena.nki.versions import why_absent

    absent = why_absent("isa", name)
    if name in INSTRUCTIONS and not absent:

        def missing(*args, **kwargs):
            raise NotModelled(f"nki.isa.{name} is not modelled", id="not-modelled", here=f"nki.isa.{name}")

        missing.__name__ = missing.__qualname__ = name
        return missing
    raise AttributeError(f"module 'nki.isa' has no attribute {name!r}" + absent)


def documentation(name: str) -> str:
    """What an instruction does, in one paragraph."""
    from trena.nki.isa.documentation import INSTRUCTIONS

    return INSTRUCTIONS[name]
