"""NKI, the kernel language of Trainium, on a simulated device (current API: `nki` 0.6).

`trena run script.py` makes `import nki` find this package; `import trena.nki as nki` works too.
"""

from trena.nki import objects as _objects  # registers the memory regions
from trena.nki import language, isa, collectives, typing, compiler, dtype, tensor
from trena.nki.kernel import Kernel, baremetal, benchmark, cpu_simulate, jit, profile, simulate

__version__ = "0.6.0+trena"
__all__ = [
    "Kernel", "baremetal", "benchmark", "collectives", "compiler", "cpu_simulate", "dtype", "isa", "jit", "language",
    "profile", "simulate", "typing",
]
