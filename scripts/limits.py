"""Count what the code may have at most, and hold it against `[tool.limits]` of pyproject.toml.

    python -m scripts.limits

Code lines are lines of the product without blanks, comments and docstrings. The names of a front
are those of a package's `__init__.pyi`. What one row enters is counted by `scripts.trace_row`.
Exit code 1 above a limit.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
import tomllib
from collections.abc import Iterator

from scripts.package_map import BESIDE, PRODUCT, ROOT, packages

MANY_NAMES = "records"
"""Each record is a name that other packages read and write: its front has no limit."""
_WHERE = ("tests/unit/root", "tests/unit/scripts", "tests/unit/benchmarks", "tests/unit/fakes")
"""Tests of what is in no package."""
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def limits() -> dict[str, int]:
    """The limits of pyproject.toml, where the reason of each is."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    chosen: dict[str, int] = project["tool"]["limits"]
    return chosen


def code_lines(source: str) -> int:
    """The lines of a module without blanks, comments and docstrings."""
    texts: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and _is_text(node.value):
            texts.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - texts)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def front_names(package: str) -> int:
    """The names of a package's front."""
    stub = (ROOT / PRODUCT / package / "__init__.pyi").read_text(encoding="utf-8")
    return sum(len(node.names) for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom))


def misplaced_tests() -> Iterator[str]:
    """Tests in `tests/unit` whose path names no module: nobody finds them by what they test."""
    for path in sorted((ROOT / "tests/unit").rglob("test_*.py")):
        place = path.relative_to(ROOT).parent.as_posix()
        if place in _WHERE:
            continue
        inside = path.parent.relative_to(ROOT / "tests/unit")
        folder = next(
            (one for one in (ROOT / PRODUCT / inside, ROOT / inside) if one.is_dir()), None
        )
        stem = path.stem.removeprefix("test_")
        modules = [path.stem.strip("_") for path in folder.glob("*.py")] if folder else []
        if not any(stem == module or stem.startswith(f"{module}_") for module in modules if module):
            yield path.relative_to(ROOT).as_posix()


def main() -> int:
    """Print each count beside its limit; return the exit code."""
    most = limits()
    product = [path for one in (PRODUCT, *BESIDE) for path in (ROOT / one).rglob("*.py")]
    names = {package: front_names(package) for package in packages() if package != MANY_NAMES}
    largest = max(names, key=lambda one: (names[one], one))
    misplaced = list(misplaced_tests())
    for path in misplaced:
        print(f"a test that is named after no module: {path}")
    counts = {
        "code_lines": sum(code_lines(path.read_text(encoding="utf-8")) for path in product),
        "packages": len(packages()),
        "front_names": names[largest],
        "misplaced_tests": len(misplaced),
    }
    for name, count in counts.items():
        of = f" ({largest})" if name == "front_names" else ""
        print(f"{name}: {count:,} of at most {most[name]:,}{of}")
    return int(any(count > most[name] for name, count in counts.items()))


if __name__ == "__main__":
    sys.exit(main())
