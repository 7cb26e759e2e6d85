"""Writes what of the docs is made from the code, the pages and one picture: `make reference`.

python -m scripts.reference [--check]

With `--check` it writes nothing; its exit code is 1 if a page is out of date.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

from scripts import (
    api_page,
    cli_page,
    glossary_page,
    metrics_page,
    package_picture,
    pages_page,
    presets_page,
    records_page,
    settings_page,
    store_page,
)

PAGES: tuple[ModuleType, ...] = (
    cli_page,
    settings_page,
    api_page,
    metrics_page,
    store_page,
    records_page,
    glossary_page,
    presets_page,
    pages_page,
    package_picture,
)


def main() -> int:
    """Write or check all pages; return the exit code."""
    stale = [script for script in PAGES if not is_current(script)]
    for script in stale:
        if "--check" in sys.argv[1:]:
            print(f"out of date: {script.PAGE}; run: make reference")
        else:
            script.PAGE.write_text(script.page(), encoding="utf-8")
            print(f"wrote {script.PAGE}")
    return 1 if stale and "--check" in sys.argv[1:] else 0


def is_current(script: ModuleType) -> bool:
    """Whether the file of a page is what its script writes."""
    path: Path = script.PAGE
    return path.exists() and path.read_text(encoding="utf-8") == str(script.page())


if __name__ == "__main__":
    sys.exit(main())
