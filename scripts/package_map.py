"""Print the packages by floor, and what breaks the plan of docs/explanation/architecture.md.

    python scripts/package_map.py

A package stands one floor above the highest that it imports. Imports for type checkers count too.
Exit code 1 for a circle of packages, for an import that bypasses a package's front, and for a name
in a front that is also the name of a module, which would hide it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = "ragmetrics"
BESIDE = ("tasks", "flows")


@dataclass(frozen=True)
class Import:
    """One import between two packages of ours."""

    path: Path
    line: int
    source: str
    target: str
    module: str
    """What stands after `from`, or after `import`."""

    @property
    def bypasses(self) -> bool:
        """Whether it reaches into a package instead of using its front."""
        return self.module != f"{PRODUCT}.{self.target}" and self.target not in BESIDE


def packages() -> list[str]:
    """The packages of the product, without those inside them."""
    return sorted(path.parent.name for path in (ROOT / PRODUCT).glob("*/__init__.py"))


def imports() -> Iterator[Import]:
    """All imports between packages; modules in the root of the product belong to none."""
    known = packages()
    for folder in (PRODUCT, *BESIDE):
        for path in sorted((ROOT / folder).rglob("*.py")):
            source = _package(".".join(path.relative_to(ROOT).with_suffix("").parts), known)
            if source is None:
                continue
            for line, module in _modules(ast.parse(path.read_text(encoding="utf-8")), known):
                target = _package(module, known)
                if target and target != source:
                    yield Import(path, line, source, target, module)


def _package(module: str, known: list[str]) -> str | None:
    first, *rest = module.split(".")
    if first in BESIDE:
        return first
    return rest[0] if first == PRODUCT and rest and rest[0] in known else None


def _modules(tree: ast.Module, known: list[str]) -> Iterator[tuple[int, str]]:
    """The modules of ours that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            if node.module.partition(".")[0] not in (PRODUCT, *BESIDE):
                continue
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                is_package = node.module == PRODUCT and alias.name in known
                is_module = (ROOT / inner.replace(".", "/")).with_suffix(".py").exists()
                yield node.lineno, inner if is_package or is_module else node.module


def floors(found: list[Import]) -> dict[str, int]:
    """The floor of each package, from 1. Raises CycleError for a circle."""
    below: dict[str, set[str]] = {package: set() for package in (*packages(), *BESIDE)}
    for edge in found:
        below[edge.source].add(edge.target)
    floor: dict[str, int] = {}
    for name in TopologicalSorter(below).static_order():
        floor[name] = 1 + max((floor[one] for one in below[name]), default=0)
    return floor


def hidden() -> Iterator[str]:
    """Names in fronts that are also modules of the package: whoever imports one may get another."""
    for package in packages():
        folder = ROOT / PRODUCT / package
        modules = {path.stem for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()}
        stub = ast.parse((folder / "__init__.pyi").read_text(encoding="utf-8"))
        names = [
            alias.name
            for node in stub.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        ]
        yield from (f"{package}.{name}" for name in names if name in modules)
        yield from (f"{package}.{name} twice" for name in set(names) if names.count(name) > 1)


def main() -> int:
    """Print the map; return the exit code."""
    found = list(imports())
    try:
        floor = floors(found)
    except CycleError as error:
        print("circle:", " -> ".join(error.args[1]))
        return 1
    for number in range(max(floor.values()), 0, -1):
        print(f"{number:3}  {'  '.join(sorted(one for one in floor if floor[one] == number))}")
    bypasses, lost = [one for one in found if one.bypasses], list(hidden())
    for bypass in bypasses:
        print(f"bypasses a front: {bypass.path.relative_to(ROOT)}:{bypass.line}: {bypass.module}")
    for name in lost:
        print(f"named like a module, or twice: {name}")
    modules = len(list((ROOT / PRODUCT).glob("*.py")))
    print(
        f"{max(floor.values())} floors, {len(packages())} packages, {modules} modules in the root, "
        f"{len(found)} imports between packages, {len(bypasses)} bypasses, 0 circles"
    )
    return 1 if bypasses or lost else 0


if __name__ == "__main__":
    sys.exit(main())
