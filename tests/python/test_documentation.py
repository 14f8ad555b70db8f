"""What the README and docs/ tell users to type is typed here: snippets, commands, options, paths, targets."""

import glob
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = ["README.md", *sorted(os.path.join("docs", name) for name in os.listdir(os.path.join(ROOT, "docs"))
                              if name.endswith(".md"))] if os.path.isdir(os.path.join(ROOT, "docs")) else []

pytestmark = pytest.mark.skipif(not PAGES, reason="not a source tree")

# The user's own files, which the documents can only name.
KERNEL_SCRIPT = """
import numpy as np
import nki, nki.language as nl

@nki.jit
def scale(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.multiply(nl.load(x), 2.0))
    return out

assert scale(np.ones((128, 64), np.float32)).sum() == 2 * 128 * 64
"""
TORCH_SCRIPT = """
import torch
import trena.torch  # an installed Trena is loaded by PyTorch itself

model = torch.nn.Linear(16, 4).to("neuron")
assert model(torch.ones(8, 16).to("neuron")).shape == (8, 4)
"""
SCRIPTS = {"my_kernel_script.py": KERNEL_SCRIPT, "kernel.py": KERNEL_SCRIPT, "script.py": KERNEL_SCRIPT,
           "train.py": TORCH_SCRIPT}
MACHINE_FILES = ("my.toml", "wide.toml")  # copies of a file of hardware/, as docs/describe-a-chip.md says
PLACEHOLDERS = {"ID": "unwritten-read", "NAME": "trn2", "FILE": "file.json"}


