"""nki.collectives: ranks of one process (trena.simulate_ranks). What is not modelled says so by name."""

from __future__ import annotations

import dataclasses

from trena import _core, errors
from trena.nki.objects import NKIObject


@dataclasses.dataclass
class ReplicaGroup(NKIObject):
    """Ranks that take part in a collective: a list of disjoint lists of ranks."""

    replica_groups: list


def _missing(name: str):
    def collective(*args, **kwargs):
        raise errors.NotModelled(
            f"nki.collectives.{name} is not modelled", id="not-modelled", here=f"nki.collectives.{name}",
            fix="run the parts between collectives as separate kernels",
        )

    collective.__name__ = collective.__qualname__ = name
    return collective


for _name in (
    "all_gather", "all_gather_v", "all_reduce", "all_to_all", "all_to_all_v", "collective_permute",
    "collective_permute_implicit", "collective_permute_implicit_current_processing_rank_id",
    "collective_permute_implicit_reduce", "rank_id", "reduce_scatter",
):
    globals()[_name] = getattr(getattr(_core, "collectives", None), _name, None) or _missing(_name)
