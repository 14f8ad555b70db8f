"""Instruction and DMA rows: predictions, and how well a fitted law foretells a family it has not seen."""

from __future__ import annotations

import dataclasses

import numpy as np

from trena.accuracy import probes
from trena.accuracy.published import Prediction, Published, rows


def run_body(body, target: str, settings: tuple[str, ...] = (), values: bool = False):
    """One launch of a kernel without arguments or results."""
    import trena.nki as nki
    from trena import launch

    def probe():
        body()

    return launch.simulate(nki.jit(probe), target=target, time_only=not values, set=settings)()


def measured_rows() -> list[Published]:
    """Instruction rows of a chip that Trena knows, about one instruction or one DMA."""
    return [row for row in rows().values() if row.level == "instruction" and row.chip
            and row.family in ("INST", "DMA", "DOC") and row.id != "DOC-022"]  # a framework's dispatch


def predict(row: Published, settings: tuple[str, ...] = ()) -> Prediction:
    def peak():
        body, read = probes.peak_probe()
        return read(run_body(body, row.chip, settings))

    found = probes.probe(row, peak)
    if found is None:
        return Prediction(row, None, "not modelled")
    body, read = found
    return Prediction(row, read(run_body(body, row.chip, settings, probes.needs_values(row))))


def is_control(row: Published) -> bool:
    return row.family == "INST" and probes.is_control(row)


def is_instruction_fetch(row: Published) -> bool:
    """The ring that brings instructions; no figure of Trena is about it."""
    return row.family == "DMA" and "queue_type=instruction" in row.shape


def measure() -> tuple[list[Prediction], list[Prediction]]:
    """(compute and DMA rows, control opcodes)."""
    predictions = [predict(row) for row in measured_rows()]
    return ([p for p in predictions if not is_control(p.row)], [p for p in predictions if is_control(p.row)])


def curve_on(chip: str) -> list[Prediction]:
    """The rows whose chip is only presumed, as predicted on another."""
    return [predict(dataclasses.replace(row, target=chip)) for row in measured_rows() if "presumed" in row.target]


# ---- Leave one family out --------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Law:
    """Figures that were fitted to published rows, and these rows by family."""

    name: str
    figures: tuple[str, ...]
    families: dict[str, list[Published]]


def _by(selected: list[Published], key) -> dict[str, list[Published]]:
    families: dict[str, list[Published]] = {}
    for row in selected:
        families.setdefault(key(row), []).append(row)
    return families


def _operand(row: Published) -> str:
    """Element type and mode of a tensor-engine opcode."""
    mode = "transpose" if "TRANSPOSE" in row.shape else "product"
    return f"{'bf16' if 'bfloat16' in row.shape else 'fp32'} {mode}"


def _field(name: str):
    return lambda row: row.shape.split(f"{name}=")[1].split(";")[0]


def laws() -> list[Law]:
    instructions = [row for row in measured_rows() if row.family == "INST"]
    opcode = {name: [r for r in instructions if probes.opcode(r) == name]
              for name in ("MATMUL", "LDWEIGHTS", "DMA_DIRECT2D", "TENSOR_SCALAR")}
    hardware = [r for r in opcode["DMA_DIRECT2D"] if "GpSimd" not in r.shape]
    software = [r for r in opcode["DMA_DIRECT2D"] if "GpSimd" in r.shape]
    packets = [r for r in measured_rows() if r.family == "DMA" and not is_instruction_fetch(r)]
    tensor, dma = "core.tensor.", "core.dma."
    return [
        Law("MATMUL", (tensor + "matmul_fixed_cycles", tensor + "matmul_throttled_cycles"),
            _by(opcode["MATMUL"], _operand)),
        Law("LDWEIGHTS", (tensor + "load_fixed_cycles", tensor + "load_throttled_cycles"),
            _by(opcode["LDWEIGHTS"], _operand)),
        Law("DMA packets", (dma + "packet_ns", dma + "packet_bytes_per_ns"), _by(packets, _field("bytes"))),
        Law("hardware DMA trigger", (dma + "hardware.issue_ns", dma + "hardware.issue_row_ns"),
            _by(hardware, _field("engine"))),
        Law("software DMA trigger", (dma + "load.trigger_ns", dma + "store.trigger_ns"),
            _by(software, _field("src_elem_size"))),
        Law("vector operand", ("core.vector.operand_cycles",),
            _by(opcode["TENSOR_SCALAR"], lambda row: row.shape.split("src ")[1].split(";")[0])),
    ]


def _figure(key: str) -> float:
    from trena import launch

    machine = launch.machine_for(launch.defaults.merged(target="trn2"))
    return float(next(figure[1] for figure in machine.describe() if figure[0] == key))


def _settings(law: Law, values) -> tuple[str, ...]:
    return tuple(f"{key}={value:.9g}" for key, value in zip(law.figures, values))


def _predictions(law: Law, training: list[Published], values) -> np.ndarray:
    return np.array([predict(row, _settings(law, values)).predicted for row in training])


def _fit(law: Law, training: list[Published], start: np.ndarray) -> np.ndarray:
    """The figures with the least sum of relative errors: a few Gauss-Newton steps on the clock itself, whose
    derivatives come from running it; outliers are weighed down step by step."""
    published = np.array([row.value for row in training])
    values = start.copy()
    for _ in range(6):
        at = _predictions(law, training, values)
        slopes = np.empty((len(training), len(values)))
        for i, value in enumerate(values):
            moved = values.copy()
            moved[i] = value * 1.01
            slopes[:, i] = (_predictions(law, training, moved) - at) / (moved[i] - value)
        relative = (published - at) / published
        weights = 1.0 / np.sqrt(np.maximum(np.abs(relative), 1e-3))
        # A figure that no training row depends on keeps its value: least squares takes the smallest step.
        step = np.linalg.lstsq(slopes / published[:, None] * weights[:, None] * values, relative * weights, rcond=1e-6)
        values = np.maximum(values * (1.0 + np.clip(step[0], -0.5, 0.5)), 1e-6)
    return values


def leave_one_out() -> list[tuple[Law, str, list[Prediction]]]:
    """For every law and family: the rows of that family as predicted with figures fitted without them."""
    found = []
    for law in laws():
        start = np.array([_figure(key) for key in law.figures])
        for family, held_out in law.families.items():
            training = [row for other, members in law.families.items() if other != family for row in members]
            settings = _settings(law, _fit(law, training, start))
            found.append((law, family, [predict(row, settings) for row in held_out]))
    return found
