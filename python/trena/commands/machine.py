"""trena machine: the figures of a machine, with their sources."""

from __future__ import annotations

import json
import os

from trena.commands import common


def add(commands) -> None:
    machine = commands.add_parser("machine", help="the figures of a machine, with their sources")
    machine.add_argument("name", nargs="?", help="trn1, inf2, trn2, trn3 or a file; without it, the list")
    machine.add_argument("--set", metavar="KEY=VALUE", action="append", default=[])
    machine.add_argument("--grep", metavar="TEXT", help="only figures whose key contains TEXT")
    machine.add_argument("--json", action="store_true")


def main(arguments) -> int:
    from trena import launch

    if not arguments.name:
        for path in common.hardware_files():
            machine = launch._machine(path, ())
            file = os.path.basename(path)
            print(f"{machine.name:<8} {file:<18} generation {machine.generation}  hash {_hash(machine)}")
        return 0
    machine = launch._machine(launch._GENERATIONS.get(arguments.name, arguments.name), tuple(arguments.set))
    rows = [row for row in machine.describe() if not arguments.grep or arguments.grep in row[0]]
    if arguments.json:
        keys = ("key", "value", "unit", "evidence", "source", "meaning")
        print(json.dumps({"machine": machine.name, "hash": _hash(machine),
                          "figures": [dict(zip(keys, row)) for row in rows]}, indent=2))
        return 0
    print(f"{machine.name}  generation {machine.generation}  hash {_hash(machine)}")
    widths = [max((len(str(row[k])) for row in rows), default=0) for k in range(3)]
    widths[1] = min(widths[1], 24)  # lists go over: they keep their line
    for key, value, unit, evidence, source, *_ in rows:
        print(f"  {key:<{widths[0]}}  {value:>{widths[1]}} {unit:<{widths[2]}}  {evidence:<12} {source}".rstrip())
    return 0


def _hash(machine) -> str:
    value = machine.hash() if callable(machine.hash) else machine.hash
    return f"{value:016x}" if isinstance(value, int) else str(value)
