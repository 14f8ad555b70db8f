"""Runs public NKI code, unchanged, from checkouts of its own, and prints one table.

    python tests/public/run_examples.py AWS_NEURON_SDK [--nki-library NKI_LIBRARY] [--target trn2]
        [--values hardware-order] [--only TEXT]

AWS_NEURON_SDK is a checkout of aws-neuron/aws-neuron-sdk, its folder nki, or nki/examples; NKI_LIBRARY one of
aws-neuron/nki-library. The table has every current-API file of nki/examples (kernels against NumPy, then scripts with
their own drivers: NumPy, torch_xla, JAX), the complete kernels in the guides' code blocks, and kernels of
nki-library with its own reference functions. Exits 1 when something that should work does not, 0 otherwise (also
when there is no checkout: nothing of others is in this repository). docs/compatibility.md explains what fails.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import os
import re
import subprocess
import sys
import textwrap
import time
import traceback

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
if os.path.isdir(os.path.join(ROOT, "build", "python", "trena")):  # a source tree; else Trena is installed
    sys.path.insert(0, os.path.join(ROOT, "python"))

GENERATOR = np.random.default_rng(0)
GOOD, BAD, SKIPPED = "pass", "FAIL", "skip"


def _normal(*shape, dtype=np.float32):
    return GENERATOR.standard_normal(shape).astype(dtype)


class Table:
    """Lines of the table as they come, and how many of each outcome."""

    def __init__(self):
        self.counts: dict[str, int] = {}

    def section(self, title: str) -> None:
        print(f"\n{title}\n{'-' * len(title)}")

    def row(self, what: str, outcome: str, details: str = "", output: str = "") -> None:
        self.counts[outcome] = self.counts.get(outcome, 0) + 1
        print(f"{what:<62} {outcome:<5} {details}".rstrip(), flush=True)
        if outcome == BAD and output:
            print(textwrap.indent("\n".join(output.strip().splitlines()[-12:]), "    "))


# ---- Kernels of nki/examples against NumPy -----------------------------------------------------------


def _transposed_rows(rows, shape):
    count = rows.shape[0]
    return rows.reshape(count, *shape).transpose(0, 2, 1).reshape(count, -1)


def _product(left, right):
    return left.astype(np.float64).T @ right


def _cases():
    """(file, kernel, arguments, keyword arguments, NumPy's answer, relative tolerance)"""
    matmul = "matrix_multiplication/matrix_multiplication_nki_kernels.py"
    a, b = _normal(256, 1024), _normal(256, 1024)
    yield "tensor_addition/tensor_addition_nki_kernels.py", "nki_tensor_add", (a, b), {}, a + b, 0.0
    rows = GENERATOR.integers(-128, 128, (5, 12), dtype=np.int8)
    yield ("transpose2d/transpose2d_nki_kernels.py", "tensor_transpose2D_kernel_", (rows, (3, 4)), {},
           _transposed_rows(rows, (3, 4)), 0.0)
    left, right = _normal(128, 64), _normal(128, 512)
    yield matmul, "nki_matmul_basic_", (left, right), {}, _product(left, right), 1e-5
    left, right = _normal(1024, 1024), _normal(1024, 2048)
    for kernel in ("nki_matmul_tiled_", "nki_matmul_hoist_load_", "nki_matmul_block_free_dimension_"):
        yield matmul, kernel, (left, right), {}, _product(left, right), 1e-5
    left, right = _normal(2048, 2048), _normal(2048, 2048)
    yield matmul, "nki_matmul_fully_optimized_", (left, right), {}, _product(left, right), 1e-5


def _load(path: str):
    specification = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def _compare(table, what, kernel, inputs, keywords, expected, tolerance, arguments) -> None:
    """One kernel against NumPy."""
    from trena import simulate

    started = time.perf_counter()
    try:
        run = simulate(kernel, target=arguments.target, values=arguments.values)(*inputs, **keywords)
        outputs = run.outputs if isinstance(run.outputs, tuple) else (run.outputs,)
        answers = expected if isinstance(expected, tuple) else (expected,)
        errors = [float(np.abs(np.asarray(out, np.float64) - answer).max() / np.abs(answer).max())
                  for out, answer in zip(outputs, answers, strict=True)]
    except Exception as error:
        refusal, why = _UNABLE.get(what, ("", ""))
        unable = refusal and getattr(error, "id", None) == refusal
        table.row(what, SKIPPED if unable else BAD, f"{refusal}: {why}" if unable else "", traceback.format_exc())
        return
    error = max(errors)
    found = ", ".join(finding.id for finding in run.findings)  # public code has no mistakes
    table.row(what, GOOD if error <= tolerance and not found and what not in _UNABLE else BAD,
              f"error {error:.1e}, {run.time_us:9.1f} µs simulated in {time.perf_counter() - started:.2f} s",
              f"tolerance {tolerance:g}; found: {found or 'nothing'}")


def kernels(table, examples: str, arguments) -> None:
    table.section("nki/examples: kernels against NumPy")
    for file, name, inputs, keywords, expected, tolerance in _cases():
        if arguments.only in f"{file} {name}":
            shapes = " ".join("x".join(map(str, x.shape)) for x in inputs if hasattr(x, "shape"))
            _compare(table, f"{name} {shapes}", getattr(_load(os.path.join(examples, file)), name), inputs, keywords,
                     expected, tolerance, arguments)


# ---- Scripts of nki/examples with their own drivers --------------------------------------------------

# The driver's package.
_SCRIPTS = {
    "average_pool2d/average_pool2d_jax.py": "jax",
    "average_pool2d/average_pool2d_nki_kernels.py": "numpy",
    "average_pool2d/average_pool2d_torch.py": "torch",
    "fused_mamba/mamba_nki_kernels.py": "numpy",
    "fused_mamba/mamba_torch.py": "torch",
    "getting_started_baremetal.py": "numpy",
    "getting_started_jax.py": "jax",
    "getting_started_torch.py": "torch",
    "index-case-1.py": "torch",
    "index-case-3.py": "torch",
    "layout-pass.py": "torch",
    "layout-violation.py": "torch",
    "matrix_multiplication/matrix_multiplication_torch.py": "torch",
    "simulate/nki_simulate_example.py": "numpy",
    "transpose2d/transpose2d_jax.py": "jax",
    "transpose2d/transpose2d_nki_kernels.py": "numpy",
    "transpose2d/transpose2d_torch.py": "torch",
}
# The error it must end in: it breaks a rule on purpose.
_REFUSED = {"layout-violation.py": "partition-limit"}
# Not Python or not complete as published; each must still be so, else it belongs above.
_BROKEN = {
    "layout-dynamic-loop.py": "broken as published: a bracket is missing",
    "layout-loop.py": "broken as published: uses i_f, which nothing defines; imports torch_neuronx, no driver",
}
# Words of a script that compared its result itself and found it wrong.
_DIFFERS = re.compile(r"(?i)\b(differ|mismatch)\b")


def _environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def scripts(table, examples: str, arguments) -> None:
    table.section("nki/examples: scripts with their own drivers")
    for script, package in _SCRIPTS.items():
        if arguments.only in script:
            _script(table, examples, script, package, arguments, _REFUSED.get(script))
    for script, why in _BROKEN.items():
        if arguments.only in script:
            table.row(script, SKIPPED if _is_broken(os.path.join(examples, script)) else BAD, why)


def _script(table, folder: str, script: str, package: str, arguments, refusal: str | None = None,
            why: str = "") -> None:
    """A script of that folder ends well, or in the error `refusal`: rightly, or because Trena is unable, and `why`."""
    if importlib.util.find_spec(package) is None:
        table.row(script, SKIPPED, f"{package} is not installed")
        return
    words = [sys.executable, "-m", "trena", "run", "-q", "--target", _TARGETS.get(script, arguments.target),
             "--values", arguments.values, os.path.basename(script)]
    started = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, env=_environment(),
                          cwd=os.path.dirname(os.path.join(folder, script)))
    found = re.search(r"trena: ([\w-]+)", done.stderr) if done.returncode else None
    details = f"{package}, {time.perf_counter() - started:.2f} s"
    if refusal:
        good = found is not None and found.group(1) == refusal
        details = f"{refusal}: {why}" if why else f"refused as it should be: {refusal}, {details}"
    else:
        good = done.returncode == 0 and not _DIFFERS.search(done.stdout)
    table.row(script, BAD if not good else SKIPPED if why else GOOD, details, done.stderr or done.stdout)


