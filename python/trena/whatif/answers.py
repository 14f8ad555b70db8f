"""One program on several machines."""

from __future__ import annotations

import dataclasses

from trena import errors, launch


@dataclasses.dataclass
class Answer:
    """What one changed machine makes of a program: figures, or the complaint of a machine that cannot run it."""

    changes: tuple[str, ...]
    data: dict | None  # Run.as_dict()
    notes: list[str] = dataclasses.field(default_factory=list)
    error: errors.Error | None = None

    @property
    def time_ns(self) -> float | None:
        return self.data["time_ns"] if self.data else None

    @property
    def label(self) -> str:
        return " ".join(self.changes) or "as it is"

    def as_dict(self) -> dict:
        if self.error is None:
            return {"changes": list(self.changes), "notes": self.notes, "run": self.data}
        return {"changes": list(self.changes), "error": {"id": self.error.id, "rule": self.error.rule,
                                                         "here": self.error.here, "limit": self.error.limit}}


# What a smaller machine may say to a program; anything else is a mistake in the question.
_REFUSALS = (errors.CapacityError, errors.IllegalInstruction, errors.NotModelled, errors.OutOfBounds)


def evaluate(run, groups) -> list[Answer]:
    """`run`, a launch.Run that kept its program, on the machine of every group of changes."""
    answers = []
    for changes in groups:
        try:
            other = run.what_if(*changes)
            answers.append(Answer(tuple(changes), other.as_dict(), other.notes))
        except _REFUSALS as error:
            answers.append(Answer(tuple(changes), None, error=error))
    return answers


def check_machines(groups, options=None) -> None:
    """Raises the named error of the first group that names no machine, before anything is traced.

    Against the machine a launch would use now; a script that chooses another target is checked again later.
    """
    machine = launch.machine_for(options)
    for changes in groups:
        launch.changed_machine(machine, changes)
