"""Each kernel of tests/mistakes with a planted mistake is found, at its line; its corrected twin is not."""

import importlib
import inspect
import os
import sys

import pytest

import trena

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "mistakes")
sys.path.insert(0, FOLDER)
CATEGORIES = sorted(name[:-3] for name in os.listdir(FOLDER)
                    if name.endswith(".py") and name not in {"table.py", "mutation.py"})
MISTAKES = [(category, mistake) for category in CATEGORIES
            for mistake in importlib.import_module(category).MISTAKES]
NAMES = [f"{category}-{mistake.wrong.__name__}" + ("-time" if mistake.time_only else "")
         for category, mistake in MISTAKES]


def marked(kernel, mark):
    """Lines of the kernel's file with `# mark`, inside this kernel or the helpers it names."""
    module = sys.modules[kernel.__module__]
    seen, waiting, lines = set(), [kernel.__name__], set()
    while waiting:
        name = waiting.pop()
        function = getattr(module, name, None)
        if name in seen or not inspect.isfunction(function) or function.__module__ != module.__name__:
            continue
        seen.add(name)
        text, first = inspect.getsourcelines(function)
        lines |= {first + k for k, line in enumerate(text) if line.rstrip().endswith("# " + mark)}
        waiting += function.__code__.co_names
    return lines


def found_in(mistake, kernel, arguments):
    launcher = trena.check(kernel, target=mistake.target, lnc=mistake.cores if mistake.cores > 1 else None,
                           time_only=mistake.time_only)
    return launcher(*arguments)


@pytest.mark.parametrize("category, mistake", MISTAKES, ids=NAMES)
def test_the_mistake_is_found(category, mistake):
    findings = found_in(mistake, mistake.wrong, mistake.arguments)
    assert {finding.id for finding in findings} == {mistake.id}
    here = marked(mistake.wrong, "MISTAKE")
    assert here and {finding.line for finding in findings} == here
    assert {os.path.basename(finding.file) for finding in findings} == {category + ".py"}
    others = marked(mistake.wrong, "WITH")
    if others:
        assert {finding.other_line for finding in findings} == others
    for finding in findings:
        assert finding.rule and finding.here and (finding.fix or finding.limit or finding.device)


@pytest.mark.parametrize("category, mistake", MISTAKES, ids=NAMES)
def test_its_twin_is_clean(category, mistake):
    arguments = mistake.arguments if mistake.right_arguments is None else mistake.right_arguments
    assert found_in(mistake, mistake.right, arguments) == []


def test_there_are_forty_and_each_is_one_of_its_own():
    kernels = {(category, mistake.wrong.__name__) for category, mistake in MISTAKES}
    assert len(kernels) >= 40


@pytest.mark.slow
def test_most_mutants_that_change_a_byte_are_reported():
    counts, silent = importlib.import_module("mutation").figures()
    changed = sum(count[1] for count in counts.values())
    assert changed >= 250 and set(counts) == {"drop a dependence", "shift an address", "shrink a tile", "skip a wait"}
    assert len(silent) <= 0.05 * changed, silent