def _is_broken(path: str) -> bool:
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        compile(text, path, "exec")
    except SyntaxError:
        return True
    return "i_f]" in text and "i_f =" not in text


# ---- aws-neuron/nki-samples --------------------------------------------------------------------------

_TUTORIALS = "src/nki_samples/tutorials"
_SAMPLES = {
    **{f"{_TUTORIALS}/{name}_torch.py": "torch" for name in (
        "average_pool2d/average_pool2d", "fused_mamba/mamba", "matrix_multiplication/matrix_multiplication",
        "tensor_addition/spmd_multiple_nc_tensor_addition", "tensor_addition/spmd_tensor_addition",
        "tensor_addition/tensor_addition", "transpose2d/transpose2d")},
    f"{_TUTORIALS}/mxfp-matmul/mx_toplevel.py": "numpy",
    "contributed/interpolate_bilinear_fwd.py": "torch",
    "contributed/interpolate_trilinear_fwd.py": "torch",
    "contributed/matmul.py": "numpy",
    "contributed/maxpooling.py": "torch",
    "contributed/pipelined_attention.py": "numpy",
}
# The only machine of a script.
_TARGETS = {f"{_TUTORIALS}/mxfp-matmul/mx_toplevel.py": "trn3"}
# The error in which what Trena does not do must end, else it does it; and what that is.
_UNABLE = {
    "contributed/interpolate_trilinear_fwd.py":
        ("ap-pattern", "an index of seven axes, which the compiler would cut into several"),
    "contributed/pipelined_attention.py":
        ("sbuf-capacity", "counts addresses up in a loop that the compiler traces once"),
    "attn_fwd_v3": ("psum-capacity", "keeps 256 banks of PSUM alive: the compiler spills PSUM, Trena does not"),
}


