"""Which of our kernels stands for a published kernel row, and how its run is read in the row's own words."""

from __future__ import annotations

import re

import trena.nki.isa as nisa
import trena.nki.language as nl
from trena.accuracy.kernels import attention, convolution, gemm, norm, streams

_DTYPES = {"bf16": nl.bfloat16, "fp32": nl.float32, "fp16": nl.float16, "uint8": nl.float8_e4m3}
_GIB = 1 << 30


def _number(pattern: str, text: str) -> int:
    return int(re.search(pattern, text).group(1))


def _dtype(text: str):
    """uint8 stands as the other operand of one byte, which runs at the same rate."""
    return _DTYPES[re.search("bf16|fp32|fp16|uint8", text).group(0)]


def _prof(row):
    kernel = attention.one_pass if "fused" in row.shape else attention.three_passes
    return kernel, (_number(r"seqlen=(\d+)", row.shape), _dtype(row.shape))


def _ao(row):
    size = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", row.shape)}
    name = re.search(r"NKIBench (\w+)", row.workload).group(1)
    if name in ("matmul_add_rmsnorm", "add_rmsnorm_matmul", "swiglu"):
        kernel = {"matmul_add_rmsnorm": norm.product_then_norm, "add_rmsnorm_matmul": norm.norm_then_product,
                  "swiglu": norm.gated_mlp}[name]
        return kernel, (size["M"], size["N"], size["K"], nl.float32)
    if name == "transpose_matmul":
        return gemm.column_stripes, (size["M"], size["N"], size["K"], nl.float32, 1024, 1024)
    if name == "bmm_softmax":
        return attention.batched_product_softmax, (size["B"], size["M"], size["N"], size["K"], nl.float32)
    if name == "gqa_full":
        return attention.grouped_queries, (size["N"], size["QH"], size["KH"], nl.float32)
    return None


def _vector_add(row, text):
    elements = _number(r"n=(\d+)|(\d+) fp32", text.replace("256000 fp32 elements", "n=256000"))
    static = nisa.dge_mode.none if "disable-dge" in text else None
    if "tiled" in row.workload:
        return streams.add_rows, (elements, _number(r"ROW_CHUNK=(\d+)", text), static)
    if "direct_allocation" in row.workload:
        return streams.add_tiles, (elements, 1000, static)
    return streams.add_tiles, (elements, _number(r"FREE_DIM=(\d+)", text), static)


def _course(row):
    """The course assignment on vectors, transposes and a convolution."""
    text = f"{row.workload}; {row.shape}"
    if "vector_add" in text:
        return _vector_add(row, text)
    if "matrix_transpose " in text:
        return streams.transpose_tiles, (_number(r"(\d+)x", row.shape), nl.float32, nisa.dge_mode.none)
    if "conv2d" in text:
        pooled = re.search(r"pool=2|conv2d pool", text) is not None
        return convolution.convolve, (224, 256, 3, _dtype(text), 2 if pooled else 1, "trn1" in row.target)
    return None


def _nat(row):
    if row.workload.startswith("matmul lhs_rhs"):
        return gemm.row_blocks_transposed_by_dma, (2048, nl.bfloat16)
    if "hand kernel" in row.workload:
        return gemm.column_blocks, (2048, nl.bfloat16)
    if "rmsnorm" in row.workload:
        return gemm.normalised, (2048, nl.bfloat16)
    if "innermost" in row.workload:
        return gemm.every_operand_loaded, (2048, 2048, 2048, nl.bfloat16)
    one = re.search(r"single.(PSUM.)?bank", row.workload) is not None
    return gemm.banks, (2048, nl.bfloat16, 1 if one else 2)


