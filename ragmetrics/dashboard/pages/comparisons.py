"""The comparisons that people asked for with `ragmetrics compare --page`.

comparisons.html
"""

from __future__ import annotations

from ragmetrics.dashboard.page import Page, Shown
from ragmetrics.dashboard.templating import render_page
from ragmetrics.storage import Files

COMPARED = "compare/"
_MOST = 200


def render(shown: Shown) -> bytes:
    """The page of the comparisons that the site has."""
    return comparisons_page(shown.site, shown.dataset)


def comparisons_page(site: Files, dataset: str) -> bytes:
    """Links to the comparisons, the newest first."""
    files = [info for info in site.below(COMPARED) if info.path.endswith(".html")]
    files.sort(key=lambda info: (info.modified or 0.0, info.path), reverse=True)
    sides = [(info.path, info.path[len(COMPARED) : -len(".html")].split("--")) for info in files]
    return render_page("comparisons.html", 0, dataset=dataset, pages=sides[:_MOST])


comparisons = Page("comparisons", "Comparisons", __doc__, render, "site", place=40)
