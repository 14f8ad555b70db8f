"""The complaint of the binding layer about an argument of a wrong type, in Trena's own words.

It names every parameter and every type of a call; here only those that do not fit are left.
"""

from __future__ import annotations

import re

from trena import errors

_MESSAGE = re.compile(
    r"(?P<name>\w+)\(\): incompatible function arguments\..*?"
    r"1\. \w+\((?P<parameters>.*?)\) ->.*Invoked with types: (?P<given>.*)", re.DOTALL)
_NUMBERS = {"int", "float", "bool"}


def translate(error: TypeError) -> errors.ArgumentTypes | None:
    """The same complaint with id, rule and line; None if `error` is about something else."""
    match = _MESSAGE.search(str(error))
    if match is None:
        return None
    parameters = dict(_fields(match["parameters"]))
    positional, _, named = match["given"].partition("kwargs = {")
    given = list(zip(parameters, (part.strip() for part in _split(positional)), strict=False))
    given += _fields(named.rstrip().removesuffix("}"))
    wrong = [f"{name} is {_short(kind)}" for name, kind in given
             if name not in parameters or not _fits(kind, parameters[name])]
    missing = [name for name, kind in parameters.items() if "=" not in kind and name not in dict(given)]
    wrong += [f"{name} is missing" for name in missing]
    named_here = [name for name in parameters if any(part.startswith(name + " is ") for part in wrong)]
    file, line = errors.line_of(error)
    return errors.ArgumentTypes(
        f"{match['name']} takes arguments of the types in its signature",
        id="argument-types",
        here=", ".join(wrong or [f"{name} is {_short(kind)}" for name, kind in given]),
        limit=", ".join(f"{name}: {_short(parameters[name])}" for name in named_here or parameters),
        file=file,
        line=line,
    )


def _split(text: str) -> list[str]:
    """At the commas outside all brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part.strip()]


def _fields(text: str) -> list[tuple[str, str]]:
    """(name, what follows the colon) of each part."""
    fields = (part.partition(":") for part in _split(text))
    return [(name.strip(), kind.strip()) for name, colon, kind in fields if colon]


def _short(kind: str) -> str:
    """Types as a kernel author knows them: without modules."""
    return re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", kind.partition(" = ")[0])


def _fits(given: str, wanted: str) -> bool:
    """A class of Python's that stands for one of the binding layer differs from it in capitals at most."""
    choices = {choice.strip().lower() for choice in _short(wanted).split("|")}
    kind = _short(given).lower()
    if kind in choices or (kind == "nonetype" and "none" in choices):
        return True
    return kind in _NUMBERS and "float" in choices
