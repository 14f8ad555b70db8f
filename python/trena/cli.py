"""The command `trena`. Exit codes: 0 fine, 1 the script failed, 2 bad usage, 3 findings, 4 not modelled."""

from __future__ import annotations

import argparse
import json
import os
import re
import runpy
import sys
import traceback

from trena import __version__, errors

JSON_VERSION = 1


# ---- Options -----------------------------------------------------------------------------------------


def _common_options() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    group = common.add_argument_group("machine and clock")
    group.add_argument("--target", metavar="NAME", help="trn1, inf2, trn2 or trn3 (default: the script's, then trn3)")
    group.add_argument("--machine", metavar="FILE", help="a hardware file of your own")
    group.add_argument("--set", metavar="KEY=VALUE", action="append", default=[],
                       help="change one figure of the machine")
    group.add_argument("--lnc", type=int, choices=(1, 2), help="physical cores per logical core")
    group.add_argument("--time-only", action="store_true", help="no values, only time")
    group.add_argument("--values", choices=("program-order", "hardware-order"), default="program-order",
                       help="order in which sums are taken")
    group.add_argument("--schedule", choices=("list", "program"), default="list",
                       help="who orders the queues: a compiler moving independent work up, or the script as written")
    group.add_argument("--spill", choices=("auto", "error"), default="auto", help="when SBUF is full")
    group.add_argument("--unwritten", choices=("error", "sentinel"), default="error",
                       help="reads of bytes nobody wrote: refused, or NaN and 4 as in the vendor's simulator")
    output = common.add_argument_group("output")
    output.add_argument("--trace", metavar="FILE", help="Perfetto trace of the last launch")
    output.add_argument("--report", metavar="FILE", help="HTML page")
    output.add_argument("--json", metavar="FILE", help="the numbers, for machines ('-': standard output)")
    output.add_argument("-q", "--quiet", action="store_true", help="nothing but the script's own output")
    return common


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="trena", description="A Trainium you can run anywhere.")
    parser.add_argument("--version", action="store_true", help="version, and a hash of the hardware files")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    common = _common_options()

    run = commands.add_parser("run", parents=[common], help="run a Python script on the simulated device",
                              usage="trena run [options] SCRIPT [args]\n       trena run [options] -m MODULE [args]")
    run.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as python -m does")

    commands.add_parser("check", parents=[common], help="look for mistakes in a script's kernels",
                        usage="trena check [options] SCRIPT [args]")

    machine = commands.add_parser("machine", help="the figures of a machine, with their sources")
    machine.add_argument("name", nargs="?", help="trn1, inf2, trn2, trn3 or a file; without it, the list")
    machine.add_argument("--set", metavar="KEY=VALUE", action="append", default=[])
    machine.add_argument("--grep", metavar="TEXT", help="only figures whose key contains TEXT")
    machine.add_argument("--json", action="store_true")

    explain = commands.add_parser("explain", help="what an id means")
    explain.add_argument("id", nargs="?", help="as printed in a message, or nki.isa.NAME; without it, the list")

    commands.add_parser("doctor", help="is everything in order here?")
    commands.add_parser("accuracy", help="how far the clock is from measurements")  # options: trena.accuracy.main
    return parser


def _options_from(arguments):
    from trena.launch import Options

    return Options(target=arguments.target, machine=arguments.machine, set=tuple(arguments.set), lnc=arguments.lnc,
                   time_only=arguments.time_only, schedule=arguments.schedule, spill=arguments.spill,
                   values=arguments.values, unwritten=arguments.unwritten)


# ---- trena run ---------------------------------------------------------------------------------------


def _run(arguments) -> int:
    command_line = list(arguments.script)
    if not arguments.module and not command_line:
        return _usage("trena run needs a script or -m MODULE")
    if not arguments.module and not os.path.exists(command_line[0]):
        return _usage(f"no such script: {command_line[0]}")
    _prepare(arguments)
    code = _execute(arguments.module, command_line)
    sys.stdout.flush()
    return _report(arguments) or code


def _prepare(arguments) -> None:
    """Options and aliases for this process and for its children."""
    from trena import imports, launch

    launch.defaults = _options_from(arguments)
    os.environ[launch.OPTIONS_VARIABLE] = launch.defaults.to_json()
    mode = imports.mode_from_environment()
    installed = imports.install(mode)
    os.environ[imports.MODE_VARIABLE] = mode
    if installed:
        imports.inherit(os.environ)
    if not installed or mode != "auto":
        who, why = "Trena" if installed else "the vendor", imports.decide(mode)[1]
        _note(arguments, f"trena: `import nki` finds {who} ({why})")


