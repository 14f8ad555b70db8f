"""Published times of single instructions and single DMA transfers, predicted by running just these.

A probe is a kernel of the one instruction (or of the back-to-back sequence that its source describes) that goes
through the ordinary front end, placement and clock; its prediction is read off the events of that run. There is no
formula here.
"""

from __future__ import annotations

import re

import trena.nki.isa as nisa
import trena.nki.language as nl

# Enough products to leave the array's ramp behind (hw.md 1.8).
_WARM = 512
# Transfers of one stream, so that its first and last do not matter.
_STREAM = 64

_DTYPES = {"fp32": nl.float32, "bfloat16": nl.bfloat16}
_ENGINES = {"Vector": nisa.engine.vector, "Scalar": nisa.engine.scalar, "GpSimd": nisa.engine.gpsimd,
            "Sync": nisa.engine.sync, "Tensor": nisa.engine.tensor}

# What keeps a sequencer going and moves no data: profilers leave it out of active time, and so does Trena.
CONTROL = {"NOP", "NOTIFY", "SET_ORDERING_MODE", "EVENT_SEMAPHORE_RANGE_CLEAR", "EVENT_SEMAPHORE", "DRAIN",
           "COMPARE_BRANCH", "WRITE", "TENSOR_LOAD"}


def _fields(shape: str) -> dict[str, str]:
    """`engine=Vector; opcode=COPY; src fp32 PSUM free=128; HAM 8/8` as a dictionary."""
    found = dict(re.findall(r"(\w+)=([^;]+)", shape))
    for side in ("src", "dst"):
        operand = re.search(rf"{side} (\w+) (SBUF|PSUM) free=(\d+)", shape)
        if operand:
            found[side] = operand.groups()
    found["warm"] = "HAM 8/8" in shape
    found["opcode"] = found.get("opcode", "").removesuffix(" (control)")
    return found


def opcode(row) -> str:
    return _fields(row.shape)["opcode"]


def is_control(row) -> bool:
    return opcode(row) in CONTROL


def _tile(operand, shape=None):
    dtype, space, free = operand
    return nl.ndarray(shape or (128, int(free)), _DTYPES[dtype], buffer=nl.psum if space == "PSUM" else nl.sbuf)


def _last(events, column: str) -> float:
    return float(events[column][-1])


def _duration(run) -> float:
    """Start to result of the last instruction."""
    events = run.events()
    return _last(events, "end_ns") - _last(events, "start_ns")


# ---- INST: the opcodes of traced kernels ---------------------------------------------------------------


def _copy(fields):
    source, target = _tile(fields["src"]), _tile(fields["dst"])
    nisa.tensor_copy(dst=target, src=source, engine=_ENGINES[fields["engine"]])


def _exp(fields):
    source, target = _tile(fields["src"]), _tile(fields["dst"])
    for _ in range(2):  # the first also loads the table
        nisa.activation(dst=target, op=nl.exp, data=source)


def _reciprocal(fields):
    nisa.reciprocal(dst=_tile(fields["dst"]), data=_tile(fields["src"]))