def samples(table, checkout: str, arguments) -> None:
    table.section("nki-samples: scripts with their own drivers")
    for script, package in _SAMPLES.items():
        if arguments.only in script:
            _script(table, checkout, script, package, arguments, *_UNABLE.get(script, ()))
    table.section("nki-samples: the attention tutorial against NumPy, 128 x 4096")
    file = os.path.join(checkout, _TUTORIALS, "attention_fwd_performance/attention_kernels.py")
    for name in sorted((n for n in vars(_load(file)) if n.startswith("attn_fwd_v")), key=_version):
        if arguments.only in name:
            _attention(table, name, getattr(_load(file), name), arguments)  # its allocator counts on: once each


def _version(name: str):
    number = re.search(r"\d+", name).group()
    return int(number), name


def _attention(table, name: str, kernel, arguments) -> None:
    length = 128 if _version(name)[0] < 3 else 4096  # the first two do not tile
    q, k, v = (_normal(128, length) / 4 for _ in range(3))
    scores = np.exp(q.T @ k)
    _compare(table, name, kernel, (q, k, v), {}, scores / scores.sum(axis=1, keepdims=True) @ v.T, 1e-2,
             arguments)


# ---- Complete kernels in the guides' code blocks -----------------------------------------------------

_BLOCK = re.compile(r"^( *)\.\. code-block:: python\n(?:\1 +:[^\n]*\n)*\n((?:\1 +[^\n]*\n|\s*\n)+)", re.MULTILINE)
_PRELUDE = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n"  # as the guides' first lines say


