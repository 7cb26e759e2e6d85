"""Writes docs/reference/pages.md from the docstrings of the dashboard's pages.

python -m scripts.pages_page
"""

from __future__ import annotations

from pathlib import Path

from ragmetrics.dashboard import PAGES, Page
from scripts.pages import cell, table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "pages.md"
_HEAD = """\
# Pages of the dashboard

Every page is one file in `ragmetrics/dashboard/pages/`; this page is made of their docstrings by
`python -m scripts.pages_page`. How to read them: [the dashboard](../how-to/dashboard.md).
A package can have [pages of its own](../how-to/dashboard.md#pages-of-your-own).
"""
_SCOPES = {
    "night": ("## Of a night", "2026-11-19/"),
    "site": ("## Of the site", ""),
    "folder": ("## Beside every page", ""),
}


def page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *(_section(scope) for scope in _SCOPES)])


def _section(scope: str) -> str:
    title, folder = _SCOPES[scope]
    pages = [page for page in PAGES.bundled.values() if page.scope == scope]
    ordered = sorted(pages, key=lambda page: (not page.is_first, page.place or 99))
    return f"{title}\n\n{table(('page', 'shows'), [_line(page, folder) for page in ordered])}"


def _line(page: Page, folder: str) -> tuple[str, str]:
    return f"`{folder}{page.file}`", cell(page.about)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
