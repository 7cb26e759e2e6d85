"""Prints constraints for pip: the lowest versions of our dependencies that pyproject.toml allows.

python scripts/lowest.py > lowest.txt
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
EXTRAS = ("flows", "channels", "local", "mcp")
"""Those whose dependencies the fast tests use."""


def main() -> None:
    """Print one constraint per line."""
    for line in lowest(tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]):
        print(line)


def lowest(project: dict[str, dict[str, list[str]]]) -> Iterator[str]:
    """`pandas==2.2` for `pandas>=2.2,<4`. A dependency without a lower bound has no constraint."""
    texts = [*project["dependencies"]]
    for extra in EXTRAS:
        texts += project["optional-dependencies"][extra]
    for requirement in map(Requirement, texts):
        for bound in requirement.specifier:
            if bound.operator == ">=":
                yield f"{requirement.name}=={bound.version}"


if __name__ == "__main__":
    main()
