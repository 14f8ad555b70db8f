"""Kernels in pytest: the fixture `trena_run` and the option `--trena-target`.

def test_fast(trena_run):
    run = trena_run(kernel)(a, b)          # a trena Run: outputs, time_us, engines, stalls(), findings
    np.testing.assert_allclose(run.outputs, a + b)
    assert run.time_us < 500 and not run.findings

Registered as `trena` (entry point pytest11), so an installed Trena needs no import; from a source tree:
`pytest -p trena.pytest_plugin`.
"""

from __future__ import annotations

import pytest


def pytest_addoption(parser) -> None:
    group = parser.getgroup("trena", "NKI kernels on a simulated Trainium")
    group.addoption("--trena-target", metavar="NAME", action="append", default=[],
                    help="trn1, inf2, trn2 or trn3; repeat it to run every test of trena_run on each")
    group.addoption("--trena-set", metavar="KEY=VALUE", action="append", default=[],
                    help="change one figure of the machine")


def pytest_configure(config) -> None:
    config.addinivalue_line("markers", "trena_target(name, ...): machines this test of trena_run is for, whatever "
                                       "--trena-target says")


def pytest_generate_tests(metafunc) -> None:
    """One test per target. None: what the kernel itself says, then trn3."""
    if "trena_target" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("trena_target")
    targets = list(marker.args) if marker else metafunc.config.getoption("--trena-target")
    metafunc.parametrize("trena_target", targets or [None], ids=lambda name: name or "default")


@pytest.fixture
def trena_target() -> str | None:
    """The machine this test runs on, as --trena-target names it; None when nobody said."""
    raise AssertionError("parametrised by pytest_generate_tests")


@pytest.fixture
def trena_run(request, trena_target):
    """`trena_run(kernel)(a, b)` launches a kernel and returns its Run; keywords as for `trena.simulate`.

    A mistake that Trena refuses raises its trena.errors class, as everywhere: pytest.raises(trena.errors.Hazard).
    """
    import trena
    from trena import imports

    imports.install()  # `import nki` inside a test finds Trena, as TRENA_IMPORTS says
    settings = tuple(request.config.getoption("--trena-set"))

    def run(kernel, **options):
        if not options.get("machine"):
            options.setdefault("target", trena_target)
        options["set"] = settings + tuple(options.get("set", ()))
        return trena.simulate(kernel, **options)

    return run