def _note(arguments, text: str) -> None:
    if not arguments.quiet:
        print(text, file=sys.stderr)


def _execute(module: str | None, command_line: list[str]) -> int:
    """Runs the script as Python would; returns the exit code."""
    try:
        if module:
            sys.argv = [module, *command_line]
            sys.path.insert(0, os.getcwd())
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        else:
            sys.argv = command_line
            sys.path.insert(0, os.path.dirname(os.path.abspath(command_line[0])))
            runpy.run_path(command_line[0], run_name="__main__")
    except SystemExit as end:
        return _system_exit_code(end)
    except KeyboardInterrupt:
        print("\ntrena: interrupted; what is known so far:", file=sys.stderr)
        return errors.EXIT_INTERRUPTED
    except errors.Error as error:
        _print_script_traceback(error)
        print(f"trena: {error}", file=sys.stderr)
        return errors.exit_code(error)
    except BaseException as error:
        _print_script_traceback(error, with_message=True)
        return errors.EXIT_SCRIPT_FAILED
    return errors.EXIT_FINE


def _system_exit_code(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return errors.EXIT_SCRIPT_FAILED


def _print_script_traceback(error: BaseException, with_message: bool = False) -> None:
    """The user's frames only: Trena's and runpy's own say nothing about the mistake, unless it is Trena's."""
    package = os.path.dirname(os.path.abspath(__file__))
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "runpy" not in f.filename]
    if isinstance(error, errors.Error) or not frames[-1:] or not frames[-1].filename.startswith(package):
        frames = [f for f in frames if not f.filename.startswith(package)]
    if with_message:
        print("Traceback (most recent call last):", file=sys.stderr)
    elif len(frames) < 2:
        return
    sys.stderr.write("".join(traceback.format_list(frames)))
    if with_message:
        sys.stderr.write("".join(traceback.format_exception_only(type(error), error)))


# ---- What a run prints -------------------------------------------------------------------------------


def _report(arguments) -> int:
    """Summaries under the script's own output. 0, or an exit code when a file cannot be written."""
    from trena import launch

    if "trena.torch.session" in sys.modules:  # work since the last synchronisation is a step too
        sys.modules["trena.torch.session"].synchronize()
    runs = list(launch.runs)
    if not runs:
        if not arguments.quiet:
            print("trena: the script launched no kernel", file=sys.stderr)
        return 0
    if not arguments.quiet:
        from trena.report import summary

        for run, count in _distinct(runs):
            summary(run, launches=count)
    try:
        return _write_files(arguments, runs)
    except OSError as error:
        return _usage(f"cannot write {error.filename}: {error.strerror}")


def _distinct(runs):
    """The last run of each kernel and shapes, with how often it was launched."""
    groups: dict[tuple, list] = {}
    for run in runs:
        groups.setdefault((run.name, tuple(run.arguments), run.machine.name, run.core_count), []).append(run)
    return [(group[-1], len(group)) for group in groups.values()]


def _write_files(arguments, runs) -> int:
    if arguments.trace:
        runs[-1].to_perfetto(arguments.trace)
    if arguments.report:
        try:
            from trena.report import write_page
        except ImportError:
            return _not_yet("--report")
        write_page(runs, arguments.report)
    if arguments.json:
        text = json.dumps(_as_json(runs), indent=2) + "\n"
        if arguments.json == "-":
            sys.stdout.write(text)
        else:
            with open(arguments.json, "w", encoding="utf-8") as file:
                file.write(text)
    return 0


def _as_json(runs) -> dict:
    return {
        "format": "trena-run", "version": JSON_VERSION, "trena": __version__,
        "runs": [run.as_dict() for run in runs],
    }


# ---- The other commands ------------------------------------------------------------------------------


def _check(arguments) -> int:
    return _not_yet("trena check")


def _not_yet(what: str) -> int:
    print(f"trena: {what} is not there yet", file=sys.stderr)
    return errors.EXIT_NOT_MODELLED


def _usage(text: str) -> int:
    print(f"trena: {text}", file=sys.stderr)
    return errors.EXIT_USAGE


def _hardware_files() -> list[str]:
    from trena.launch import hardware_directory

    directory = hardware_directory()
    return sorted(os.path.join(directory, name) for name in os.listdir(directory) if name.endswith(".toml"))


def _machine(arguments) -> int:
    from trena import launch

    if not arguments.name:
        for path in _hardware_files():
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