def _blocks(path: str):
    """(line, code) of every block that decorates a kernel."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for found in _BLOCK.finditer(text):
        code = textwrap.dedent(found.group(2))
        if "@nki.jit" in code:
            yield text[:found.start()].count("\n") + 1, code


def guides(table, nki: str, arguments) -> None:
    """Blocks that end in a return and have no '...': five matrix products and the scheduling examples."""
    table.section("nki/guides: complete kernels in code blocks")
    for guide in ("tutorials/kernel-optimization.rst", "how-to-scheduling-apis.rst", "nki_simulator.rst",
                  "use-neuron-profile.rst"):
        path = os.path.join(nki, "guides", guide)
        for line, code in _blocks(path) if os.path.exists(path) and arguments.only in guide else []:
            what = f"{guide}:{line}"
            if re.search(r"^\s*\.\.\.$", code, re.MULTILINE) or "return" not in code or "breakpoint()" in code:
                table.row(what, SKIPPED, "a fragment")
                continue
            _guide_block(table, what, code, arguments)


def _guide_block(table, what, code, arguments) -> None:
    source = os.path.join(_scratch(), re.sub(r"\W+", "_", what) + ".py")
    with open(source, "w", encoding="utf-8") as file:
        file.write(_PRELUDE + code)
    try:
        names = vars(_load(source))
    except Exception:
        table.row(what, BAD, output=traceback.format_exc())
        return
    tiles = [_normal(128, 512) + 3 for _ in range(3)]
    if "matrix_multiply_kernel" in names:
        size = (128, 128, 512) if "affine_range" not in code else (2048, 2048, 1024)
        left, right = _normal(size[0], size[1]), _normal(size[0], size[2])
        _compare(table, what, names["matrix_multiply_kernel"], (left, right), {}, _product(left, right), 1e-5,
                 arguments)
    elif "loop" in names or ("kernel" in names and "act" in code):
        _compare(table, what, names.get("scheduled") or names.get("loop"), tiles, {},
                 tuple(np.exp(tile.astype(np.float64)) for tile in tiles), 1e-5, arguments)
    elif "kernel" in names:
        _compare(table, what, names.get("scheduled"), tiles[:1], {}, 1 / tiles[0] + tiles[0] + 1, 1e-5,
                 arguments)
    else:
        table.row(what, SKIPPED, "no driver for it")


def _scratch() -> str:
    import tempfile

    global _folder
    _folder = _folder or tempfile.TemporaryDirectory(prefix="trena-guides-")
    return _folder.name


_folder = None

# ---- Examples in the stubs' documentation ------------------------------------------------------------


def stubs(table, nki: str, arguments) -> None:
    """Code blocks of functions and methods of nki.isa and nki.language; `assert nl.equal(a, b)` compares values."""
    import nki.language as nl

    table.section("nki/api: code blocks of the stubs, on trn3")
    counts = {GOOD: 0, SKIPPED: 0}
    vendor_equal = nl.equal
    nl.equal = _equal_values
    try:
        for what, code in _stub_blocks(nki):
            outcome, output = _stub_block(what, code) if arguments.only in what else (SKIPPED, "")
            if outcome == BAD:
                table.row(what, BAD, output=output)
            else:
                counts[outcome] += 1
    finally:
        nl.equal = vendor_equal
    table.row("blocks that run", GOOD, f"{counts[GOOD]}; {counts[SKIPPED]} are fragments")


def _stub_blocks(nki: str):
    for module in ("isa", "language"):
        path = os.path.join(nki, "api", "nki", module, "__init__.py")
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read())
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                text = textwrap.dedent(ast.get_docstring(node) or "") + "\n"
                for number, found in enumerate(_BLOCK.finditer(text)):
                    yield f"nki.{module}.{node.name}, block {number}", textwrap.dedent(found.group(2))


def _stub_block(what: str, code: str):
    import trena

    names: dict = {}
    source = "def kernel(x):\n" + textwrap.indent(_PRELUDE + code + "\n", "    ") + "    return None\n"
    try:
        exec(compile(source, what, "exec"), names)
        trena.simulate(names["kernel"], target="trn3")(_normal(128, 512))
    except (SyntaxError, NameError):  # a signature, or tiles that it does not make
        return SKIPPED, ""
    except trena.errors.UnwrittenRead:  # tiles that it does not fill
        return SKIPPED, ""
    except Exception:
        return BAD, traceback.format_exc()
    return GOOD, ""


def _equal_values(left, right, *more):
    from trena.launch import to_array

    values = [np.asarray(to_array(side) if hasattr(side, "shape") else side, np.float64) for side in (left, right)]
    assert np.allclose(*values, rtol=2e-2, atol=1e-2), f"{values[0].ravel()[:4]} is not {values[1].ravel()[:4]}"
    return True


# ---- Kernels of nki-library with its own references --------------------------------------------------

_LIBRARY = {
    "attention, context": "core/attention/test_attention_cte.py",
    "attention, token": "core/attention/test_attention_tkg.py",
    "attention, backward": "core/attention/test_attention_bwd.py",
    "mlp, MX projections on trn3": "core/mlp/test_mlp_proj_mxfp4.py",
    "mlp, token": "core/mlp/test_mlp_tkg.py",
    "mlp: output projection": "core/output_projection/test_output_proj_tkg.py",
    "moe, token": "core/moe/moe_tkg/test_moe_tkg.py",
    "moe, context": "core/moe/moe_cte/test_moe_cte.py",
    "moe: router": "core/router_topk/test_router_topk.py",
    "norm: rms": "core/subkernels/test_rmsnorm_tkg.py",
    "norm: layer": "core/subkernels/test_layernorm_tkg.py",
    "rope": "core/embeddings/test_rope.py",
    "rope, Hugging Face": "core/embeddings/test_rope_hf.py",
    "cumsum": "core/cumsum/test_cumsum.py",
    "conv": "experimental/conv/test_conv1d.py",
    "conv, depthwise": "experimental/conv/test_depthwise_conv1d.py",
    "quantisation: rms norm": "core/rmsnorm/test_rmsnorm_quant.py",
    "loss: cross entropy": "experimental/loss/test_cross_entropy_forward.py",
    "max": "core/max/test_cascaded_max.py",
}


def library(table, checkout: str, arguments) -> None:
    table.section(f"nki-library: its own tests, {arguments.each} of each file, in its simulation mode")
    paths = [os.path.join(ROOT, "python"), HERE, os.path.join(checkout, "src"), *filter(None, sys.path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    for what, file in _LIBRARY.items():
        if arguments.only not in f"{what} {file}":
            continue
        words = [sys.executable, "-m", "pytest", "-p", "nkilib_plugin", "--test-mode", "simulation", "-m", "fast", "-q",
                 "--platform-target", "trn3" if "trn3" in what else arguments.target,
                 "--trena-each", str(arguments.each),
                 os.path.join("test", "integration", "nkilib", file)]
        started = time.perf_counter()
        try:
            done = subprocess.run(words, capture_output=True, text=True, cwd=checkout, env=environment,
                                  timeout=arguments.patience)
            output = done.stdout + done.stderr
        except subprocess.TimeoutExpired:
            table.row(f"{what}: {file}", BAD, f"not done in {arguments.patience} s")
            continue
        broken = _broken_module(checkout, output)
        if broken:
            table.row(f"{what}: {file}", SKIPPED, f"broken as published: {broken} is not Python")
            continue
        counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|skipped|error)", output)}
        failed, passed = counts.get("failed", 0) + counts.get("error", 0), counts.get("passed", 0)
        text = ", ".join(f"{number} {word}" for word, number in counts.items()) or output.strip().splitlines()[-1]
        why = "\n".join(dict.fromkeys(re.findall(r"^E +(\S.{0,140})", output, re.MULTILINE)))
        outcome = BAD if failed else GOOD if passed else SKIPPED
        table.row(f"{what}: {file}", outcome, f"{text}, {time.perf_counter() - started:.0f} s", why)


def _broken_module(checkout: str, output: str) -> str | None:
    """The library's own file that is not Python, if that is why a test file could not be read."""
    found = re.search(r'File "([^"]+\.py)", line (\d+)\n(?:.*\n){1,3}?(?:E +)?(?:Indentation|Syntax)Error', output)
    return f"{os.path.relpath(found.group(1), checkout)}:{found.group(2)}" if found else None


