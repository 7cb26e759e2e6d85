"""Writes docs/reference/api.md from the docstrings of the public API; a test holds them together.

python -m scripts.api_page
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

import ragmetrics

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "api.md"
STUB = ROOT / "ragmetrics" / "__init__.pyi"

_WIDTH = 88
_PROPERTIES = (property, cached_property, classmethod)

_HEAD = """\
# Python API

`import ragmetrics` is the public API: a metric, a notebook or a flow of your own needs no other
module. This page is made of the docstrings by `python -m scripts.api_page`.
"""


def sections() -> Iterator[tuple[str, list[str]]]:
    """The titles of the stub's groups, which are its comments, and the names of each group."""
    text = STUB.read_text(encoding="utf-8")
    lines = text.splitlines()
    groups: dict[str, list[str]] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom):
            title = _title(lines[: node.lineno])
            groups.setdefault(title, []).extend(name.name for name in node.names)
    for title, names in groups.items():
        yield title, names


def _title(above: list[str]) -> str:
    comments = [one for one in above if one.startswith("# ")]
    return comments[-1].removeprefix("# ").rstrip(".") if comments else "Version"


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for title, names in sections():
        parts += [f"## {title}\n", *(_entry(name, getattr(ragmetrics, name)) for name in names)]
    return "\n".join(parts)


def _entry(name: str, thing: Any) -> str:
    if inspect.ismodule(thing):
        return f"### `{name}`\n\n{_doc(thing)}\n\n{_errors(thing)}\n"
    if isinstance(thing, str):
        return f"### `{name}`\n\nThe version of the package, as text.\n"
    if not (isinstance(thing, type) or inspect.isfunction(thing)):
        return f"### `{name}`\n\nA type: `{_plain(str(thing))}`.\n"
    parts = [f"### `{name}`", f"```python\n{_signature(name, thing)}\n```", _doc(thing)]
    if isinstance(thing, type):
        parts.append(_members(thing))
    return "\n\n".join(part for part in parts if part) + "\n"


def _signature(name: str, thing: Any) -> str:
    """One line where it fits, else one parameter a line."""
    if inspect.isclass(thing):
        return f"class {name}"
    found = inspect.signature(thing)
    parameters = [_parameter(parameter) for parameter in found.parameters.values()]
    kinds = [parameter.kind for parameter in found.parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        parameters.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    line = f"{name}({', '.join(parameters)}) -> {_text(found.return_annotation)}"
    if len(line) <= _WIDTH:
        return line
    inner = "".join(f"    {parameter},\n" for parameter in parameters)
    return f"{name}(\n{inner}) -> {_text(found.return_annotation)}"


def _parameter(one: inspect.Parameter) -> str:
    star = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(one.kind.name, "")
    default = "" if one.default is one.empty else f" = {one.default!r}"
    return f"{star}{one.name}: {_text(one.annotation)}{default}"


def _text(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else annotation.__name__


def _members(kind: type) -> str:
    """The fields of a class, then its properties and methods, one line each."""
    if issubclass(kind, Enum):
        return "\n".join(f"- `{kind.__name__}.{one.name}`" for one in kind)
    fields = [
        f"- `{name}: {_text(annotation)}`"
        for name, annotation in vars(kind).get("__annotations__", {}).items()
        if not name.startswith("_") and name != "model_config"
    ]
    rest = [
        f"- `{name}`: {_first(inner)}" if _first(inner) else f"- `{name}`"
        for name, inner in vars(kind).items()
        if not name.startswith("_")
        and (inspect.isfunction(inner) or isinstance(inner, _PROPERTIES))
    ]
    return "\n".join([*fields, *rest])


def _plain(text: str) -> str:
    """A type without the modules that its parts come from."""
    return re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", text).replace("~", "")


def _doc(thing: Any) -> str:
    return inspect.getdoc(thing) or ""


def _errors(module: Any) -> str:
    own = [
        var
        for var in vars(module).values()
        if inspect.isclass(var) and var.__module__ == module.__name__
    ]
    return "\n".join(
        f"- `{error.__name__}({error.__bases__[0].__name__})`: {_first(error)}" for error in own
    )


def _first(thing: Any) -> str:
    return " ".join(_doc(thing).split("\n\n")[0].split())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
