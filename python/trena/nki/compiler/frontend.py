"""nki.compiler.frontend: what harnesses create at import. There is nothing to compile."""

from __future__ import annotations

from trena.errors import NotModelled


class NKIFrontend:
    def compile(self, func, inputs=None, **options):
        raise NotModelled("kernels are not compiled: they run", id="not-modelled", here="NKIFrontend.compile",
                          fix="call the kernel, or nki.simulate")


class ParserFrontend(NKIFrontend):
    """The front end that parses Python."""