def _pan_gemm(row):
    size, dtype = _number(r"(\d+)x\d+x", row.shape), _dtype(row.shape)
    reuse = re.search(r"\((\d)x(\d) accumulators\)", row.workload)
    if reuse:
        return gemm.accumulators, (size, size, size, dtype, int(reuse.group(1)), int(reuse.group(2)))
    rows = re.search(r"COALESCE_ROWS=(\d+)", row.shape)
    moving = re.search(r"N=(\d+) per matmul", row.shape)
    return gemm.accumulators, (size, size, size, dtype, int(rows.group(1)) if rows else 8, 1,
                               int(moving.group(1)) if moving else 512)


def _pan(row):
    # Not described: what else omni_virus does, what one attention tile is, how a compiler splits int8.
    if re.search("omni|attention|quantised", row.workload):
        return None
    if "GEMM" in row.workload:
        return _pan_gemm(row)
    total = _number(r"(\d+) GiB", row.shape) * _GIB
    if "read" in row.workload or "load" in row.workload:
        return streams.read, (total, nl.bfloat16, 2048, 2 if "two independent" in row.workload else 1)
    width = re.search(r"x (\d+) elements", row.shape)
    return streams.write, (total, nl.bfloat16, int(width.group(1)) if width else 8192)


def _mamba(row):
    size = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", row.shape)}
    version = re.search(r"mamba_(v\d)", row.workload).group(1)
    return streams.selective_scan, (size.get("channels"), size.get("seq_len"), size.get("state_size"),
                                    version == "v1", 512 if version == "v3" else None)


def _doc(row):
    from trena.accuracy.probes import transfer

    return (transfer, ((128, 256),)) if row.id == "DOC-005" else None


_FAMILIES = {"PROF": _prof, "AO": _ao, "CS149": _course, "RISH": _course, "NAT": _nat, "PAN": _pan, "MAMBA": _mamba,
             "DOC": _doc}


def kernel_of(row):
    """(kernel, its sizes), or None where nothing says what the kernel does."""
    return _FAMILIES[row.family](row) if row.family in _FAMILIES else None


# ---- How a run is read -----------------------------------------------------------------------------------


def _spilled(run, reads: bool) -> float:
    """Bytes that placement reloaded or saved: what HBM saw beyond the kernel's own transfers."""
    events = run.events()
    own = events["rows"].index("dma.load" if reads else "dma.store")
    mine = int(events["bytes"][(events["row"] == own) & (events["spill"] == 0)].sum())
    return (run.hbm_read_bytes if reads else run.hbm_write_bytes) - mine


_UNITS = {"ms": 1e-6, "us": 1e-3, "ns": 1.0}


def reading(row, run) -> float | None:
    """The row's quantity of a run, in the row's unit."""
    metric, unit = row.metric.lower(), row.unit
    flow_ns = run.time_ns - run.launch_ns
    engine = re.match(r"(tensor|vector|scalar|gpsimd)(e|_engine)[ _]active", metric)
    if engine:
        active = run.engines[engine.group(1)].active_ns
        whole = flow_ns if "window" in metric else run.time_ns
        return 100.0 * active / whole if unit == "%" else active * _UNITS[unit]
    if metric.replace("_", " ").startswith("dma active"):
        return run.dma.active_ns * _UNITS[unit]
    if metric.replace("_", " ").startswith("total active"):
        return flow_ns * _UNITS[unit]
    if "hbm_read_bytes" == metric:
        return run.hbm_read_bytes
    if "hbm_write_bytes" == metric:
        return run.hbm_write_bytes
    if metric.startswith("spill"):
        return _spilled(run, "reload" in metric)
    if metric == "mfu":  # of 79 TFLOPS, as the row's source says
        return 100.0 * 2 * run.multiply_accumulates / (run.time_ns * 79e3)
    if unit in ("TFLOPS", "TOPS"):
        return 2e-3 * run.multiply_accumulates / run.time_ns
    if unit == "GB/s":
        return max(run.hbm_read_bytes, run.hbm_write_bytes) / flow_ns
    if row.id == "DOC-005":
        events = run.events()
        return float(events["busy_until_ns"][-1] - events["start_ns"][-1])
    return run.time_ns * _UNITS[unit] if unit in _UNITS else None