def page(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def blocks(path, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page(path), flags=re.MULTILINE | re.DOTALL)


def code_of(path):
    """Every line of a block and every `span` of a page."""
    text = page(path)
    lines = [line for block in re.findall(r"^```\w*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
             for line in block.splitlines()]
    text = re.sub(r"^```\w*\n.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return lines, re.findall(r"`([^`\n]+)`", text)


def commands():
    """(page, command) for everything that begins with the word trena and says what to do."""
    found = {}
    for path in PAGES:
        lines, spans = code_of(path)
        for text in [re.sub(r"^\s*\$ |^\.venv/bin/(?=trena )", "", line) for line in lines] + spans:
            words = shlex.split(text, comments=True) if text.startswith("trena ") and "|" not in text else []
            if len(words) > 2 or words[1:] and words[1] in {"machine", "doctor", "accuracy", "explain"}:
                found.setdefault(" ".join(words), path)
    return [(path, command) for command, path in found.items()]


@pytest.fixture
def desk(tmp_path):
    """A folder with the user's files, and Trena's as the documents name them."""
    for name, text in SCRIPTS.items():
        (tmp_path / name).write_text(text)
    for name in MACHINE_FILES:
        shutil.copy(os.path.join(ROOT, "hardware", "trainium2.toml"), tmp_path / name)
    for name in ("examples", "hardware"):
        (tmp_path / name).symlink_to(os.path.join(ROOT, name))
    return tmp_path


def prepare(words, desk):
    """What a command needs beyond the desk: files of an earlier run, an optional library."""
    if "train.py" in words or "examples/train_mlp.py" in words:
        pytest.importorskip("torch")
    if "--plot" in words:
        pytest.importorskip("matplotlib")
    for name in words[1:] if words[0] == "compare" else []:
        assert python("-m", "trena", "run", "-q", "--json", name, "script.py", cwd=desk).returncode == 0


def python(*words, cwd):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    environment.pop("TRENA_IMPORTS", None)
    return subprocess.run([sys.executable, *words], cwd=cwd, env=environment, capture_output=True, text=True,
                          timeout=300)


def case(path, command):
    slow = command.startswith("trena accuracy")
    return pytest.param(command, id=f"{os.path.basename(path)}: {command}", marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize("command", [case(*found) for found in commands()])
def test_commands_run(command, desk):
    words = [PLACEHOLDERS.get(word, word) for word in command.split()[1:]]
    prepare(words, desk)
    done = python("-m", "trena", *words, cwd=desk)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() or "-q" in words


def figures(line):
    """The line without its figures, and the figures but for the host's own time."""
    line = re.sub(r"in \d+\.\d+ s ", "in … s ", line.rstrip())
    return re.sub(r"[\d.]*\d|[█▉▊▋▌▍▎▏·]+", "#", line), [float(text) for text in re.findall(r"[\d.]*\d", line)]


def test_the_readme_shows_what_a_run_prints(desk):
    """Word for word, and figure for figure within 1 %."""
    command, *shown = re.search(r"^```\n\$ (trena run .*?)^```", page("README.md"), re.MULTILINE | re.DOTALL) \
        .group(1).strip().splitlines()
    done = python("-m", "trena", *command.split()[1:], cwd=desk)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.strip().splitlines()
    assert [figures(line)[0] for line in shown] == [figures(line)[0] for line in printed]
    for ours, theirs in zip(shown, printed):
        assert figures(ours)[1] == pytest.approx(figures(theirs)[1], rel=0.01, abs=0.1), (ours, theirs)


@pytest.mark.slow
def test_the_page_on_accuracy_is_todays():
    """Stages and kernels; the instructions are held by test_accuracy.py."""
    from trena import accuracy
    from trena.accuracy import checks

    listed = {}
    for line in page("docs/accuracy.md").splitlines():
        if found := re.match(r"\| ([\w-]+) \| (?:trn|inf).*\| ([+-]?[\d.]+) (?:%|points) \| [^|]+ \|$", line):
            listed[found.group(1)] = float(found.group(2))
    today = {r.row.id: r.error for r in accuracy.measure()}
    today |= {p.row.id: p.error for p in checks.measure() if p.use == "time" and p.error is not None}
    assert listed == pytest.approx(today, abs=0.3)


# docs/pytorch.md is run by test_torch.py.
@pytest.mark.parametrize("path", [path for path in PAGES if blocks(path, "python") and "pytorch" not in path])
def test_snippets_run(path, desk):
    (desk / "snippet.py").write_text("\n".join(blocks(path, "python")))
    done = python("snippet.py", cwd=desk)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", [path for path in PAGES if blocks(path, "toml")])
def test_figures_have_these_keys(path):
    """Keys of machine files, as `trena machine` lists them."""
    from trena import launch

    machine = launch._machine("trn2", ())
    known = {row[0] for row in machine.describe()} | {"chip.name"}
    for block in blocks(path, "toml"):
        section = ""
        for line in block.splitlines():
            if found := re.match(r"\[([\w.]+)\]", line):
                section = found.group(1)
            elif found := re.match(r"(\w+)\s*=", line):
                key = f"{section}.{found.group(1)}"
                assert key in known or any(name.startswith(key + ".") for name in known), key


# What users were promised, beyond what the documents mention.
OPTIONS = {"--target", "--machine", "--set", "--lnc", "--time-only", "--values", "--schedule", "--spill", "--trace",
           "--report", "--json", "-q", "-m", "--what-if"}
COMMANDS = {"run", "check", "compare", "sweep", "machine", "explain", "doctor", "accuracy"}


def test_help_knows_every_option(desk):
    texts = {name: python("-m", "trena", name, "--help", cwd=desk).stdout for name in COMMANDS}
    overview = python("-m", "trena", "--help", cwd=desk).stdout
    assert all(re.search(rf"^ +{name} ", overview, re.MULTILINE) for name in COMMANDS)
    assert all(re.search(rf"(?<![\w-]){option}\b", texts["run"]) for option in OPTIONS)
    known = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", "\n".join([overview, *texts.values()])))
    for path in PAGES:
        lines, spans = code_of(path)
        ours = [text for text in lines + spans if text.startswith(("--", "-q", "trena ", "$ trena"))]
        named = {option for text in ours for option in re.findall(r"(?<!\S)--?[a-z][a-z-]*", text)}
        named = {option for option in named if not option.startswith("--trena-")}  # pytest's: test_pytest_plugin.py
        assert named <= known, (path, named - known)


def expand(name):
    """`a.{h,cpp}` is two names."""
    found = re.match(r"(.*)\{([\w,]+)\}(.*)", name)
    return [found.group(1) + part + found.group(3) for part in found.group(2).split(",")] if found else [name]


@pytest.mark.parametrize("path", PAGES)
def test_paths_exist(path):
    folders = "bench|bindings|cmake|docs|examples|hardware|python|scripts|src|tests"
    named = re.findall(rf"(?<![\w/.<-])((?:{folders})/[\w./*{{}},-]*)", page(path))
    missing = [name for text in named for name in expand(text.rstrip(".,")) if "build/" not in name
               and not glob.glob(os.path.join(ROOT, name))]
    assert not missing


def test_the_readme_lists_the_documents():
    listed = re.search(r"^docs/: ([\w\s,-]+)\.", page("README.md"), re.MULTILINE).group(1)
    assert sorted(re.split(r",\s+", listed)) == sorted(os.path.basename(path)[:-3] for path in PAGES[1:])


def test_make_targets_exist():
    targets = set(re.findall(r"^([\w-]+):", page("Makefile"), flags=re.MULTILINE))
    named = set()
    for path in PAGES:
        lines, spans = code_of(path)
        named |= {found.group(1) for text in lines + spans if (found := re.match(r"make ([\w-]+)", text))}
    assert named and named <= targets
