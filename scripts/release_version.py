"""Ends with an error unless a tag is the version of pyproject.toml: v0.1.0 for 0.1.0.

python scripts/release_version.py TAG
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def main() -> None:
    """Compare the tag."""
    version = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["version"]
    [tag] = sys.argv[1:]
    if tag != f"v{version}":
        sys.exit(f"the tag is {tag}, but the version of pyproject.toml is {version}")


if __name__ == "__main__":
    main()