# ---- The command -------------------------------------------------------------------------------------


def _nki_folder(checkout: str) -> str | None:
    for folder in (os.path.join(checkout, "nki"), checkout, os.path.dirname(os.path.abspath(checkout))):
        if os.path.isdir(os.path.join(folder, "examples")):
            return folder
    return None


def main(argv=None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("checkout", help="aws-neuron-sdk, its folder nki, or nki/examples")
    parser.add_argument("--nki-library", metavar="CHECKOUT", help="aws-neuron/nki-library")
    parser.add_argument("--nki-samples", metavar="CHECKOUT", help="aws-neuron/nki-samples")
    parser.add_argument("--target", default="trn2")
    parser.add_argument("--values", choices=("program-order", "hardware-order"), default="program-order",
                        help="of the SDK's examples and guides: hardware-order computes as the clock has it")
    parser.add_argument("--only", default="", help="what has this in its name")
    parser.add_argument("--each", type=int, default=3, help="tests of each file of nki-library")
    parser.add_argument("--patience", type=int, default=300, help="seconds for each file of nki-library")
    arguments = parser.parse_args(argv)
    import trena

    trena.install("always")
    table = Table()
    nki = _nki_folder(arguments.checkout)
    if nki is None:
        print(f"skipped: no checkout at {arguments.checkout}")
    else:
        examples = os.path.join(nki, "examples")
        kernels(table, examples, arguments)
        scripts(table, examples, arguments)
        guides(table, nki, arguments)
        stubs(table, nki, arguments)
    if arguments.nki_samples:
        samples(table, os.path.abspath(arguments.nki_samples), arguments)
    if arguments.nki_library:
        library(table, os.path.abspath(arguments.nki_library), arguments)
    print("\n" + (", ".join(f"{count} {outcome}" for outcome, count in table.counts.items()) or "nothing ran"))
    return 1 if table.counts.get(BAD) else 0


if __name__ == "__main__":
    sys.exit(main())
