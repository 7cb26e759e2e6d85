"""The night on one page, for e-mail."""

from __future__ import annotations

from ragmetrics.dashboard.page import Page, Shown
from ragmetrics.dashboard.summaries import summary_page


def render(shown: Shown) -> bytes:
    """The page loads nothing, and its style is in its elements."""
    return summary_page(shown.night, shown.earlier)


summary = Page("summary", "Summary", __doc__, render, place=None)