def _reduce(fields):
    inputs, outputs = int(fields["src"][2]), int(fields["dst"][2])
    source = _tile(fields["src"], (128, outputs, inputs // outputs))
    target = _tile(fields["dst"], (128, outputs))
    op = nl.maximum if fields["text"].rstrip().endswith("MAX") else nl.add
    nisa.tensor_reduce(dst=target, op=op, data=source, axis=2)


def _scale(fields):
    """One operand is a pointer to [P, 1]."""
    factor = nl.ndarray((128, 1), nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=_tile(fields["dst"]), data=_tile(fields["src"]), op0=nl.multiply, operand0=factor)


def _product(fields):
    """MATMUL and LDWEIGHTS of one nc_matmul, or of a transpose; warm: at the end of a dense stream."""
    dtype = _DTYPES[fields["src"][0]]
    transpose = fields["mode"] == "TRANSPOSE"
    columns = int(fields["src"][2]) if fields["opcode"] == "MATMUL" else 128
    stationary = nl.ndarray((128, 128), dtype, buffer=nl.sbuf)
    moving = nl.ndarray((128, columns), dtype, buffer=nl.sbuf)
    results = [nl.ndarray((128, columns), dtype if transpose else nl.float32, buffer=nl.psum) for _ in range(2)]
    for step in range(_WARM if fields["warm"] else 1):
        if transpose:
            nisa.nc_transpose(dst=results[step % 2], data=stationary, engine=nisa.engine.tensor)
        else:
            nisa.nc_matmul(dst=results[step % 2], stationary=stationary, moving=moving, accumulate=False)


def _patterns(fields):
    return [[int(n) for n in re.findall(r"\d+", pattern)] for pattern in (fields["src_pattern"], fields["dst_pattern"])]


def _direct2d(fields):
    """Rows of one length between HBM and SBUF; patterns are [strides][counts], SBUF's partitions 256 KiB apart."""
    (source, target), row_bytes = _patterns(fields), int(fields["src_elem_size"])
    partitions = source[2:].index(128)
    store = source[partitions] == 262144
    blocks = source[2] if partitions == 1 else 1
    tile = nl.ndarray((128, blocks, row_bytes), nl.uint8, buffer=nl.sbuf)
    memory = nl.ndarray((blocks, 128, row_bytes), nl.uint8, buffer=nl.hbm)
    rows = memory.permute((1, 0, 2)) if blocks > 1 else memory.reshape((128, 1, row_bytes))
    software = fields["engine"] == "GpSimd"
    modes = {"dge_mode": nisa.dge_mode.swdge if software else nisa.dge_mode.hwdge,
             "engine": _ENGINES[fields["engine"]]}
    nisa.dma_copy(dst=rows if store else tile, src=tile if store else rows, **modes)


def _register_load(fields):
    value = nl.ndarray((1, 1), nl.int32, buffer=nl.sbuf)
    nisa.memset(dst=value, value=1)
    nisa.register_load(nisa.register_alloc(), value)


def needs_values(row) -> bool:
    """A register's content may steer a kernel, so a run without values refuses to load one."""
    return row.family == "INST" and opcode(row) == "TENSOR_LOAD"


def _branch(fields):
    """The end of a loop that the device counts."""
    counter = nl.ndarray((128, 1), nl.float32, buffer=nl.sbuf)
    for _ in nl.dynamic_range(4):
        nisa.memset(dst=counter, value=0.0)


def _branch_duration(run) -> float:
    events = run.events()
    last = max(i for i, name in enumerate(events["name"]) if "branch" in name)
    return float(events["end_ns"][last] - events["start_ns"][last])


def _dma_trigger(fields):
    """WRITE rings the doorbell of descriptors written before the run."""
    transfer((128, 1024), nisa.dge_mode.none, nisa.engine.tensor)


def transfer(shape, mode=None, engine=None):
    modes = {} if mode is None else {"dge_mode": mode}
    modes |= {} if engine is None else {"engine": engine}
    tile = nl.ndarray(shape, nl.uint8, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=nl.ndarray(shape, nl.uint8, buffer=nl.hbm), **modes)


_BODIES = {"COPY": _copy, "CAST": _copy, "ACTIVATE": _exp, "ACT_TABLE_LOAD": _exp, "RECIPROCAL": _reciprocal,
           "TENSOR_REDUCE": _reduce, "TENSOR_SCALAR": _scale, "MATMUL": _product, "LDWEIGHTS": _product,
           "DMA_DIRECT2D": _direct2d, "TENSOR_LOAD": _register_load, "WRITE": _dma_trigger,
           "COMPARE_BRANCH": _branch}
_READINGS = {"MATMUL": lambda run: _last(run.events(), "multiply_ns"),
             "LDWEIGHTS": lambda run: _last(run.events(), "load_weights_ns"),
             "DMA_DIRECT2D": lambda run: _last(run.events(), "trigger_ns"),
             "WRITE": lambda run: _last(run.events(), "trigger_ns"),
             "COMPARE_BRANCH": _branch_duration,
             "ACT_TABLE_LOAD": lambda run: run.table_load_ns / run.table_loads}


def _instruction(row):
    fields = _fields(row.shape)
    fields["text"] = row.shape.replace("; partitions=128", "")
    if fields["opcode"] == "ACT_TABLE_LOAD":
        fields |= {"src": ("fp32", "SBUF", "512"), "dst": ("fp32", "SBUF", "512")}
    body = _BODIES.get(fields["opcode"])
    if body is None:
        return None
    return lambda: body(fields), _READINGS.get(fields["opcode"], _duration)


# ---- DMA: packets ---------------------------------------------------------------------------------------


def _packet(row):
    """A packet of a ring: rows of so many bytes in 128 partitions."""
    row_bytes = int(re.search(r"bytes=(\d+)", row.shape).group(1))
    software = "software" in row.shape
    mode = nisa.dge_mode.swdge if software else nisa.dge_mode.hwdge
    engine = nisa.engine.gpsimd if software else nisa.engine.sync

    def one_row(run):
        return _last(run.events(), "packets_ns") / 128

    return lambda: transfer((128, row_bytes), mode, engine), one_row


# ---- DOC: what the documentation prints ------------------------------------------------------------------


def _dependent_activations():
    """Each reads what the one before wrote, one element per partition."""
    tile = nl.ndarray((128, 1), nl.float32, buffer=nl.sbuf)
    for _ in range(8):
        nisa.activation(dst=tile, op=nl.copy, data=tile)


def _last_interval(run) -> float:
    starts = run.events()["start_ns"]
    return float(starts[-1] - starts[-2])


def _stream(row_bytes: int, mode, partitions: int = 128, engine=None):
    def body():
        for _ in range(_STREAM):
            transfer((partitions, row_bytes), mode, engine)

    return body


def _rate(run, first: int = _STREAM // 2) -> float:
    """B/ns of the second half of a stream, from payload end to payload end."""
    events = run.events()
    span = events["busy_until_ns"][-1] - events["busy_until_ns"][first - 1]
    return float(events["bytes"][first:].sum() / span)


def _busy_engine(run) -> float:
    """What the transfer's packets take on each of the engines that share it: one of a stream to the next."""
    ends = run.events()["busy_until_ns"]
    return float(ends[-1] - ends[-2])


def _store_of_a_result():
    tile = nl.ndarray((128, 1024), nl.uint8, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=0)
    nisa.dma_copy(dst=nl.ndarray((128, 1024), nl.uint8, buffer=nl.hbm), src=tile)


def _semaphore_to_start(run) -> float:
    events = run.events()
    return float(events["start_ns"][1] - events["end_ns"][0])


def _documented(row, peak_of):
    if row.id == "DOC-001":
        return _dependent_activations, _last_interval
    if row.id == "DOC-002":  # 4 partitions: one engine
        return _stream(8192, nisa.dge_mode.none, 4), _busy_engine
    if row.id == "DOC-003":
        return lambda: transfer((128, 256)), lambda run: _last(run.events(), "packets_ns") / 16
    if row.id == "DOC-004":
        return lambda: transfer((128, 256)), lambda run: _last(run.events(), "trigger_ns")
    if row.id == "DOC-006":
        return (lambda: transfer((128, 4096), nisa.dge_mode.hwdge, nisa.engine.sync),
                lambda run: _last(run.events(), "trigger_ns"))
    if row.id in ("DOC-008", "DOC-009", "DOC-010"):
        return _stream(32768, nisa.dge_mode.none), lambda run: _rate(run) / 16
    if row.id == "DOC-007":  # an engine's result, then the DMA that stores it
        return _store_of_a_result, _semaphore_to_start
    curve = re.match(r"free_bytes=(\d+); partitions=128", row.shape)
    if curve:  # one transfer after the other, against the rate at 32 KiB per partition
        return _stream(int(curve.group(1)), None), lambda run: _rate(run) / peak_of()
    return None


def probe(row, peak_of):
    """(kernel body, reading of its run) of an instruction or DMA row; None where Trena has no such instruction.

    `peak_of()` is the rate of transfers of 32 KiB per partition on the row's machine.
    """
    if row.family == "INST":
        return _instruction(row)
    if row.family == "DMA":
        return _packet(row)
    return _documented(row, peak_of)


def peak_probe():
    return _stream(32768, None), _rate
