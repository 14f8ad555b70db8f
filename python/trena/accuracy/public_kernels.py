"""The rows whose kernel is public, run from the user's own checkout: `trena accuracy --checkout AO=DIR`.

    AO      zhang677/AccelOpt                    PROF    allenkchau/trainium-kernel-fusion
    MAMBA   aws-neuron-sdk, its folder nki/

Nothing of these repositories is part of Trena; a kernel is imported from the checkout and launched unchanged.
"""

from __future__ import annotations

import importlib.util
import pathlib
import re

import numpy as np

from trena.accuracy import checks, kernel_rows
from trena.accuracy.published import Prediction, Published, chosen


def _import(path: pathlib.Path):
    """The module at `path`, its neuronxcc and nki imports resolved to Trena."""
    import trena

    trena.install()
    spec = importlib.util.spec_from_file_location(f"checkout_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _zeros(*shapes, dtype=np.float32):
    return [np.zeros(shape, dtype) for shape in shapes]  # pages that nobody touches


def _attention(row: Published, folder: pathlib.Path):
    import ml_dtypes

    name = "fused" if "fused" in row.shape else "baseline"
    module = _import(folder / "kernels" / name / "attention.py")
    length = int(re.search(r"seqlen=(\d+)", row.shape).group(1))
    dtype = ml_dtypes.bfloat16 if "bf16" in row.shape else np.float32
    return getattr(module, f"{name}_attention"), _zeros(*[(128, length)] * 3, dtype=dtype)


# As the kernels of the benchmark split their operands.
_BENCHMARK = {
    "swiglu": lambda: _zeros((8, 4, 128, 8, 128), (8, 128, 3072), (24, 128, 1024), (8, 128, 3072)),
    "matmul_add_rmsnorm": lambda: [*_zeros((4096, 2048), (2048, 2048)), 1e-6, *_zeros((4096, 2048), (2048,))],
    "add_rmsnorm_matmul": lambda: [*_zeros((4096, 1024), (1024, 2048)), 1e-6, *_zeros((4096, 1024), (1024,))],
    "transpose_matmul": lambda: _zeros((128, 16, 4096), (128, 16, 10944)),
    "bmm_softmax": lambda: _zeros((16, 4096, 64), (16, 64, 4096)),
    "gqa_full": lambda: _zeros((32, 128, 16, 128), (1, 8, 4, 128, 8, 128), (1, 32, 128, 1024)),
}


def _benchmark(row: Published, folder: pathlib.Path):
    path = re.search(r"NKIBench/kernels/\S+\.py", row.source).group(0)
    name = re.search(r"NKIBench (\w+)", row.workload).group(1)
    return _import(folder / path).kernel, _BENCHMARK[name]()


def _scan(row: Published, folder: pathlib.Path):
    size = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", row.shape)}
    channels, length, states = size["channels"], size["seq_len"], size["state_size"]
    module = _import(folder / "examples" / "fused_mamba" / "mamba_nki_kernels.py")
    kernel = getattr(module, re.search(r"mamba_v\d", row.workload).group(0))
    return kernel, _zeros((1, channels, length), (1, channels, length), (channels, states), (1, states, length),
                          (1, states, length))


_FAMILIES = {"PROF": _attention, "AO": _benchmark, "MAMBA": _scan}


def measure(checkouts: dict[str, str]) -> list[Prediction]:
    """Predictions of the chosen rows of the families that have a checkout."""
    from trena import launch

    runs: dict = {}
    found = []
    for row, use in chosen():
        if row.family not in checkouts:
            continue
        key = (row.chip, row.workload, row.shape)
        if key not in runs:
            kernel, arguments = _FAMILIES[row.family](row, pathlib.Path(checkouts[row.family]))
            runs[key] = launch.simulate(kernel, target=row.chip, time_only=True)(*arguments)
        run = runs[key]
        found.append(Prediction(row, kernel_rows.reading(row, run), "", checks.bound_of(run), use))
    return found


def parse(words: list[str]) -> dict[str, str]:
    """`FAMILY=DIR` words; anything else is a usage error."""
    from trena.errors import UsageError

    checkouts = dict(word.partition("=")[::2] for word in words)
    for family, folder in checkouts.items():
        if family not in _FAMILIES or not pathlib.Path(folder).is_dir():
            raise UsageError("--checkout takes FAMILY=DIR of a public kernel's repository", id="accuracy-checkout",
                             here=f"--checkout {family}={folder}", limit=", ".join(sorted(_FAMILIES)))
    return checkouts
