"""Find code that compares a plugin's kind with its name, outside the file of that kind.

    python -m scripts.kind_names

What depends on a kind is said by the kind itself, so that a new one is one file. Exit code 1 where
a reader compares `kind` with a name instead.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ragmetrics.rules import CHECKS
from scripts.package_map import ROOT

_CODE = ("ragmetrics", "flows", "tasks", "scripts", "benchmarks", "examples")
_IN_PAGES = re.compile(
    r"""\bkind\b["']?,?\s*(?:[!=]=+|not in|in|["']equalto["'],)\s*(\(?["'].*?["']\)?[)\s])"""
)


@dataclass(frozen=True)
class Registry:
    """The names of one kind of plugin, and where these may be compared."""

    attribute: str
    """The attribute that has the name of the kind, such as `kind`."""
    names: Collection[str]
    home: str
    """The folder whose file `NAME.py` may compare its own name."""
    others: Collection[str] = ()
    """Other files that may, such as that of the record."""

    def may(self, path: str, name: str) -> bool:
        """Whether a file may compare a name."""
        return path in self.others or path == f"{self.home}/{name}.py"


REGISTRIES = (
    Registry(
        "kind",
        ("metric", *CHECKS.bundled_names),
        "ragmetrics/rules/checks",
        ("ragmetrics/records/finding.py",),
    ),
)


def comparisons(source: str, attribute: str) -> Iterator[tuple[int, str]]:
    """Each text that a module compares with an attribute, or matches it with, and its line."""
    tree = ast.parse(source)
    named = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [_meant(side, named) for side in (node.left, *node.comparators)]
            compared = sides if any(_is_attribute(side, attribute) for side in sides) else []
        elif isinstance(node, ast.Match) and _is_attribute(node.subject, attribute):
            compared = [*node.cases]  # type: ignore[list-item]
        else:
            continue
        for side in compared:
            yield from ((node.lineno, text) for text in _texts(side))


def _meant(node: ast.expr, named: Mapping[str, ast.expr]) -> ast.expr:
    """What the module assigns to a name; any other expression itself."""
    return named.get(node.id, node) if isinstance(node, ast.Name) else node


def _is_attribute(node: ast.expr, attribute: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == attribute


def _texts(node: ast.AST) -> Iterator[str]:
    constants = (one for one in ast.walk(node) if isinstance(one, ast.Constant))
    return (constant.value for constant in constants if isinstance(constant.value, str))


def in_pages(source: str) -> Iterator[tuple[int, str]]:
    """The same for a template or script of a page, by its text."""
    for number, line in enumerate(source.splitlines(), start=1):
        for compared in _IN_PAGES.findall(line):
            yield from ((number, name) for name in re.findall(r"""["'](\w+)["']""", compared))


def problems(root: Path = ROOT) -> Iterator[str]:
    """The places that compare a name, as `path:line: compares kind with name`."""
    for path in sorted(one for folder in _CODE for one in (root / folder).rglob("*.*")):
        if path.suffix not in (".py", ".html", ".js"):
            continue
        source, where = path.read_text(encoding="utf-8"), path.relative_to(root).as_posix()
        for registry in REGISTRIES:
            is_code = path.suffix == ".py"
            lines = comparisons(source, registry.attribute) if is_code else in_pages(source)
            for number, name in lines:
                if name in registry.names and not registry.may(where, name):
                    yield f"{where}:{number}: compares {registry.attribute} with {name!r}"


def main() -> int:
    """Print the problems. Returns the exit code."""
    lines = list(problems())
    print(*lines, f"{len(lines)} comparisons of a kind with its name", sep="\n")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
