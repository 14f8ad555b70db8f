"""Rules of the house that a reader would otherwise have to check: ids are documented, floors include downward."""

import os
import re

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCES = os.path.join(ROOT, "src", "trena")

pytestmark = pytest.mark.skipif(not os.path.isdir(SOURCES), reason="not a source tree")

# docs/architecture.md: a folder includes only folders of lower rank, or itself.
FLOORS = {"number": 0, "machine": 1, "memory": 2, "isa": 3, "core": 4, "check": 5, "energy": 5, "fabric": 5,
          "graph": 6, "fleet": 7, "report": 8}


def files(*folders, endings):
    for folder in folders:
        for directory, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in sorted(names):
                if name.endswith(endings):
                    yield os.path.join(directory, name)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def code(path):
    """C++ without its comments."""
    return re.sub(r"//[^\n]*", "", read(path))


def relative(path):
    return os.path.relpath(path, ROOT)


# ---- docs/errors.md ----------------------------------------------------------------------------------

KEBAB = r'"([a-z0-9]+(?:-[a-z0-9]+)+)"'  # only ids look like this in C++
PLAIN = r'ErrorKind::k\w+,\s*"([a-z0-9-]+)"'  # ids of one word


def used_ids():
    """id -> a file that uses it: errors of C++ and Python, and pieces of advice."""
    used = {}
    for path in files("src", "bindings", endings=(".cpp", ".h")):
        text = code(path)
        for name in re.findall(KEBAB, text) + re.findall(PLAIN, text):
            used.setdefault(name, relative(path))
        if path.endswith("advice.cpp"):
            for name in re.findall(r'push_back\(\s*\{"([a-z0-9-]+)"', text):
                used.setdefault(name, relative(path))
    for path in files("python", endings=(".py",)):
        for name in re.findall(r'\bid="([a-z0-9_-]+)"', read(path)):
            used.setdefault(name, relative(path))
    used.pop("error", None)  # the default of trena.errors.Error
    return used


def sections():
    return dict(re.findall(r"^## +(\S+)\n(.*?)(?=^## |\Z)", read(os.path.join(ROOT, "docs", "errors.md")),
                           flags=re.MULTILINE | re.DOTALL))


def test_every_id_is_explained():
    missing = {name: path for name, path in used_ids().items() if name not in sections()}
    assert not missing, "docs/errors.md has no section for " + ", ".join(f"{k} ({v})" for k, v in missing.items())


def test_every_explanation_has_its_id():
    unused = sorted(set(sections()) - set(used_ids()))
    assert not unused, f"docs/errors.md explains what nothing says: {unused}"


def test_explanations_say_something():
    assert all(len(text.strip()) > 60 for text in sections().values())


def test_sections_are_sorted_and_unique():
    names = re.findall(r"^## +(\S+)", read(os.path.join(ROOT, "docs", "errors.md")), flags=re.MULTILINE)
    assert names == sorted(set(names))


def test_explain_prints_the_section():
    from trena import cli

    assert cli._explanations()["unwritten-read"] == sections()["unwritten-read"].strip()


# ---- Floors ------------------------------------------------------------------------------------------


def includes():
    """header or source -> the files of src/trena that it includes, as "folder/name.h"."""
    found = {}
    for path in files("src/trena", endings=(".cpp", ".h")):
        name = os.path.relpath(path, SOURCES).replace(os.sep, "/")
        found[name] = re.findall(r'#include "trena/([^"]+)"', read(path))
    return found


def floor_of(name):
    """None for the files beside the floors (error.h), which everyone may include."""
    return name.split("/")[0] if "/" in name else None


def test_every_folder_is_a_floor():
    assert {floor_of(name) for name in includes()} - {None} <= set(FLOORS)


def test_floors_include_only_downward():
    wrong = []
    for name, targets in includes().items():
        for target in targets:
            ours, theirs = floor_of(name), floor_of(target)
            if theirs is None or ours == theirs:
                continue
            if ours is None or FLOORS[theirs] >= FLOORS[ours]:
                wrong.append(f"{name} includes {target}")
    assert not wrong


def test_includes_exist_and_make_no_circle():
    graph = includes()
    missing = [f"{name}: {target}" for name, targets in graph.items() for target in targets if target not in graph]
    assert not missing
    done, path = set(), []

    def visit(name):
        assert name not in path, " -> ".join(path + [name])
        if name not in done:
            path.append(name)
            for target in graph[name]:
                visit(target)
            path.pop()
            done.add(name)

    for name in graph:
        visit(name)


# ---- The library -------------------------------------------------------------------------------------


def test_library_neither_prints_nor_aborts_nor_reads_the_environment():
    forbidden = re.compile(r"std::c(out|err|log)\b|\b(printf|puts|abort|exit|getenv|secure_getenv)\s*\(")
    wrong = [f"{relative(path)}: {match.group(0)}" for path in files("src/trena", endings=(".cpp", ".h"))
             if (match := forbidden.search(code(path)))]
    assert not wrong


def test_headers_are_included_once():
    assert not [relative(path) for path in files("src/trena", "bindings", endings=(".h",))
                if "#pragma once" not in read(path) and "foreach_target" not in read(path)]