def _explanations() -> dict[str, str]:
    """id -> text, from docs/errors.md."""
    here = os.path.dirname(os.path.abspath(__file__))
    for path in (os.path.join(here, "docs", "errors.md"), os.path.join(here, "..", "..", "docs", "errors.md")):
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                sections = re.split(r"^## +", file.read(), flags=re.MULTILINE)[1:]
            return {title.strip(): body.strip() for title, _, body in (s.partition("\n") for s in sections)}
    return {}


def _explain(arguments) -> int:
    from trena.nki.isa.documentation import INSTRUCTIONS

    texts = _explanations()
    texts.update({f"nki.isa.{name}": text for name, text in INSTRUCTIONS.items()})
    if not arguments.id:
        print("\n".join(sorted(texts)))
        return 0
    wanted = arguments.id.replace("nisa.", "nki.isa.")
    if wanted in texts:
        print(f"{wanted}\n\n{texts[wanted]}")
        return 0
    import difflib

    close = difflib.get_close_matches(wanted, texts, n=3)
    return _usage(f"no explanation of {arguments.id!r}" + (f"; did you mean {', '.join(close)}?" if close else ""))


def _doctor(arguments) -> int:
    """One line per thing that a run depends on."""
    ok = True
    print(f"trena     {__version__}, Python {sys.version.split()[0]}")
    try:
        from trena import _core

        print(f"core      {_core.version}  {_core.__file__}")
        for fact in ("simd_target", "thread_count"):
            if hasattr(_core, fact):
                print(f"          {fact.replace('_', ' ')}: {getattr(_core, fact)()}")
    except ImportError as error:
        print(f"core      MISSING: {error}")
        return errors.EXIT_SCRIPT_FAILED
    try:
        from trena import launch

        names = [launch._machine(path, ()).name for path in _hardware_files()]
        print(f"machines  {', '.join(names)}  {launch.hardware_directory()}")
    except errors.Error as error:
        ok = False
        print(f"machines  {error}")
    from trena import imports

    wanted, reason = imports.decide(imports.mode_from_environment())
    print(f"imports   `import nki` finds {'Trena' if wanted else 'the vendor'} ({reason})")
    for package in ("numpy", "ml_dtypes", "torch", "rich"):
        try:
            print(f"{package:<9} {__import__(package).__version__ if package != 'rich' else 'installed'}")
        except ImportError:
            print(f"{package:<9} not installed")
    return errors.EXIT_FINE if ok else errors.EXIT_SCRIPT_FAILED


def _accuracy(arguments) -> int:
    try:
        from trena import accuracy
    except ImportError:
        return _not_yet("trena accuracy")
    return accuracy.main(arguments.script)


def _version() -> int:
    import hashlib

    digest = hashlib.sha256()
    for path in _hardware_files():
        with open(path, "rb") as file:
            digest.update(os.path.basename(path).encode() + b"\0" + file.read())
    print(f"trena {__version__}  hardware {digest.hexdigest()[:12]}")
    return 0


_COMMANDS = {"run": _run, "check": _check, "machine": _machine, "explain": _explain, "doctor": _doctor,
             "accuracy": _accuracy}


def main(argv: list[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    parser = _parser()
    own, scripts = _split(sys.argv[1:] if argv is None else argv)
    arguments = parser.parse_args(own)
    arguments.script = scripts
    try:
        if arguments.version:
            return _version()
        if not arguments.command:
            parser.print_help()
            return errors.EXIT_USAGE
        return _COMMANDS[arguments.command](arguments)
    except errors.Error as error:
        print(f"trena: {error}", file=sys.stderr)
        usage = isinstance(error, (errors.MachineError, errors.UsageError))
        return errors.EXIT_USAGE if usage else errors.exit_code(error)
    except BrokenPipeError:
        sys.stderr.close()
        return 0


_TAKES_VALUE = {"--target", "--machine", "--set", "--lnc", "--values", "--schedule", "--spill", "--unwritten",
                "--trace", "--report",
                "--json", "-m"}


def _split(argv: list[str]) -> tuple[list[str], list[str]]:
    """Trena's own words, and the script's: everything from the script on, or after -m MODULE."""
    if argv and argv[0] == "accuracy":
        return argv[:1], argv[1:]
    if not argv or argv[0] not in {"run", "check"}:
        return argv, []
    position = 1
    while position < len(argv):
        word = argv[position]
        if not word.startswith("-"):
            break
        position += 2 if word in _TAKES_VALUE else 1
        if word == "--" or (word.startswith("-m") and not word.startswith("--")):
            break
    own = [word for word in argv[:position] if word != "--"]
    return own, argv[position:]
