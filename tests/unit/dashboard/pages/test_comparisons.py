"""The list of comparisons."""

from __future__ import annotations

from pathlib import Path

from ragmetrics.dashboard.pages.comparisons import comparisons_page
from ragmetrics.storage import Files


def test_each_comparison_is_linked(tmp_path: Path) -> None:
    """By the names of its sides; without one, the page says how to make one."""
    site = Files(str(tmp_path))
    assert "ragmetrics compare BEFORE AFTER --page" in comparisons_page(site, "helpdesk").decode()
    site.write("compare/2026-11-05--2026-11-07.html", b"x")
    page = comparisons_page(site, "helpdesk").decode()
    assert '<a href="compare/2026-11-05--2026-11-07.html">' in page
    assert "2026-11-05 and 2026-11-07" in page
