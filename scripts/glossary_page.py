"""Writes docs/reference/glossary.md from the dashboard's glossary; a test compares the two.

python -m scripts.glossary_page
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ragmetrics.dashboard.glossary import GROUPS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "glossary.md"

_HEAD = """\
# Glossary

Every term of the product once. Code, docs, dashboard, messages and the command line use these
words, and no others for these things. `python -m scripts.glossary_page` writes this page from
`ragmetrics/dashboard/glossary.toml`; the dashboard shows the same definitions. Each metric is
defined in [metrics](metrics.md), each statistical method in
[statistics](../explanation/statistics.md).
"""


def page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *(_section(name, terms) for name, terms in GROUPS.items())])


def _section(name: str, terms: Mapping[str, str]) -> str:
    lines = [
        f"| {term} | {meaning.replace('|', chr(92) + '|')} |" for term, meaning in terms.items()
    ]
    return "\n".join([f"## {name}", "", "| term | meaning |", "|---|---|", *lines, ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
