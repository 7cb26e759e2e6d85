"""Every term and metric of these pages with its definition."""

from __future__ import annotations

from ragmetrics.dashboard.glossary import groups
from ragmetrics.dashboard.page import Page, Shown, used_pages
from ragmetrics.metrics import used_metrics


def render(shown: Shown) -> bytes:
    """The terms by heading, with those of pages, and the metrics that this process uses."""
    terms = groups()
    if of_pages := dict(term for page in used_pages() for term in page.terms):
        terms["Pages"] = of_pages
    return shown.render("glossary.html", groups=terms, metrics=used_metrics())


glossary = Page("glossary", "Glossary", __doc__, render, "folder", 90)
