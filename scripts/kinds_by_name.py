"""Search for code that asks for a plugin by its name, in place of what its kind can do.

    python -m scripts.kinds_by_name

A plugin is then one file: a new one that can do the same is treated the same. Searched for are
comparisons with the name of a bundled plugin (`==`, `in`, `startswith`, `match`), and `isinstance`
with a class that a file of the kind imports. The files of the plugins themselves and the settings
may do both. Exit code 1 if there is one.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ragmetrics.config import JUDGES

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("ragmetrics", "flows", "tasks")
_TESTS = ("startswith", "endswith", "removeprefix", "get")


@dataclass(frozen=True)
class Searched:
    """What is searched for: the names of the plugins of a registry, and their classes."""

    noun: str
    names: frozenset[str]
    classes: frozenset[str]
    allowed: tuple[str, ...]
    """Folders and files that may name a plugin."""


def judges() -> Searched:
    """Judges, by all their names; a class is one that their files import to make a judge."""
    kinds = JUDGES.bundled.values()
    names = {name for kind in kinds for name in (kind.name, kind.key, f"{kind.key}:")}
    files = sorted((ROOT / "ragmetrics/judges/kinds").glob("*.py"))
    classes = {
        alias.name
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name.endswith("Judge") and alias.name != "Judge"
    }
    allowed = ("ragmetrics/judges/kinds/", "ragmetrics/config/")
    return Searched("judge", frozenset(names), frozenset(classes), allowed)


SEARCHES = (judges,)


def uses(source: str, searched: Searched) -> Iterator[tuple[int, str]]:
    """The lines of a module that ask for a plugin by its name, each with what is asked for."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            asked = {text for part in (node.left, *node.comparators) for text in _texts(part)}
        elif isinstance(node, ast.MatchValue):
            asked = set(_texts(node.value))
        elif isinstance(node, ast.Call):
            asked = _asked_by_call(node, searched)
        else:
            continue
        for name in sorted(asked & (searched.names | searched.classes)):
            yield node.lineno if not isinstance(node, ast.MatchValue) else node.value.lineno, name


def _asked_by_call(call: ast.Call, searched: Searched) -> set[str]:
    if isinstance(call.func, ast.Attribute) and call.func.attr in _TESTS:
        return {text for arg in call.args[:1] for text in _texts(arg)}
    if isinstance(call.func, ast.Name) and call.func.id in ("isinstance", "issubclass"):
        return {node.id for node in ast.walk(call) if isinstance(node, ast.Name)} & searched.classes
    return set()


def _texts(node: ast.expr) -> Iterator[str]:
    """The constant texts of an expression that is one, or a tuple, list or set of them."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        for elt in node.elts:
            yield from _texts(elt)


def main() -> int:
    """Print each use and return the exit code."""
    lines = []
    for searched in (make() for make in SEARCHES):
        for file in sorted(path for name in FOLDERS for path in (ROOT / name).rglob("*.py")):
            place = file.relative_to(ROOT).as_posix()
            if not place.startswith(searched.allowed):
                for line, name in uses(file.read_text(encoding="utf-8"), searched):
                    lines.append(f"{place}:{line}: asks for the {searched.noun} {name!r} by name")
    print("\n".join(lines) or "no plugin is asked for by its name")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
