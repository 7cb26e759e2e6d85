"""Search for code that asks for a plugin by its name, in place of what its kind can do.

    python -m scripts.kinds_by_name

A plugin is then one file: a new one that can do the same is treated the same. Searched for are
comparisons with the name of a bundled plugin (`==`, `in`, `startswith`, `match`), and `isinstance`
with a class that a file of the kind imports. The files of the plugins themselves and the settings
may do both. Templates and scripts of pages are searched for comparisons of a finding's kind. Exit
code 1 if there is one.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ragmetrics.config import JUDGES
from ragmetrics.rules import CHECKS

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
    attribute: str = ""
    """Only comparisons with this attribute count; empty: all."""

    @property
    def asked(self) -> frozenset[str]:
        """All that code should not ask for."""
        return self.names | self.classes


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


def findings() -> Searched:
    """Kinds of findings: the names of checks, and that of rules."""
    allowed = ("ragmetrics/rules/checks/", "ragmetrics/records/finding.py")
    names = frozenset(("metric", *CHECKS.bundled_names))
    return Searched("finding", names, frozenset(), allowed, "kind")


SEARCHES = (judges, findings)
_IN_PAGES = re.compile(
    r"""\bkind\b["']?,?\s*(?:[!=]=+|not in|in|["']equalto["'],)\s*(\(?["'].*?["']\)?[)\s])"""
)


def uses(source: str, searched: Searched) -> Iterator[tuple[int, str]]:
    """The lines of a module that ask for a plugin by its name, each with what is asked for."""
    if searched.attribute not in source:
        return  # nearly all files: parsing takes as long as the rest
    tree = ast.parse(source)
    named = {
        node.targets[0].id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            asked = _compared([node.left, *node.comparators], named, searched)
        elif isinstance(node, ast.Match) and _is_meant(node.subject, searched):
            cases = [case for one in node.cases for case in ast.walk(one.pattern)]
            asked = {
                t for case in cases if isinstance(case, ast.MatchValue) for t in _texts(case.value)
            }
        elif isinstance(node, ast.Call) and not searched.attribute:
            asked = _asked_by_call(node, searched)
        else:
            continue
        yield from ((node.lineno, name) for name in sorted(asked & searched.asked))


def _compared(sides: list[ast.expr], named: Mapping[str, ast.expr], searched: Searched) -> set[str]:
    """The texts of a comparison, also of names that the module assigns them to."""
    if not any(_is_meant(side, searched) for side in sides):
        return set()
    meant = (named.get(side.id, side) if isinstance(side, ast.Name) else side for side in sides)
    return {text for side in meant for text in _texts(side)}


def _is_meant(node: ast.expr, searched: Searched) -> bool:
    """Whether a comparison with something counts."""
    wanted = searched.attribute
    return not wanted or (isinstance(node, ast.Attribute) and node.attr == wanted)


def uses_in_page(source: str, searched: Searched) -> Iterator[tuple[int, str]]:
    """The same for a template or script of a page, by its text."""
    for number, line in enumerate(source.splitlines() if searched.attribute else (), start=1):
        for compared in _IN_PAGES.findall(line):
            names = re.findall(r"""["']([\w]+)["']""", compared)
            yield from ((number, name) for name in names if name in searched.names)


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


_SEARCHED = {".py": uses, ".html": uses_in_page, ".js": uses_in_page}


def main() -> int:
    """Print each use and return the exit code."""
    lines = []
    for searched in (make() for make in SEARCHES):
        for file in sorted(path for name in FOLDERS for path in (ROOT / name).rglob("*.*")):
            place = file.relative_to(ROOT).as_posix()
            search = _SEARCHED.get(file.suffix)
            if search and not place.startswith(searched.allowed):
                for line, name in search(file.read_text(encoding="utf-8"), searched):
                    lines.append(f"{place}:{line}: asks for the {searched.noun} {name!r} by name")
    print("\n".join(lines) or "no plugin is asked for by its name")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
