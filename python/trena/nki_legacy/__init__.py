"""The legacy API, `neuronxcc.nki` (beta 1): instructions return tiles, indices are affine, tensors have blocks."""

from trena.nki_legacy import compiler, isa, language, typing
from trena.nki_legacy.kernel import baremetal, benchmark, jit, profile, simulate_kernel, trace
from trena.nki_legacy.tile import Tile as tensor

__all__ = ["baremetal", "benchmark", "compiler", "isa", "jit", "language", "profile", "simulate_kernel", "tensor",
           "trace",
           "typing"]
