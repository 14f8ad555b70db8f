"""Rules of the house that a reader would otherwise have to check: ids are documented, floors include downward."""

import collections
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
    from trena.commands import explain

    assert explain.explanations()["unwritten-read"] == sections()["unwritten-read"].strip()


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


# ---- Hardware ----------------------------------------------------------------------------------------


# Of servers: what lies between them is not modelled yet (docs/compatibility.md).
BETWEEN_SERVERS = {"network_gbs", "network_step_ns", "host_link_gbs", "host_memory_gib", "host_vcpus"}


def test_every_figure_of_a_chip_is_read():
    """Or else a user changes it and nothing happens."""
    schema = read(os.path.join(ROOT, "src", "trena", "machine", "schema.cpp"))
    figures = set(re.findall(r"\b(?:FIGURE|FLAG|LIST|LAW|SINCE|LAW_SINCE)\((?:\w+, )?[\w.]*?(\w+),", schema))
    assert len(figures) > 100
    code = "".join(read(path) for path in sources() if relative(path).startswith(("src", "python")) and
                   path.endswith((".cpp", ".h", ".py")) and not path.endswith("schema.cpp"))
    words = collections.Counter(re.findall(r"\w+", re.sub(r"//.*", "", code)))
    assert {name for name in figures if words[name] < 2} == BETWEEN_SERVERS


# ---- Every file --------------------------------------------------------------------------------------


def sources():
    """What the repository holds: no build folders, no results of runs."""
    skipped = {".git", ".venv", "build", "__pycache__", ".pytest_cache", ".hypothesis"}
    for directory, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in skipped and not name.endswith(".egg-info")]
        for name in sorted(names):
            if name.endswith(TEXT) or name in NAMES:
                yield os.path.join(directory, name)


NAMES = {"Makefile", "NOTICE", "run", ".clang-format", ".clang-tidy", ".gitignore"}
TEXT = (".cpp", ".h", ".py", ".md", ".toml", ".csv", ".json", ".cmake", ".sh", ".txt", ".yml", ".yaml")


def lines_that_match(pattern, skip=()):
    expression = re.compile(pattern)
    return [f"{relative(path)}:{number}: {line.strip()}" for path in sources() if relative(path) not in skip
            for number, line in enumerate(read(path).splitlines(), 1) if expression.search(line)]


THIS_FILE = os.path.join("tests", "python", "test_tidy.py")  # it names what it forbids


def test_no_file_knows_the_machine_it_was_written_on():
    assert not lines_that_match(r"(?<![\w.$)}/])/(work|root|home)/", skip=(THIS_FILE,))


def test_only_upstream_hosts_are_fetched_from():
    """Packages come from what pip and the system are set up with; sources from each library's own repository."""
    fetched = set(re.findall(r"https?://[^\s)\"'>]+", read(os.path.join(ROOT, "cmake", "dependencies.cmake"))))
    assert all(re.fullmatch(r"https://github\.com/[\w-]+/[\w-]+", address) for address in fetched)
    elsewhere = r"index-url|find-links|https?://\S*(pypi|simple/|mirror|artifactory|proxy)"
    assert not lines_that_match(elsewhere, skip=(THIS_FILE,))


def test_the_project_speaks_of_itself_alone():
    authors = r"(?i)\b((sub)?-?agents?|chatbots?|copilot|claude|chatgpt|co-authored-by)\b"
    turns = r"(?i)\b(this|another|a previous|an earlier|the next) (session|helper)\b"
    assert not lines_that_match(authors, skip=(THIS_FILE,)) + lines_that_match(turns, skip=(THIS_FILE,))


@pytest.mark.parametrize("endings, longest", [((".py",), 120), ((".cpp", ".h"), 100)])
def test_lines_fit(endings, longest):
    """clang-format leaves a C++ line longer only where it cannot break it: a literal, a word of a comment."""
    wrong = [f"{relative(path)}:{number}" for path in sources() if path.endswith(endings)
             for number, line in enumerate(read(path).splitlines(), 1)
             if len(line) > longest and not (longest == 100 and re.search(r'R"\(|#include|NOLINT', line))]
    assert not wrong, wrong


def test_lines_end_cleanly():
    assert not lines_that_match(r"[ \t]+$")
    assert not [relative(path) for path in sources() if not read(path).endswith("\n") and os.path.getsize(path)]
