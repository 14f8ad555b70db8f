"""nki.compiler: there is nothing to compile; decorators of the vendor's compiler pass through."""

from __future__ import annotations


def _pass_through(function=None, **ignored):
    return function if callable(function) else (lambda decorated: decorated)


skip_middle_end_transformations = _pass_through
enable_stack_allocator = _pass_through
force_auto_alloc = _pass_through


def __getattr__(name: str):
    from trena.errors import NotModelled

    if name.startswith("__"):
        raise AttributeError(name)
    raise NotModelled(
        f"nki.compiler.{name} belongs to the vendor's compiler", id="not-modelled", here=f"nki.compiler.{name}",
    )
